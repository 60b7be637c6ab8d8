// Shortest paths in the resident grid: waves in order of distance.
//
// Delta-stepping (Meyer, Sanders, Journal of Algorithms 2003), with buckets that are relaxed out of
// order: a wave (wave.hpp) relaxes what is nearer than its limit, however often that improves; what
// it reaches beyond is pending. Then the limit goes up by delta, or as far as the nearest of what
// is pending needs, and what is nearer now goes into the pool, for the next wave.
#pragma once

#include <cerrno>

#include "grosr/graph/detail/job.hpp"
#include "grosr/graph/detail/pending.hpp"
#include "grosr/graph/detail/weighted_cost.hpp"
#include "grosr/run/mailbox.hpp"

namespace grosr::graphs {

/// Device memory.
struct sssp_job : job_base<sssp_job> {
  using cost = weighted_cost;
  using view_type = wave_view<weighted_cost>;
  enum kind : std::uint32_t { reset_all = first_step, near_to_pool };

  /// Handler of the mailbox that searches are asked for at.
  struct searcher {
    static constexpr grosr::width width = grosr::width::block;
    using request = vertex;
    sssp_job* job;
    GROSR_DEVICE auto begin(auto& context) const;
  };
  using coordinator = mail_server<searcher>;

  team_state team;
  wave_state wave;
  std::uint32_t least;    ///< distance of what stays pending
  std::uint32_t settled;  ///< what is nearer has been relaxed
  vertex source;
  // Given by the host.
  wave_view<weighted_cost> view;
  float delta;
  job_log log;

  /// A chunk of a step, by a whole block.
  GROSR_DEVICE GROSR_NOINLINE void work(const view_type& s, std::uint32_t kind,
                                        std::uint32_t chunk) {
    if (kind == reset_all) {
      reset_labels(s.graph, s.label, chunk, shares(), source);
      share_words(s.graph, chunk, shares(), [&](std::uint32_t w) { s.pending[w] = 0; });
    }
    if (kind == near_to_pool) pending_to_pool(s, chunk, settled, team.level, least);
  }

  /// Chunks of reset_all.
  GROSR_DEVICE std::uint32_t shares() const { return shares_of(view.graph, team.most_helpers + 1); }
};

template <class Context>
class sssp_lead : lead<sssp_job, Context> {
  using base = lead<sssp_job, Context>;
  using base::aborted, base::begin_log, base::get, base::j_, base::run_step, base::seed, base::set,
      base::v_, base::wave;

 public:
  GROSR_DEVICE sssp_lead(sssp_job* job, Context& context) : base(job, context) {}

  GROSR_DEVICE int operator()(Context&, vertex source) {
    float limit = j_.delta;
    set([&] {
      j_.source = source;
      j_.settled = 0;
      j_.least = unreached;
      begin_log();
      j_.wave.no_early_exit = 1;
      j_.wave.limit = std::bit_cast<std::uint32_t>(limit);
    });
    if (!run_step(sssp_job::reset_all, 0, j_.shares())) return -ECANCELED;
    bool rest = seed(source) && wave(1);
    while (rest && !aborted()) {
      // Where a ring or the pool was full, something nearer than the limit has yet to be relaxed.
      const bool all = get([&] { return j_.wave.refused == 0 && j_.least != 0 ? 1u : 0u; }) != 0;
      if (all) {
        set([&] { j_.settled = j_.wave.limit; });
        limit += j_.delta;
      }
      if (!fill_pool(limit)) break;
      rest = wave(0) || get([&] { return j_.least; }) < weighted_cost::infinite;
    }
    return aborted() ? -ECANCELED : 0;
  }

 private:
  /// Brings what is pending nearer than `limit` into the pool; where that is nothing, puts the
  /// limit farther. False: nothing is pending.
  GROSR_DEVICE bool fill_pool(float& limit) {
    for (;;) {
      set([&] {
        j_.least = unreached;
        j_.wave.limit = std::bit_cast<std::uint32_t>(limit);
      });
      run_step(sssp_job::near_to_pool, std::bit_cast<std::uint32_t>(limit), word_chunks(v_.graph));
      if (get([&] { return j_.wave.work; }) != 0) return true;
      const auto least = static_cast<std::uint32_t>(get([&] { return j_.least; }));
      if (least >= weighted_cost::infinite || aborted()) return false;
      const float nearest = std::bit_cast<float>(least);
      limit = nearest + j_.delta;
      // Delta is lost in rounding, or the sum is too large: as far as the next number.
      if (!(limit > nearest)) limit = std::bit_cast<float>(least + 1);
    }
  }
};

GROSR_DEVICE inline auto sssp_job::searcher::begin(auto& context) const {
  return sssp_lead<std::remove_reference_t<decltype(context)>>(job, context);
}

}  // namespace grosr::graphs
