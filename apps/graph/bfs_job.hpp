// Breadth-first search in the resident grid: one block task leads, others join it as there is work.
//
// Small frontiers are waves (wave.hpp): at first the leader alone, without a word to anybody; then
// as many members as have something to do. Where a wave meets a hub or more than the members hold,
// it ends at a distance, and from there levels are steps of the whole crew (bfs_steps.hpp),
// top-down or bottom-up; what gets small again is a wave again.
#pragma once

#include <cerrno>

#include "bfs_levels.hpp"
#include "grosr/run/task.hpp"

namespace grosr::graphs {

/// A step or a wave of a search, for whoever wants to see where time goes; times are clock_ns().
struct search_event {
  std::uint64_t began, ended;
  std::uint32_t kind;  ///< a bfs_job::kind; of_levels + a bfs_levels::kind for those
  std::uint32_t level, chunks, members;
};
inline constexpr std::uint32_t most_events = 512;  // that are kept; the first ones of a search

/// Device memory.
struct bfs_job {
  static constexpr std::uint32_t seat_kind = 1;  ///< the kind of step that crew::seat() begins
  enum kind : std::uint32_t { reset_all, wave_seats = seat_kind, inspect, near_to_pool, of_levels };

  struct member {
    static constexpr grosr::width width = grosr::width::block;
    bfs_job* job;
    GROSR_DEVICE void operator()(auto& context) const {
      graphs::crew<bfs_job> team(job, job->most_members);
      const bfs_view& view = shared_copy(job->view);
      team.serve(context, [&](step what, std::uint32_t chunk) {
        if (what.kind != wave_seats) {
          job->work(view, what, chunk);
          return true;
        }
        return ride<hop>(view, team, context, false, 0);
      });
    }
  };

  struct leader {
    static constexpr grosr::width width = grosr::width::block;
    bfs_job* job;
    vertex source;
    GROSR_DEVICE int operator()(auto& context) const;
  };

  crew_state crew;
  wave_state wave;
  bfs_levels levels;
  std::uint32_t least, greatest;  ///< distances that are pending
  vertex source;
  // Given by the host.
  bfs_view view;
  std::uint32_t most_members;
  // For the host to read.
  std::uint32_t waves;
  std::uint32_t events;  ///< how many there were
  search_event event[most_events];

  /// A chunk of a step, by a whole block.
  GROSR_DEVICE GROSR_NOINLINE void work(const bfs_view& s, step what, std::uint32_t chunk) {
    switch (what.kind) {
      case reset_all:
        return reset(s, chunk, source);
      case inspect:
        return look(s, chunk);
      case near_to_pool:
        return pending_to_pool<hop>(s, chunk, chunk_words, what.level, least);
      case of_levels:
        return levels.work(s, chunk);
      default:
        return;
    }
  }

 private:
  GROSR_DEVICE void look(const bfs_view& s, std::uint32_t chunk) {
    std::uint32_t low = unreached, high = 0;
    bfs_levels::each_word(s, chunk, [&](std::uint32_t w) {
      for (std::uint32_t rest = s.pending[w]; rest != 0; rest &= rest - 1) {
        const std::uint32_t d = distance_of(s.label[w * 32 + simt::lowest_bit(rest)]);
        low = d < low ? d : low;
        high = d > high ? d : high;
      }
    });
    if (low == unreached) return;
    simt::atomic_ref<std::uint32_t>(least).fetch_min(low, simt::relaxed);
    simt::atomic_ref<std::uint32_t>(greatest).fetch_max(high, simt::relaxed);
  }
};

struct lead_store {
  std::uint64_t word;
};

template <class Context>
class bfs_lead {
 public:
  GROSR_DEVICE bfs_lead(bfs_job* job, Context& context)
      : j_(*job), v_(shared_copy(job->view)), crew_(job, job->most_members), context_(context) {}

  GROSR_DEVICE int run(vertex source) {
    const std::uint32_t n = v_.graph.vertices;
    set([&] {
      j_.source = source;
      j_.events = 0;
    });
    run_step(bfs_job::reset_all, 0, chunks_of(n, chunk_labels));
    const std::uint32_t begin = v_.graph.row[source], end = v_.graph.row[source + 1];
    if (simt::thread_id() == 0) {
      block_scratch<wave_store>().ring[0] = {source, begin, end, 0};
      j_.levels.levels_down = j_.levels.levels_up = j_.waves = 0;
      j_.levels.bits_used = 0;
    }
    for (std::uint32_t seeds = begin < end ? 1 : 0; seeds != 0;) {
      if (!ride(seeds)) break;
      if (aborted()) return -ECANCELED;
      seeds = bulk();
    }
    return aborted() ? -ECANCELED : 0;
  }

