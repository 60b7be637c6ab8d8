// `grosr bench forkjoin-sweep`: how programs of forks and joins scale over multiprocessors, what
// less task memory costs, how many lanes have a task of their own, and for how long workers have
// none.
#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "cases/benches.hpp"
#include "cli/text.hpp"
#include "grosr/simt/buffer.hpp"
#include "recursion/cilksort.hpp"
#include "recursion/fib.hpp"
#include "recursion/queens.hpp"
#include "recursion/strassen.hpp"

namespace grosr::tool {
namespace {

struct outcome {
  samples us;
  runtime_stats stats;
  double without_work;  ///< of the workers' time in one run, percent
  std::string wrong;
};

/// A program at one size.
struct subject {
  std::string name, noun;
  double count;
  bool by_lanes;  ///< all of its tasks are
  std::function<outcome(const std::string& title, const runtime_options&)> measure;
};

plan a_few(const session& s) { return {1, s.sized(5u, 2u), 4.0}; }

/// A program's counters when the last worker has told its own, which it does when it rests.
template <class Program>
runtime_stats settled(Program& p) {
  p.stats();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return p.stats();
}

/// `run` runs the program once, and returns how many microseconds that took.
template <class Program, class Run>
outcome measured(session& s, const std::string& title, Program& p, Run&& run) {
  outcome r{s.repeat(title, a_few(s), run), {}, 0, ""};
  const std::uint64_t before = settled(p).busy_ns;
  const double us = run();
  r.stats = settled(p);
  const double busy_us = static_cast<double>(r.stats.busy_ns - before) / 1000;
  r.without_work = std::max(0.0, 100 * (1 - busy_us / (us * r.stats.workers)));
  return r;
}

subject fib_subject(session& s) {
  const std::uint32_t n = s.sized(34u, 10u);
  return {"fib(" + std::to_string(n) + ")", "calls", static_cast<double>(recursion::fib_calls(n)),
          true, [&s, n](const std::string& title, const runtime_options& o) {
            recursion::fib program(s.where, o);
            std::uint64_t got = 0;
            outcome r =
                measured(s, title, program, [&] { return timed([&] { got = program.run(n); }); });
            if (got != recursion::fib_number(n)) r.wrong = "it is not the number";
            return r;
          }};
}

subject queens_subject(session& s) {
  const std::uint32_t n = s.sized(15u, 7u), base = s.sized(5u, 3u);
  return {
      std::to_string(n) + " queens", "solutions", static_cast<double>(recursion::queens_number(n)),
      true, [&s, n, base](const std::string& title, const runtime_options& o) {
        recursion::queens program(s.where, o);
        std::uint64_t got = 0;
        outcome r =
            measured(s, title, program, [&] { return timed([&] { got = program.run(n, base); }); });
        if (got != recursion::queens_number(n)) r.wrong = "it is not their number";
        return r;
      }};
}

subject sort_subject(session& s) {
  const std::size_t count = s.sized(10'000'000u, 5'000u);
  return {"cilksort of " + grouped(count) + " keys", "keys", static_cast<double>(count), false,
          [&s, count](const std::string& title, const runtime_options& o) {
            std::vector<std::uint32_t> keys(count);
            std::uint32_t x = 1;
            for (std::uint32_t& k : keys) k = x = x * 1664525u + 1013904223u;
            const auto device = simt::space::device;
            simt::buffer<std::uint32_t> given(s.where, device, count),
                sorted(s.where, device, count), scratch(s.where, device, count);
            given.copy_from(keys);
            recursion::cilksort program(s.where, o);
            outcome r = measured(s, title, program, [&] {
              simt::copy_bytes(s.where, sorted.data(), given.data(), given.bytes());
              return timed([&] { program.run(sorted, scratch); });
            });
            std::vector<std::uint32_t> got(count);
            sorted.copy_to(got);
            std::sort(keys.begin(), keys.end());
            if (got != keys) r.wrong = "they are not sorted";
            return r;
          }};
}

subject strassen_subject(session& s) {
  const std::uint32_t n = s.sized(4096u, 128u), leaf = s.sized(1024u, 64u);
  const double flop = 2.0 * n * n * n;
  return {"Strassen, " + std::to_string(n) + " x " + std::to_string(n), "flop", flop, false,
          [&s, n, leaf](const std::string& title, const runtime_options& o) {
            using recursion::strassen;
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
            strassen program(s.where, o);
            outcome r = measured(s, title, program, [&] {
              return timed([&] { program.run(da, db, dc, arena, n, leaf); });
            });
            dc.copy_to(c);
            if (!recursion::is_product(a, b, c, n)) r.wrong = "it is not the product";
            return r;
          }};
}

/// The share of the lanes of warps that ran batches which had a task.
double lanes_busy(const runtime_stats& s) {
  const double apart = static_cast<double>(s.joined + s.inlined);
  return s.batches == 0
             ? 0
             : 100 * (static_cast<double>(s.tasks) - apart) / (32 * static_cast<double>(s.batches));
}

double add_row(session& s, const subject& p, const std::string& name, const char* by, double places,
               const runtime_options& o, const outcome& got, const char* beside_what,
               double beside) {
  const std::string key = p.noun + "_per_s";
  row r(name);
  r.rate(got.us, p.noun, p.count)
      .set(by, places)
      .set("memory_bytes", static_cast<double>(got.stats.memory))
      .set("workers_without_work_percent", got.without_work)
      .check(got.wrong.empty(), got.wrong)
      .check(got.stats.rejected == 0, grouped(got.stats.rejected) + " tasks found no room")
      .check(got.stats.memory <= o.memory_limit, "task memory is above its limit");
  if (p.by_lanes) r.set("lanes_with_a_task_percent", lanes_busy(got.stats));
  if (beside != 0) r.baseline(beside_what, key, beside);
  s.out.add(r);
  return r.value(key);
}

void over_processors(session& s, const subject& p) {
  const unsigned all = s.where.properties().sms;
  std::vector<unsigned> counts;
  for (unsigned n = 1; n < all; n *= 2) counts.push_back(n);
  counts.push_back(all);
  double one = 0;
  for (const unsigned n : counts) {
    runtime_options o;
    o.sms = n;
    o.memory_limit = std::size_t{1} << 30;
    if (!s.gpu()) o.memory_limit = std::size_t{64} << 20;
    const std::string name =
        p.name + " on " + std::to_string(n) + " of " + std::to_string(all) + " multiprocessors";
    const double rate =
        add_row(s, p, name, "multiprocessors", n, o, p.measure(name, o), "on one", one);
    if (n == 1) one = rate;
  }
}

void over_memory(session& s, const subject& p) {
  const std::vector<std::size_t> sizes =
      s.gpu() ? std::vector<std::size_t>{96, 128, 256, 512, 1024, 3072}
              : std::vector<std::size_t>{8, 16, 64};
  for (const std::size_t mib : sizes) {
    runtime_options o;
    o.memory_limit = mib << 20;
    const std::string name = p.name + " in " + std::to_string(mib) + " MiB of task memory";
    try {
      add_row(s, p, name, "limit_mib", static_cast<double>(mib), o, p.measure(name, o), "", 0);
    } catch (const error& e) {
      if (e.code() != errc::invalid_option) throw;
      s.out.remark(name + ": " + e.what());
    }
  }
}

}  // namespace

void bench_forkjoin_sweep(session& s) {
  for (const subject& p :
       {fib_subject(s), queens_subject(s), sort_subject(s), strassen_subject(s)}) {
    over_processors(s, p);
    over_memory(s, p);
  }
}

}  // namespace grosr::tool
