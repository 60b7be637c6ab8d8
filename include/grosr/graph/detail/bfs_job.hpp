// Breadth-first search in the resident grid: one block task coordinates, helpers join it as there
// is work.
//
// Small frontiers are waves (wave.hpp): at first the coordinator alone, without a word to anybody;
// then as many helpers as have something to do. Where a wave meets a hub or more than the blocks
// hold, it ends at a distance, and from there levels are steps of the whole team (bfs_steps.hpp),
// top-down or bottom-up; what gets small again is a wave again.
#pragma once

#include <algorithm>
#include <cerrno>

#include "grosr/graph/detail/bfs_levels.hpp"
#include "grosr/graph/detail/job.hpp"
#include "grosr/graph/detail/pending.hpp"
#include "grosr/graph/device_graph.hpp"
#include "grosr/run/mailbox.hpp"

namespace grosr::graphs {

/// Device memory.
struct bfs_job : job_base<bfs_job> {
  using cost = unit_cost;
  using view_type = bfs_view;
  enum kind : std::uint32_t {
    reset_all = first_step,
    inspect,
    near_to_pool,
    gather_pending,
    correct_level,
    of_levels  ///< + level_plan::kind: what `levels` has planned
  };

  /// Handler of the mailbox that searches are asked for at.
  struct searcher {
    static constexpr grosr::width width = grosr::width::block;
    using request = bfs_start;
    bfs_job* job;
    GROSR_DEVICE auto begin(auto& context) const;
  };
  using coordinator = mail_server<searcher>;

  team_state team;
  wave_state wave;
  bfs_levels levels;
  std::uint32_t least, greatest;  ///< distances that are pending
  std::uint32_t waiting;          ///< vertices that are
  bfs_start start;
  // Given by the host.
  bfs_view view;
  job_log log;

  /// On the host, with a view of the graph: how searches by so many blocks go on.
  void prepare(const device_graph& g, std::uint32_t blocks, const wave_tuning& tuning) {
    view.tuning = tuning;
    // Blocks that are ahead of each other relax vertices again, for which there is mostly room.
    if (std::uint64_t{blocks} * wave_ring >= std::uint64_t{g.vertices()} * 2)
      view.tuning.much = tuning.much_if_all_fit;
    levels.blocks = blocks;
    levels.stops_when_small = 1;
    levels.first_levels = g.entries() / std::max(g.vertices(), 1u) >= tuning.dense ? 4 : 0;
    levels.undirected = g.directed() ? 0 : 1;
  }

  /// A chunk of a step, by a whole block.
  GROSR_DEVICE GROSR_NOINLINE void work(const bfs_view& s, std::uint32_t kind,
                                        std::uint32_t chunk) {
    if (kind >= of_levels) return levels.work(s, kind - of_levels, chunk);
    switch (kind) {
      case reset_all:
        return begin(s, chunk);
      case inspect:
        return look(s, chunk);
      case near_to_pool:
        return pending_to_pool<unit_cost>(s, chunk, 0, team.level, least);
      case gather_pending:
        return gather_bits(s, s.pending, s.queue[0], chunk, team.level);
      case correct_level:
        return correct(s, s.queue[0], levels.plan.count, levels.plan.edges, chunk, team.level);
      default:
        return;
    }
  }

  /// Chunks of reset_all.
  GROSR_DEVICE std::uint32_t shares(const bfs_view& s) const {
    return shares_of(s.graph, levels.blocks);
  }

  /// Out of line, so that all calls run the same instructions: the first brings them into the
  /// cache.
  GROSR_DEVICE GROSR_NOINLINE level_step decide(const bfs_view& s, bool done) {
    return levels.next(s, done);
  }

 private:
  GROSR_DEVICE void begin(const bfs_view& s, std::uint32_t chunk) {
    const std::uint32_t all = shares(s);
    // The first step does not depend on the reset; when there are several chunks, the coordinator
    // has the last.
    if (chunk == (all < 2 ? 0 : all - 2) && simt::thread_id() == 0 && levels.first_levels != 0)
      levels.begin_at(s, start);
    reset(s, chunk, all, start);
  }

  GROSR_DEVICE void look(const bfs_view& s, std::uint32_t chunk) {
    std::uint32_t low = unreached, high = 0, count = 0;
    each_word(s.graph, chunk, chunk_words, [&](std::uint32_t w) {
      for (std::uint32_t rest = s.pending[w]; rest != 0; rest &= rest - 1) {
        const std::uint32_t d = distance_of(s.label[w * 32 + simt::lowest_bit(rest)]);
        low = d < low ? d : low;
        high = d > high ? d : high;
        ++count;
      }
    });
    count = warp_sum(count);
    if (simt::lane_id() == 0 && count != 0)
      simt::atomic_ref<std::uint32_t>(waiting).fetch_add(count, simt::relaxed);
    if (low == unreached) return;
    simt::atomic_ref<std::uint32_t>(least).fetch_min(low, simt::relaxed);
    simt::atomic_ref<std::uint32_t>(greatest).fetch_max(high, simt::relaxed);
  }
};

template <class Context>
class bfs_lead : lead<bfs_job, Context> {
  using base = lead<bfs_job, Context>;
  using base::aborted, base::begin_log, base::get, base::j_, base::run_step, base::seed, base::set,
      base::v_, base::wave;

 public:
  GROSR_DEVICE bfs_lead(bfs_job* job, Context& context) : base(job, context) {}

