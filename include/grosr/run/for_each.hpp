// for_each: the items of a range, by the blocks of a team, each item by one thread or each chunk by
// a block. What is to be done with them is a body: a trivially copyable struct of at most 64 bytes.
//
//   struct scale {
//     float* x;
//     float by;
//     GROSR_DEVICE void operator()(std::uint64_t i) const { x[i] *= by; }
//   };
//   using work = grosr::team_bodies<scale>;
//   struct scale_all {
//     static constexpr grosr::width width = grosr::width::block;
//     work* shared;
//     float* x;
//     std::uint64_t n;
//     GROSR_DEVICE int operator()(auto& context) const {
//       return grosr::team_loops(shared, context).for_each(n, 1024, scale{x, 2});
//     }
//   };
//   grosr::runtime<scale_all, grosr::team_helper<work>> runtime;
//   grosr::team_memory<work> memory(runtime);
//   runtime.submit(scale_all{memory.get(), x, n}).wait();
#pragma once

#include <algorithm>
#include <cerrno>
#include <functional>

#include "grosr/run/team.hpp"
#include "grosr/simt/buffer.hpp"

namespace grosr {

namespace run {

/// A step of for_each(), as its coordinator lays it down for the others.
struct each_step {
  alignas(16) unsigned char body[max_task_bytes];
  std::uint64_t count;
  std::uint32_t chunk;
  std::int32_t status;  ///< the first error of a body; 0: none
};

/// Whether a body takes whole chunks, by a whole block: body(context, first, last).
template <class Body, class Context>
concept takes_chunks = requires(const Body& body, Context& context) {
  body(context, std::uint64_t{}, std::uint64_t{});
};

/// What a body returned, or 0.
template <class Body, class... Arguments>
GROSR_DEVICE int status_of(const Body& body, Arguments&&... arguments) {
  if constexpr (std::is_void_v<decltype(body(arguments...))>) {
    body(arguments...);
    return 0;
  } else {
    return body(arguments...);
  }
}

}  // namespace run

/// The work of a team whose steps are for_each() over bodies of these types. Device memory, zeroed
/// before the first use: team_memory has it.
template <class... Bodies>
struct team_bodies {
  static_assert(sizeof...(Bodies) >= 1 && sizeof...(Bodies) <= 64);
  static_assert(((std::is_trivially_copyable_v<Bodies> && sizeof(Bodies) <= run::max_task_bytes &&
                  alignof(Bodies) <= 16) &&
                 ...),
                "grosr: a body is trivially copyable and has at most 64 bytes: put larger data "
                "behind a pointer");

  team_state team;
  run::each_step step;

  template <class Body>
  static constexpr std::uint32_t kind_of() {
    static_assert((std::is_same_v<Body, Bodies> || ...),
                  "grosr: this body is not among the team's: add it to team_bodies<...>");
    std::uint32_t i = 0;
    (void)((std::is_same_v<Body, Bodies> ? false : (++i, true)) && ...);
    return first_step + i;
  }

  GROSR_DEVICE void help(grosr::team<team_bodies>& t, auto& context) {
    t.serve(context, [&](std::uint32_t kind, std::uint32_t chunk) {
      carry_out(context, kind, chunk);
      return true;
    });
  }

  /// A chunk of the step, by a whole block.
  GROSR_DEVICE void carry_out(auto& context, std::uint32_t kind, std::uint32_t chunk) {
    (void)((kind == kind_of<Bodies>() && (each<Bodies>(context, chunk), true)) || ...);
  }

 private:
  template <class Body>
  GROSR_DEVICE GROSR_NOINLINE void each(auto& context, std::uint32_t chunk) {
    Body body;
    __builtin_memcpy(&body, step.body, sizeof body);
    const std::uint64_t first = std::uint64_t{chunk} * step.chunk;
    const std::uint64_t left = step.count - first;
    const std::uint64_t last = first + (left < step.chunk ? left : step.chunk);
    int status = 0;
    if constexpr (run::takes_chunks<Body, std::remove_reference_t<decltype(context)>>) {
      status = run::status_of(body, context, first, last);
    } else {
      for (std::uint64_t i = first + simt::thread_id(); i < last; i += simt::block_size()) {
        const int s = run::status_of(body, i);
        if (status == 0) status = s;
      }
    }
    std::int32_t none = 0;
    if (status != 0)
      simt::atomic_ref<std::int32_t>(step.status).compare_exchange(none, status, simt::relaxed);
  }
};

/// A coordinator's loops over a team's bodies. Its methods are called by the whole block.
template <class Work, class Context>
class team_loops {
 public:
  GROSR_DEVICE team_loops(Work* work, Context& context)
      : work_(*work), context_(context), team_(work, true) {}

  /// Carries `body` out for the items [0, count), `chunk` of them at a time, and returns when all
  /// of that is done and what it wrote can be read: 0, or the first error that a body returned (a
  /// negative errno; the other items are carried out nevertheless). -ECANCELED: the runtime aborts,
  /// and helpers may be at it still; the task returns then. -EINVAL: `chunk` is 0, or there would
  /// be 2^31 chunks or more.
  template <class Body>
  GROSR_DEVICE int for_each(std::uint64_t count, std::uint32_t chunk, const Body& body) {
    if (chunk == 0 || count / chunk >= team<Work>::most_chunks) return -EINVAL;
    const auto chunks = static_cast<std::uint32_t>(count / chunk + (count % chunk != 0 ? 1 : 0));
    if (simt::thread_id() == 0) {
      run::each_step& s = work_.step;
      __builtin_memcpy(s.body, &body, sizeof body);
      s.count = count;
      s.chunk = chunk;
      s.status = 0;
    }
    simt::sync_block();
    const simt::atomic_ref<std::int32_t> first_error(work_.step.status);
    const std::uint32_t helpers = team_.run(
        context_, {Work::template kind_of<Body>(), 0}, chunks,
        [&](std::uint32_t kind, std::uint32_t c) { work_.carry_out(context_, kind, c); },
        // Also a step that was carried out: the coordinator must not go on for ever.
        [&](bool done) {
          if (done && context_.aborted()) first_error.store(-ECANCELED, simt::relaxed);
        });
    if (helpers == team<Work>::none) return -ECANCELED;
    const int status = first_error.load(simt::relaxed);
    simt::sync_block();  // all have read it before the next step sets it back
    return status;
  }

 private:
  Work& work_;
  Context& context_;
  team<Work> team_;
};

/// Owner of a team's work in device memory, for a runtime, which must live as long.
template <class Work>
class team_memory {
 public:
  /// With `helpers` 0 as many blocks take part as there are besides the coordinator.
  template <class Runtime>
  explicit team_memory(Runtime& runtime, unsigned helpers = 0)
      : work_(runtime.where(), simt::space::device, 1), rest_([&runtime] { runtime.wait_all(); }) {
    const unsigned others = runtime.stats().workers / run::warps_per_block - 1;
    Work w{};
    w.team.most_helpers = helpers != 0 ? std::min(helpers, others) : others;
    work_.copy_from({&w, 1});
  }
  team_memory(const team_memory&) = delete;
  /// Waits until nothing is left to run, as runtime::wait_all(): helpers may have been called that
  /// have not begun.
  ~team_memory() {
    try {
      rest_();
    } catch (...) {  // the runtime has ended, and with it every helper
    }
  }

  Work* get() const { return work_.data(); }

 private:
  simt::buffer<Work> work_;
  std::function<void()> rest_;
};

}  // namespace grosr
