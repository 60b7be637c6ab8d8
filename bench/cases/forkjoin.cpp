// `grosr bench forkjoin`: programs whose tasks fork and join.
#include <algorithm>

#include "cases/benches.hpp"
#include "cli/text.hpp"
#include "grosr/simt/buffer.hpp"
#include "recursion/cilksort.hpp"
#include "recursion/fib.hpp"
#include "recursion/mergesort.hpp"
#include "recursion/queens.hpp"
#include "recursion/strassen.hpp"
#include "recursion/uts.hpp"

namespace grosr::tool {
namespace {

using recursion::fib_calls;

/// Task memory for deep recursion on a GPU: below 4 GB.
runtime_options with_room(session& s, std::size_t on_gpu) {
  runtime_options o;
  if (s.gpu()) o.memory_limit = on_gpu;
  return o;
}

template <class Program>
row& finish(session& s, row& r, Program& p, const runtime_options& o) {
  const runtime_stats stats = p.stats();
  r.set("memory_bytes", static_cast<double>(stats.memory))
      .check(stats.rejected == 0, grouped(stats.rejected) + " tasks found no room")
      .check(stats.failed == 0, grouped(stats.failed) + " tasks failed")
      .check(stats.memory <= o.memory_limit, "task memory is above its limit");
  s.out.add(r);
  return r;
}

void numbers(session& s) {
  const runtime_options o = with_room(s, std::size_t{3500} << 20);
  recursion::fib program(s.where, o);
  for (const std::uint32_t n : {s.sized(30u, 12u), s.sized(40u, 15u)}) {
    const std::string name = "fib(" + std::to_string(n) + "), no cutoff";
    std::uint64_t got = 0;
    const samples us = s.repeat(name, {2, s.sized(21u, 3u), 10.0},
                                [&] { return timed([&] { got = program.run(n); }); });
    std::uint64_t on_cpu = 0;
    const double cpu_us = timed([&] { on_cpu = recursion::fib_on_host(n); });
    const auto calls = static_cast<double>(fib_calls(n));
    row r(name + ": " + grouped(fib_calls(n)) + " calls");
    r.rate(us, "calls", calls)
        .baseline("one CPU thread, as the compiler unrolls the recursion", "calls_per_s",
                  calls * 1e6 / cpu_us)
        .check(got == recursion::fib_number(n) && got == on_cpu, "it is not " + grouped(on_cpu));
    if (s.gpu() && n == 30) r.at_most("median_us", 800);
    if (s.gpu() && n == 40) r.at_least("calls_per_s", 6e9).at_most("memory_bytes", 4e9);
    finish(s, r, program, o);
  }
}

void boards(session& s) {
  const runtime_options o = with_room(s, std::size_t{2} << 30);
  recursion::queens program(s.where, o);
  const std::uint32_t n = s.sized(16u, 8u);
  for (const std::uint32_t base : {4u, 5u, 6u}) {
    const std::string name =
        std::to_string(n) + " queens, the last " + std::to_string(base) + " rows in one task";
    std::uint64_t got = 0;
    const samples us = s.repeat(name, {1, s.sized(11u, 3u), 10.0},
                                [&] { return timed([&] { got = program.run(n, base); }); });
    row r(name);
    r.rate(us, "solutions", static_cast<double>(recursion::queens_number(n)))
        .check(got == recursion::queens_number(n),
               "there are " + grouped(recursion::queens_number(n)) + ", not " + grouped(got));
    if (s.gpu() && base == 6) r.at_most("median_us", 90'000);
    finish(s, r, program, o);
  }
}

/// The sum of a mix of each key: the same for keys in any order.
std::uint64_t sum_of_mixed(const std::vector<std::uint32_t>& keys) {
  std::uint64_t sum = 0;
  for (std::uint64_t k : keys) sum += (k + 1) * 0x9e3779b97f4a7c15ull ^ k << 29;
  return sum;
}

template <class Sort>
void sorts(session& s, const char* what, std::size_t count, double goal_us) {
  const runtime_options o;
  Sort program(s.where, o);
  std::vector<std::uint32_t> keys(count);
  std::uint64_t x = 1;
  for (std::uint32_t& k : keys)
    k = static_cast<std::uint32_t>((x = x * 6364136223846793005ull + 1442695040888963407ull) >> 32);
  const auto device = simt::space::device;
  simt::buffer<std::uint32_t> given(s.where, device, count), sorted(s.where, device, count),
      scratch(s.where, device, count);
  given.copy_from(keys);
  const std::string name = std::string(what) + ", " + grouped(count) + " keys";
  const samples us = s.repeat(name, {1, s.sized(11u, 3u), 10.0}, [&] {
    simt::copy_bytes(s.where, sorted.data(), given.data(), given.bytes());
    return timed([&] { program.run(sorted, scratch); });
  });
  std::vector<std::uint32_t> got(count);
  sorted.copy_to(got);
  row r(name);
  r.rate(us, "keys", static_cast<double>(count))
      .check(std::is_sorted(got.begin(), got.end()), "they are not sorted")
      .check(sum_of_mixed(got) == sum_of_mixed(keys), "they are not the keys that were given");
  if (count <= 10'000'000) {
    const double cpu_us = timed([&] { std::sort(keys.begin(), keys.end()); });
    r.baseline("std::sort, one CPU thread", "keys_per_s", static_cast<double>(count) * 1e6 / cpu_us)
        .check(got == keys, "they are not what std::sort makes of them");
  }
  if (s.gpu()) r.at_most("median_us", goal_us);
  finish(s, r, program, o);
}

void trees(session& s) {
  const runtime_options o = with_room(s, std::size_t{3} << 30);
  recursion::uts program(s.where, o);
  for (const recursion::uts_published& t : recursion::uts_trees()) {
    if (t.name.ends_with("XXL") || t.name == "T3L") continue;  // as T1XL and T3, only longer
    if (!s.gpu() && t.name != "T1") continue;
    recursion::uts_tree tree = t.tree;
    if (!s.gpu()) tree.depth = 5;
    const std::string name = "uts " + std::string(t.name) + (s.gpu() ? "" : ", to a depth of 5");
    recursion::uts_count got{};
    const samples us = s.repeat(name, {1, s.sized(5u, 3u), 10.0},
                                [&] { return timed([&] { got = program.run(tree); }); });
    const std::uint64_t nodes = s.gpu() ? t.nodes : recursion::uts_on_host(tree).nodes;
    row r(name + ": " + grouped(nodes) + " nodes");
    r.rate(us, "nodes", static_cast<double>(nodes))
        .check(got.nodes == nodes, "there are " + grouped(nodes) + ", not " + grouped(got.nodes));
    if (s.gpu() && t.name == "T1XL") r.at_least("nodes_per_s", 4e9);
    finish(s, r, program, o);
  }
}

void products(session& s) {
  using recursion::strassen;
  const runtime_options o;
  strassen program(s.where, o);
  const std::uint32_t n = s.sized(4096u, 128u), leaf = s.sized(1024u, 64u);
  const std::size_t cells = std::size_t{n} * n;
  std::vector<float> a(cells), b(cells), c(cells);
  for (std::size_t i = 0; i < cells; ++i) {  // small whole numbers: sums are exact
    a[i] = static_cast<float>(i * 7 % 5) - 2;
    b[i] = static_cast<float>(i * 11 % 7) - 3;
  }
  const auto device = simt::space::device;
  simt::buffer<float> da(s.where, device, cells), db(s.where, device, cells),
      dc(s.where, device, cells), arena(s.where, device, strassen::arena_size(n, leaf));
  da.copy_from(a);
  db.copy_from(b);
  double plain_us = 0;
  for (const std::uint32_t side : {n, leaf}) {
    const std::string name =
        std::to_string(n) + " x " + std::to_string(n) + " floats, " +
        (side == n ? "tiles of the plain product" : "Strassen down to " + std::to_string(side));
    const samples us = s.repeat(name, {1, s.sized(11u, 3u), 10.0}, [&] {
      return timed([&] { program.run(da, db, dc, arena, n, side); });
    });
    dc.copy_to(c);
    row r(name);
    r.rate(us, "flop", 2.0 * n * n * n)
        .check(recursion::is_product(a, b, c, n), "it is not the product");
    if (side == n)
      plain_us = us.median();
    else if (s.gpu())
      r.set("faster_percent", 100 * (plain_us / us.median() - 1))
          .at_least("faster_percent", 0, "the plain product");
    finish(s, r, program, o);
  }
}

}  // namespace

void bench_forkjoin(session& s) {
  numbers(s);
  boards(s);
  sorts<recursion::mergesort>(s, "mergesort", s.sized(10'000'000u, 20'000u), 20'000);
  sorts<recursion::cilksort>(s, "cilksort", s.sized(100'000'000u, 20'000u), 60'000);
  trees(s);
  products(s);
}

}  // namespace grosr::tool
