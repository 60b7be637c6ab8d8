// `grosr bench priority`: how long an urgent task waits while low-priority work fills every worker,
// and whether that work still gets its turn.
#include <array>
#include <memory>
#include <thread>

#include "cases/benches.hpp"
#include "cases/tiles.hpp"
#include "cli/interrupt.hpp"
#include "cli/text.hpp"
#include "grosr/simt/buffer.hpp"

namespace grosr::tool {
namespace {

using host_word = simt::atomic_ref<std::uint32_t, simt::scope::system>;

/// Memory, a runtime, and work that goes on until the bench ends.
struct scene {
  simt::buffer<std::uint32_t> stops;   // device: a word that is set at the end, and one that is set
  simt::buffer<std::uint32_t> words;   // pinned: what urgent tasks write
  simt::buffer<std::uint64_t> counts;  // device: tiles, times that a task yielded; the same again
  std::unique_ptr<any_runtime> runtime;
  std::uint32_t *stop = stops.data(), *at_once = stops.data() + 1;
  std::uint32_t& touched = words[0];
  std::uint32_t value = 0;  // of the last urgent task

  explicit scene(const session& s)
      : stops(s.where, simt::space::device, 2),
        words(s.where, simt::space::pinned, 32),
        counts(s.where, simt::space::device, 4),
        runtime(make_tile_runtime(s.where, usual_options(s.where))) {
    set_stops(0);
  }

  // Tasks run meanwhile. On the host backend a copy would race with their atomics.
  void set_stops(std::uint32_t first) {
    const std::uint32_t both[2] = {first, 1};
    if (runtime->where().is_cuda()) return stops.copy_from(both);
    for (unsigned i = 0; i < 2; ++i) host_word(stop[i]).store(both[i], simt::relaxed);
  }

  std::array<std::uint64_t, 4> counted() const {
    std::array<std::uint64_t, 4> all{};
    if (runtime->where().is_cuda())
      counts.copy_to(all);
    else
      for (unsigned i = 0; i < 4; ++i)
        all[i] = simt::atomic_ref<std::uint64_t>(counts.data()[i]).load(simt::relaxed);
    return all;
  }

  /// Ends the work that starts itself again; returns what went wrong.
  std::string end() {
    set_stops(1);
    await(*runtime);
    return trouble(*runtime, settled_stats(*runtime), usual_options(runtime->where()).memory_limit);
  }

