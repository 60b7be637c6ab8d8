// `grosr bench allocator-stress`: whether a heap gives the same memory again and again, for other
// sizes, freed by other threads; and whether anything breaks under random traffic.
#include <algorithm>
#include <iterator>

#include "cases/benches.hpp"
#include "cli/interrupt.hpp"
#include "cli/text.hpp"
#include "work/blocks.hpp"

namespace grosr::tool {
namespace {

double share(std::uint64_t part, std::uint64_t of) {
  return of == 0 ? 0 : static_cast<double>(part) / static_cast<double>(of);
}

// Threads with arrays that hold as many blocks of `size` as the heap has bytes for.
block_traffic filling(const session& s, const heap& h, std::uint32_t size) {
  const std::size_t blocks = h.bytes() / size;
  std::uint32_t threads = s.sized(131'072u, 1024u);
  while (blocks % threads != 0) threads /= 2;
  return {s.where, &h, threads, static_cast<std::uint32_t>(blocks / threads)};
}

void check_all(row& r, const heap& h, std::uint64_t wrong_stamps) {
  const std::string wrong = trouble(h);
  r.check(wrong_stamps == 0, grouped(wrong_stamps) + " blocks were overwritten by others")
      .check(wrong.empty(), wrong);
}

void fill_again(session& s, const heap& h, std::uint32_t size, double least_usable) {
  const std::string name = "filled with " + grouped(size) + " B, 15/16 freed, filled again";
  progress shown(name, 4);
  block_traffic t = filling(s, h, size);
  const traffic filled = t.allocate({size, size}, true);
  shown.next();
  const traffic freed = t.release(15, 16, true);
  shown.next();
  const traffic again = t.refill({size, size}, true);
  shown.next();
  const traffic last = t.release(1, 1, true);
  row r(name);
  r.set("blocks", static_cast<double>(filled.got))
      .set("usable_share", share(filled.got * size, h.bytes() + h.report().metadata))
      .set("got_back_share", share(std::min(again.got, freed.got), freed.got))
      .set("fill_allocations_per_s",
           filled.us > 0 ? static_cast<double>(filled.got) * 1e6 / filled.us : 0)
      .set("refill_allocations_per_s",
           again.us > 0 ? static_cast<double>(again.got) * 1e6 / again.us : 0)
      .at_least("got_back_share", 0.99);
  if (least_usable > 0) r.at_least("usable_share", least_usable);
  check_all(r, h, freed.wrong + last.wrong);
  s.out.add(r);
}

// Each filling needs memory that was of the class before.
void shift_classes(session& s, const heap& h) {
  const std::string name = "filled with 64 B, freed, 1 KB, freed, 64 KB, freed, half of it at once";
  progress shown(name, 4);
  row r(name);
  std::uint64_t wrong = 0;
  const auto fill = [&](std::uint32_t size, const std::string& key) {
    block_traffic t = filling(s, h, size);
    const traffic filled = t.allocate({size, size}, true);
    wrong += t.release(1, 1, true).wrong;
    r.set(key, share(filled.got, filled.asked));
    shown.next();
  };
  fill(64, "of_64_B_share");
  fill(1024, "of_1_KB_share");
  fill(65'536, "of_64_KB_share");
  const traffic half = block_traffic(s.where, &h, 32, 1).get_one(h.bytes() / 2);
  r.set("of_half_share", share(half.got, half.asked));
  for (const char* key : {"of_64_B_share", "of_1_KB_share", "of_64_KB_share", "of_half_share"})
    r.at_least(key, 1);
  check_all(r, h, wrong + half.wrong);
  s.out.add(r);
}

void pass_on(session& s, const heap& h) {
  // Half of what a GPU can hold: all threads must be there at once.
  const std::uint32_t threads = s.sized(std::min(65'536u, s.where.properties().sms * 512), 256u);
  const std::uint32_t turns = s.sized(400u, 20u);
  const block_sizes sizes{16, 1024};
  block_traffic t(s.where, &h, threads, 1);
  std::uint64_t wrong = 0;
  traffic last;
  const samples us = s.repeat("passed on", {1, s.sized(11u, 3u), 3.0}, [&] {
    last = t.pass_on(sizes, turns);
    wrong += last.wrong;
    return last.us;
  });
  row r("passed to other threads, which free: " + grouped(threads) + " threads, 16 to 1,024 B");
  r.rate(us, "pairs", static_cast<double>(last.got))
      .set("success_share", share(last.got, last.asked))
      .at_least("success_share", 1);
  check_all(r, h, wrong);
  s.out.add(r);
}

struct shape {
  block_sizes sizes;
  std::uint32_t turns;
};

// Rounds of some 300 ms; the last shape asks for more than there is.
void random_traffic(session& s, const heap& h, double seconds) {
  const std::uint32_t outstanding = 16, threads = s.sized(65'536u, 512u);
  const auto beyond = static_cast<std::uint32_t>(h.bytes() / threads / outstanding * 3);
  shape shapes[] = {{{16, 128}, 32}, {{64, 512}, 32}, {{16, 4096}, 32}, {{64, beyond}, 32}};
  block_traffic t(s.where, &h, threads, outstanding);
  std::uint64_t rounds = 0, got = 0, wrong = 0, failed = 0;
  double device_us = 0;
  std::string broken;
  progress shown("random traffic, seconds", static_cast<std::uint64_t>(seconds));
  const auto began = clock::now();
  while (microseconds_since(began) < seconds * 1e6 && broken.empty() && wrong == 0 &&
         !interrupt::requested()) {
    shape& now = shapes[rounds++ % std::size(shapes)];
    const traffic round = t.churn(now.sizes, now.turns, true);
    if (round.us < 150e3) now.turns *= 2;
    if (round.us > 600e3 && now.turns > 32) now.turns /= 2;
    got += round.got;
    wrong += round.wrong;
    failed += round.asked - round.got;
    device_us += round.us;
    broken = trouble(h);
    if (!interrupt::requested())
      shown.at(static_cast<std::uint64_t>(microseconds_since(began) / 1e6));
  }
  row r("random traffic for " + three_digits(microseconds_since(began) / 1e6) + " s, " +
        grouped(threads) + " threads, 16 to " + grouped(beyond) + " B");
  r.set("allocations", static_cast<double>(got))
      .set("allocations_per_s", device_us > 0 ? static_cast<double>(got) * 1e6 / device_us : 0)
      .set("rounds", static_cast<double>(rounds))
      .set("failed_allocations", static_cast<double>(failed))
      .set("wrong_stamps", static_cast<double>(wrong))
      .set("live_blocks", static_cast<double>(h.report().live))
      .at_most("wrong_stamps", 0)
      .at_most("live_blocks", 0)
      .note("allocations fail where more is asked for than there is, in every fourth round");
  check_all(r, h, wrong);
  s.out.add(r);
}

}  // namespace

void bench_allocator_stress(session& s) {
  const auto seconds = static_cast<double>(s.number(0).value_or(s.sized(60u, 3u)));
  const std::size_t mb = 1 << 20;
  const heap h(s.where, s.sized(8192 * mb, 16 * mb));
  fill_again(s, h, 64, 0.95);
  fill_again(s, h, 512, 0);
  shift_classes(s, h);
  pass_on(s, h);
  random_traffic(s, h, seconds);
  interrupt::check();
}

}  // namespace grosr::tool
