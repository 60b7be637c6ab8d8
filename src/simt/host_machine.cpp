// The warp machine: launches, the worker threads that run them, and the life of a lane.
#include "grosr/simt/detail/host_machine.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "grosr/simt/error.hpp"
#include "grosr/simt/relax.hpp"
#include "simt/environment.hpp"
#include "simt/host_cpus.hpp"
#include "simt/host_faults.hpp"
#include "simt/host_schedule.hpp"

namespace grosr::simt::host {

thread_local constinit worker* self = nullptr;

namespace {

constexpr unsigned blocks_admitted_a_round = 4;

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

// What set_seed() and set_poll_limit() chose, for launches to come.
struct settings {
  std::mutex mutex;
  bool seed_set = false;
  std::optional<std::uint64_t> seed, poll_limit;
};

settings& chosen() {
  static settings s;
  return s;
}

}  // namespace

// ---- blocks
// ---------------------------------------------------------------------------------------

block::block(unsigned count) : warps(std::make_unique<warp[]>(count)), warp_count(count) {
  void* p = nullptr;
  if (posix_memalign(&p, 256, arena_size) != 0) throw std::bad_alloc();
  arena_ = static_cast<char*>(p);
  used_ = arena_size;
}

block::~block() {
  sanitizer::unpoison(arena_, arena_size);
  std::free(arena_);
}

void block::reset(worker& owner, unsigned n) {
  number = n;
  live = warp_count * warp_size;
  arrived = 0;
  generation = 0;
  sanitizer::unpoison(arena_, arena_size);
  std::memset(arena_, 0, used_);
  sanitizer::poison(arena_, arena_size);
  used_ = 0;
  object_count_ = 0;
  for (unsigned i = 0; i < warp_count; ++i) {
    warp& w = warps[i];
    std::destroy_at(&w);
    std::construct_at(&w);
    w.home = this;
    for (unsigned k = 0; k < warp_size; ++k) {
      lane& l = w.lanes[k];
      l.home = &w;
      l.where = {k, i, n, warp_count, owner.home.shape.blocks, owner.index};
      l.fiber.announce();
      if (owner.seeded) owner.seeded->first_priority(l);
    }
  }
}

// ---- launches
// -------------------------------------------------------------------------------------

void launch::fail(std::exception_ptr e) {
  std::lock_guard lock(mutex);
  if (failed) return;
  first = std::move(e);
  failed = true;
}

void launch::fail_stuck(std::string headline) {
  std::lock_guard lock(mutex);
  if (failed) return;
  stuck = std::move(headline);
  failed = true;
}

// ---- a worker
// -------------------------------------------------------------------------------------

worker::worker(launch& l, unsigned number)
    : home(l),
      index(number),
      stacks(stack_pool::instance().stack_size()),
      used_stacks(stacks.stack_size()),
      next_block(number) {
  if (l.seed) seeded = std::make_unique<seeded_schedule>(*l.seed);
}

worker::~worker() {
  stack_pool::instance().give(stacks);
  stack_pool::instance().give(used_stacks);
}

bool worker::admit_blocks() {
  // Under ThreadSanitizer too, so that no block is ordered after the end of another.
  const bool all = seeded || sanitizer::has_tsan();
  const auto workers = static_cast<unsigned>(home.workers.size());
  bool admitted = false;
  for (unsigned n = 0; next_block < home.shape.blocks && (all || n < blocks_admitted_a_round);
       ++n) {
    if (spare.empty()) spare.push_back(std::make_unique<block>(home.shape.warps));
    blocks.push_back(std::move(spare.back()));
    spare.pop_back();
    block& b = *blocks.back();
    b.reset(*this, next_block);
    next_block += workers;
    live += b.live;
    for (unsigned i = 0; i < b.warp_count; ++i) warps.push_back(&b.warps[i]);
    admitted = true;
  }
  if (admitted) {
    // Here, because the pool's lock must not be taken in a lane (see context::announce).
    if (sanitizer::has_tsan()) stack_pool::instance().take(stacks, live);
    begin.release();
    if (warps.size() > 0) begin_visit();
  }
  return admitted;
}

void worker::retire_blocks() {
  if (!some_block_over) return;
  some_block_over = false;
  end.acquire();
  std::erase_if(warps, [](const warp* w) { return w->home->live == 0; });
  for (auto& b : blocks) {
    if (b->live == 0) spare.push_back(std::move(b));
  }
  std::erase(blocks, nullptr);
  cursor = 0;
  if (!warps.empty()) begin_visit();
}

void worker::loop() {
  const fault_stack stack;
  self = this;
  thread.adopt_thread();
  try {
    admit_blocks();
    while (!warps.empty() && !home.failed) {
      if (lane* l = pick()) thread.switch_to(l->fiber);  // back when a round is over, or failed
      active = nullptr;
      if (home.failed) break;
      retire_blocks();
      if (admit_blocks()) progress = true;
      between_rounds();
    }
  } catch (...) {  // out of memory: no lane is active here
    home.fail(std::current_exception());
  }
  if (home.failed) {
    describe();
    unwind();
  }
  if (home.idle_since) home.idle_since[index] = ~std::uint64_t{0};
  end.acquire();
  self = nullptr;
}

void worker::switch_away() {
  lane& me = *active;
  lane* next = pick();
  if (next != &me) me.fiber.switch_to(next != nullptr ? next->fiber : thread);
}

void worker::rest() {
  switch_away();
  if (cancelling) give_up_call();
}

void worker::schedule_point() {
  if (!seeded || cancelling || !seeded->preempts(*active)) return;
  active->home->runnable |= active->bit();
  switch_away();
}

void worker::give_up_call() {
  // A destructor that runs while the lane unwinds must not throw: its call does nothing.
  if (std::uncaught_exceptions() == 0) throw cancelled{};
}

context* worker::lane_main(void* argument) {
  lane& l = *static_cast<lane*>(argument);
  worker& me = *self;
  me.begin.acquire();
  try {
    me.home.kernel();
  } catch (const cancelled&) {
  } catch (...) {
    me.home.fail(std::current_exception());
  }
  context* next = me.finish(l);
  me.end.release();  // last: what finish() wrote on this stack is ordered, too
  return next;
}

context* worker::finish(lane& l) {
  warp& w = *l.home;
  block& b = *w.home;
  w.ended |= l.bit();
  --live;
  progress = true;
  if (--b.live == 0) {
    some_block_over = true;
  } else if (b.arrived == b.live) {
    b.release_barrier();
  }
  for (std::uint32_t m = w.open; m != 0 && !cancelling; m &= m - 1) {
    const group& g = w.groups[std::countr_zero(m)];
    if ((g.mask & l.bit()) == 0) continue;
    home.fail_stuck(fmt::format("deadlock: block {} warp {} {} ended, and a {} waits for it",
                                l.where.block, l.where.warp, lane_set(l.bit()), name_of(g.kind)));
  }
  lane* next = pick();
  return next != nullptr ? &next->fiber : &thread;
}

void worker::unwind() {
  cancelling = true;
  for (warp* w : warps) {
    for (std::uint32_t m = ~(w->unstarted | w->ended); m != 0; m &= m - 1) {
      active = &w->lanes[std::countr_zero(m)];
      thread.switch_to(active->fiber);
    }
  }
  active = nullptr;
}

void worker::between_rounds() {
  const bool progressed = std::exchange(progress, false);
  if (home.poll_limit) check_poll_limit(progressed);
  if (asked()) answer();
  if (progressed) {
    fruitless_rounds = 0;
  } else {
    ++fruitless_rounds;
    back_off();
  }
}

void worker::check_poll_limit(bool progressed) {
  if (progressed) home.epoch.fetch_add(1);
  const std::uint64_t epoch = home.epoch.load();
  if (epoch != seen_epoch) {
    seen_epoch = epoch;
    rounds_in_epoch = 0;
    return;
  }
  if (++rounds_in_epoch < *home.poll_limit) return;
  home.idle_since[index] = epoch;
  for (std::size_t i = 0; i < home.workers.size(); ++i) {
    if (home.idle_since[i] < epoch) return;
  }
  if (home.epoch.load() != epoch) return;
  home.fail_stuck(
      fmt::format("deadlock: all lanes wait, and nothing got further in {} rounds of polling",
                  *home.poll_limit));
}

void worker::back_off() {
  if (home.poll_limit) {  // rounds are counted, and nobody outside is waited for
    sched_yield();
    return;
  }
  constexpr std::uint64_t longest_nap_ns = 1'000'000;
  if (seeded) {  // by rounds, not by time; no choice of the schedule depends on it anyway
    constexpr std::uint64_t quick_rounds = 100;
    if (fruitless_rounds <= quick_rounds) return;
    nap_ns = std::min((fruitless_rounds - quick_rounds) * 20'000, longest_nap_ns);
    std::this_thread::sleep_for(std::chrono::nanoseconds(nap_ns));
    return;
  }
  const std::uint64_t now = now_ns();
  if (fruitless_rounds == 1) {
    idle_from_ns = now;
    nap_ns = 20'000;
  }
  const std::uint64_t idle = now - idle_from_ns;
  if (idle < 5'000) {
    relax();
  } else if (idle < 50'000) {
    sched_yield();
  } else {
    std::this_thread::sleep_for(std::chrono::nanoseconds(nap_ns));
    nap_ns = std::min(nap_ns * 5 / 4, longest_nap_ns);
  }
}

// ---- the interface
// --------------------------------------------------------------------------------

std::optional<std::uint64_t> seed() {
  {
    std::lock_guard lock(chosen().mutex);
    if (chosen().seed_set) return chosen().seed;
  }
  return from_environment(seed_of_schedules);
}

void set_seed(std::optional<std::uint64_t> value) {
  std::lock_guard lock(chosen().mutex);
  chosen().seed = value;
  chosen().seed_set = value.has_value();
}

void set_poll_limit(std::optional<std::uint64_t> rounds) {
  std::lock_guard lock(chosen().mutex);
  chosen().poll_limit = rounds;
}

void run(launch_shape shape, const std::function<void()>& kernel, inquiry* questions) {
  if (self != nullptr)
    throw error(errc::misuse, "host::run was called from a lane of a running launch");
  if (shape.blocks == 0 || shape.warps == 0 || shape.warps > 32) {
    throw error(
        errc::invalid_option,
        fmt::format("a launch of {} blocks of {} warps; ask for at least 1 block of 1 to 32 warps",
                    shape.blocks, shape.warps));
  }
  const sanitizer::thread_stack_in_sight stack;  // a program may exit while its kernel runs
  launch l{shape, kernel, seed(), std::nullopt, questions};
  {
    std::lock_guard lock(chosen().mutex);
    l.poll_limit = chosen().poll_limit;
  }
  unsigned count = shape.workers != 0 ? shape.workers : usable_cpus();
  count = l.seed ? 1 : std::min(count, shape.blocks);
  if (l.poll_limit) l.idle_since = std::make_unique<std::atomic<std::uint64_t>[]>(count);

  std::vector<std::unique_ptr<worker>> workers;
  for (unsigned i = 0; i < count; ++i) {
    workers.push_back(std::make_unique<worker>(l, i));
    l.workers.push_back(workers.back().get());
  }
  const auto answers = [&](unsigned threads) {
    if (questions == nullptr) return;
    std::lock_guard lock(questions->mutex);
    questions->workers = threads;
    if (threads == 0) questions->threads.clear();
    for (auto& w : workers) w->answered = questions->asked.load();
  };
  answers(count);
  const auto loop = [&](worker& w) {
    if (questions != nullptr) {
      std::lock_guard lock(questions->mutex);
      questions->threads.push_back(::gettid());
    }
    w.loop();
  };
  std::vector<std::thread> threads;
  try {
    for (unsigned i = 1; i < count; ++i) threads.emplace_back([&, i] { loop(*workers[i]); });
  } catch (const std::system_error& e) {
    l.fail(std::make_exception_ptr(
        error(errc::out_of_memory,
              fmt::format("a launch with {} workers: {}; set GROSR_HOST_WORKERS lower", count,
                          e.what()))));
  }
  loop(*workers[0]);
  for (std::thread& t : threads) t.join();
  answers(0);
  if (l.failed) l.throw_failure();
}

}  // namespace grosr::simt::host