  /// Twice as many as there are workers: there is always one waiting.
  unsigned crowd() const { return runtime->stats().workers * 2; }
};

/// From submit until the host sees what the task wrote, in microseconds: start and way back.
double urgent_once(const session& s, scene& on) {
  const std::uint32_t value = ++on.value;
  const auto began = clock::now();
  on.runtime->submit(touch{&on.touched, value, 0}, priority::urgent);
  for (unsigned turn = 1; host_word(on.touched).load(simt::acquire) != value; ++turn) {
    if (!s.gpu()) std::this_thread::yield();  // the lanes need the processor
    if (turn % 1024 != 0) continue;
    interrupt::check();
    if (microseconds_since(began) > 10e6)
      throw std::runtime_error("an urgent task did not start within 10 s while low work ran");
  }
  return microseconds_since(began);
}

samples urgent_many(const session& s, scene& on, const std::string& what, double tile_us) {
  std::uint64_t random = 1;
  return s.repeat(what, {10, s.sized(5'000u, 100u), s.sized(20.0, 4.0)}, [&] {
    // At a random moment of a tile.
    random = random * 6364136223846793005u + 1442695040888963407u;
    const double wait_us = static_cast<double>(random >> 33) / 0x1p31 * 2 * tile_us;
    const auto began = clock::now();
    while (microseconds_since(began) < wait_us) std::this_thread::yield();
    return urgent_once(s, on);
  });
}

void wait_for_tiles(scene& on, std::uint64_t tiles) {
  const auto began = clock::now();
  while (on.counted()[0] < tiles) {
    interrupt::sleep_for_seconds(0.001);
    if (microseconds_since(began) > 20e6)
      throw std::runtime_error("the low-priority work did not start within 20 s");
  }
}

void urgent_past_tiles(session& s, std::uint32_t tile_us) {
  const double ping_pong = ping_pong_limit(s);
  scene on(s);
  row idle("urgent task, nothing else to do");
  const samples alone = urgent_many(s, on, "urgent, idle", tile_us);
  s.out.add(idle.latency(alone).limit("ping-pong p50", "p50_us", ping_pong));

  const unsigned crowd = on.crowd();
  on.runtime->submit(std::vector<tile>(crowd, {on.stop, on.counts.data(), tile_us * 1000, 0}),
                     priority::low);
  wait_for_tiles(on, crowd);
  const auto began = clock::now();
  const std::uint64_t before = on.counted()[0];
  const samples us = urgent_many(s, on, "urgent, tiles", tile_us);
  const double seconds = microseconds_since(began) / 1e6;
  const std::uint64_t tiles = on.counted()[0] - before;
  const std::string wrong = on.end();
  row busy("urgent task, workers full of low-priority tiles of " + std::to_string(tile_us) + " us");
  busy.latency(us)
      .set("low_tiles_per_s", static_cast<double>(tiles) / seconds)
      .check(tiles > 0, "the low-priority work did not run meanwhile")
      .check(wrong.empty(), wrong)
      .limit("nothing else to do", "p50_us", alone.median())
      .at_most("p99_us", tile_us + 10.0, "a tile + 10 us");
  s.out.add(busy);
}

void urgent_past_long_tasks(session& s, std::uint32_t tile_us) {
  scene on(s);
  const unsigned crowd = on.crowd();
  const std::uint32_t length = s.sized(1000u, 50u);
  on.runtime->submit(
      std::vector<sliced>(crowd, {on.stop, on.counts.data(), tile_us * 1000, length, length}),
      priority::low);
  wait_for_tiles(on, crowd / 2);
  const samples us = urgent_many(s, on, "urgent, long tasks", tile_us);
  const auto counted = on.counted();
  const std::string wrong = on.end();
  row busy("urgent task, workers full of low tasks of " + std::to_string(length) + " such tiles");
  busy.latency(us)
      .set("made_way_tasks", static_cast<double>(counted[1]))
      .check(counted[1] > 0, "no long task made way")
      .check(wrong.empty(), wrong)
      .note("the tasks ask yield_to_higher() after each tile")
      .at_most("p99_us", tile_us + 10.0, "a tile + 10 us");
  s.out.add(busy);
}

// Urgent work that never ends fills every worker; low work must still get done.
void low_under_urgent(session& s, std::uint32_t tile_us) {
  scene on(s);
  const unsigned crowd = on.crowd();
  on.runtime->submit(std::vector<tile>(crowd, {on.stop, on.counts.data(), tile_us * 1000, 0}),
                     priority::urgent);
  wait_for_tiles(on, crowd);
  const std::uint64_t before = on.counted()[0];
  const std::uint32_t n = s.sized(1000u, 64u);
  const auto began = clock::now();
  const ticket low = on.runtime->submit(
      std::vector<tile>(n, {on.at_once, on.counts.data() + 2, tile_us * 1000, 0}), priority::low);
  while (!low.wait_for(std::chrono::milliseconds(20)) && microseconds_since(began) < 20e6)
    interrupt::check();
  const double seconds = microseconds_since(began) / 1e6;
  const auto counted = on.counted();
  const bool done = low.done();
  const std::string wrong = on.end();
  row r("low-priority tiles, workers full of urgent ones");
  const double all = static_cast<double>(counted[0] - before + counted[2]);
  r.set("tiles", n)
      .set("done_ms", seconds * 1e3)
      .set("low_share_percent", all > 0 ? 100.0 * static_cast<double>(counted[2]) / all : 0)
      .check(done && counted[2] == n, "starved: " + grouped(counted[2]) + " of " + grouped(n) +
                                          " low-priority tiles ran within 20 s")
      .check(wrong.empty(), wrong)
      .note("ageing: a worker looks for low work first once in 32 turns");
  s.out.add(r);
}

}  // namespace

void bench_priority(session& s) {
  const auto tile_us = static_cast<std::uint32_t>(s.number(0).value_or(100));
  urgent_past_tiles(s, tile_us);
  urgent_past_long_tasks(s, tile_us);
  low_under_urgent(s, tile_us);
}

}  // namespace grosr::tool