 private:
  /// A wave that begins with what lies in the ring, until everything left is at `level_` or at that
  /// and the next. False: nothing is left.
  GROSR_DEVICE bool ride(std::uint32_t seeds) {
    set([&] {
      j_.wave.limit = unreached;
      j_.wave.keeps_hubs = 0;
      j_.wave.work = 1;
    });
    for (std::uint32_t reached = 0;;) {
      set([&] {
        j_.wave.marked = j_.wave.farthest = 0;
        j_.wave.idle = 0;
        ++j_.waves;
      });
      const std::uint64_t began = simt::clock_ns();
      crew_.seat(context_, {bfs_job::wave_seats, 0},
                 [&] { graphs::ride<hop>(v_, crew_, context_, true, seeds); });
      note(began, bfs_job::wave_seats, 0, 0);
      if (get([&] { return j_.wave.marked; }) == 0 || aborted()) return false;
      set([&] {
        j_.least = unreached;
        j_.greatest = 0;
      });
      run_step(bfs_job::inspect, 0, word_chunks());
      level_ = static_cast<std::uint32_t>(get([&] { return j_.least; }));
      const auto now = static_cast<std::uint32_t>(get([&] {
        const std::uint32_t labelled = j_.wave.farthest + 1;
        return j_.greatest > labelled ? j_.greatest : labelled;
      }));
      if (now > reached) reached = now;
      if (reached - level_ <= 1) return true;
      // Somebody was ahead, and may have reached vertices by a longer way than there is: the others
      // come after, as far as that.
      set([&] {
        j_.wave.limit = reached;
        j_.wave.keeps_hubs = 1;
      });
      run_step(bfs_job::near_to_pool, reached, word_chunks());
      seeds = 0;
    }
  }

  /// Levels by steps of the crew, from `level_` on. Returns how many entries lie in the ring for
  /// the next wave; 0: nothing is left.
  GROSR_DEVICE std::uint32_t bulk() {
    auto& levels = j_.levels;
    set([&] { levels.begin(v_, level_); });
    for (;;) {
      const std::uint64_t w = get([&] { return tally(levels.now, levels.chunks(v_)); });
      const auto now = static_cast<std::uint32_t>(w >> 32);
      if (now == bfs_levels::finished || aborted()) return 0;
      if (now == bfs_levels::small) return queue_to_ring();
      run_step(bfs_job::of_levels, 0, static_cast<std::uint32_t>(w));
      set([&] { levels.next(v_); });
    }
  }

  GROSR_DEVICE std::uint32_t queue_to_ring() {
    auto& ring = block_scratch<wave_store>().ring;
    const std::uint32_t count = j_.levels.count, level = j_.levels.level, q = j_.levels.queue;
    for (std::uint32_t i = simt::thread_id(); i < count; i += simt::block_size()) {
      const vertex v = v_.queue[q].v[i];
      ring[i] = {v, v_.graph.row[v], v_.graph.row[v + 1], level};
    }
    simt::sync_block();
    return count;
  }

  GROSR_DEVICE std::uint32_t word_chunks() const {
    return chunks_of((v_.graph.vertices + 31) / 32, chunk_words);
  }
  GROSR_DEVICE void run_step(std::uint32_t kind, std::uint32_t level, std::uint32_t chunks) {
    const std::uint64_t began = simt::clock_ns();
    crew_.run(context_, {kind, level}, chunks,
              [&](step what, std::uint32_t chunk) { j_.work(v_, what, chunk); });
    note(began, kind == bfs_job::of_levels ? kind + j_.levels.now : kind,
         kind == bfs_job::of_levels ? j_.levels.level : level, chunks);
  }
  GROSR_DEVICE void note(std::uint64_t began, std::uint32_t kind, std::uint32_t level,
                         std::uint32_t chunks) {
    if (simt::thread_id() != 0) return;
    const std::uint32_t n = j_.events++;
    if (n < most_events)
      j_.event[n] = {began, simt::clock_ns(), kind, level, chunks, j_.crew.members};
  }

  /// Thread 0 does something, or finds something for all.
  template <class Do>
  GROSR_DEVICE void set(const Do& act) {
    simt::sync_block();
    if (simt::thread_id() == 0) act();
    simt::sync_block();
  }
  template <class Find>
  GROSR_DEVICE std::uint64_t get(const Find& find) {
    auto& store = simt::block_shared<lead_store>();
    if (simt::thread_id() == 0) store.word = find();
    simt::sync_block();
    const std::uint64_t w = store.word;
    simt::sync_block();
    return w;
  }
  GROSR_DEVICE bool aborted() {
    return get([&] { return context_.aborted() ? 1u : 0u; }) != 0;
  }

  bfs_job& j_;
  const bfs_view& v_;
  graphs::crew<bfs_job> crew_;
  Context& context_;
  std::uint32_t level_ = 0;
};

GROSR_DEVICE inline int bfs_job::leader::operator()(auto& context) const {
  return bfs_lead<std::remove_reference_t<decltype(context)>>(job, context).run(source);
}

}  // namespace grosr::graphs