  GROSR_DEVICE int operator()(Context&, const bfs_start& start) {
    const bool by_levels = j_.levels.first_levels != 0;
    const std::uint32_t shares = j_.shares(v_);
    set([&] {
      j_.start = start;
      begin_log();
      j_.levels.plan.base = start.base;
      j_.levels.plan.bits_used = 0;
    });
    if (!run_step(bfs_job::reset_all, start.base, shares)) return -ECANCELED;
    std::uint32_t seeds = 0;
    if (by_levels) {
      set([&] { next_step() = j_.levels.now(v_); });
      seeds = bulk();
    } else {
      seeds = seed(start.source, start.base) ? 1 : 0;
    }
    while (seeds != 0 && expand_wave(seeds)) {
      set([&] { next_step() = j_.levels.begin(v_, level_); });
      seeds = bulk();
    }
    return aborted() ? -ECANCELED : 0;
  }

 private:
  /// A wave that begins with what lies in the ring, until everything left is at `level_` or at that
  /// and the next. False: nothing is left.
  GROSR_DEVICE bool expand_wave(std::uint32_t seeds) {
    set([&] {
      j_.wave.limit = unreached;
      j_.wave.no_early_exit = 0;
    });
    for (std::uint32_t reached = 0;;) {
      const bool marked = wave(seeds);
      // Vertices for which later waves had no room, or which they were not to relax, were marked
      // before them.
      if ((!marked && reached == 0) || aborted()) return false;
      look_at_pending();
      level_ = static_cast<std::uint32_t>(get([&] { return j_.least; }));
      if (level_ == unreached) return false;
      const auto now = static_cast<std::uint32_t>(get([&] {
        const std::uint32_t labelled = j_.wave.farthest + 1;
        return j_.greatest > labelled ? j_.greatest : labelled;
      }));
      if (now > reached) reached = now;
      if (reached - level_ <= 1) return true;
      // Somebody was ahead, and may have reached vertices by a longer way than there is: the others
      // come after, as far as that.
      if (get([&] { return j_.waiting; }) / (reached - level_) >= v_.tuning.many) {
        while (level_ != reached && !aborted()) {
          if (correct_one()) {
            ++level_;
            continue;
          }
          // Nothing was at that level: on to the next at which something is.
          look_at_pending();
          const auto least = static_cast<std::uint32_t>(get([&] { return j_.least; }));
          level_ = least < reached ? least : reached;
        }
        return !aborted();
      }
      set([&] {
        j_.wave.limit = reached;
        j_.wave.no_early_exit = 1;
      });
      run_step(bfs_job::near_to_pool, reached, word_chunks(v_.graph));
      seeds = 0;
    }
  }

  GROSR_DEVICE void look_at_pending() {
    set([&] {
      j_.least = unreached;
      j_.greatest = j_.waiting = 0;
    });
    run_step(bfs_job::inspect, 0, word_chunks(v_.graph));
  }

  /// Expands what is pending of `level_`, the least one; what comes nearer by that is pending.
  /// False: nothing was.
  GROSR_DEVICE bool correct_one() {
    bool some = false;
    for (bool rest = true; rest && !aborted();) {
      set([&] { j_.levels.counts.total[0] = 0; });
      if (!run_step(bfs_job::gather_pending, level_, word_chunks(v_.graph))) break;
      set([&] { j_.levels.measure_gathered(v_); });
      // Vertices for which the queue has no room stay pending.
      rest = get([&] { return (j_.levels.counts.total[0] >> 32) > v_.capacity ? 1u : 0u; }) != 0;
      const std::uint64_t edges = get([&] { return j_.levels.plan.edges; });
      some = some || edges != 0;
      run_step(bfs_job::correct_level, level_,
               chunks_of(static_cast<std::uint32_t>(edges), chunk_edges));
    }
    return some;
  }

  /// What thread 0 tells its block.
  GROSR_DEVICE static level_step& next_step() { return simt::block_shared<level_step>(); }

  /// Levels by steps of the team, from next_step() on. Returns how many entries lie in the ring for
  /// the next wave; 0: nothing is left.
  GROSR_DEVICE std::uint32_t bulk() {
    for (;;) {
      const level_step now = next_step();
      if (now.kind == level_plan::finished) return 0;
      if (now.kind == level_plan::small) return queue_to_ring();
      simt::sync_block();
      const auto decide = [&](bool done) {
        const bool stops = this->context_.aborted();
        const level_step next = j_.decide(v_, done);
        if (done) next_step() = stops ? level_step{level_plan::finished, 0, 0} : next;
      };
      if (!run_step(bfs_job::of_levels + now.kind, now.level, now.chunks, decide)) return 0;
    }
  }

  GROSR_DEVICE std::uint32_t queue_to_ring() {
    auto& ring = block_scratch<wave_store>().ring;
    const std::uint32_t count = j_.levels.plan.count, level = j_.levels.plan.level;
    const std::uint32_t q = j_.levels.plan.queue;
    for (std::uint32_t i = simt::thread_id(); i < count; i += simt::block_size()) {
      const vertex v = v_.queue[q].v[i];
      ring[i] = {v, v_.graph.row[v], v_.graph.row[v + 1], level};
    }
    simt::sync_block();
    return count;
  }

  std::uint32_t level_ = 0;
};

GROSR_DEVICE inline auto bfs_job::searcher::begin(auto& context) const {
  return bfs_lead<std::remove_reference_t<decltype(context)>>(job, context);
}

}  // namespace grosr::graphs
