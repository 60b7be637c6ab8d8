// `grosr bench syscalls`: what calls cost, and how many there can be, beside the limits of the run.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "cases/benches.hpp"
#include "cli/interrupt.hpp"
#include "cli/text.hpp"
#include "limits/limits.hpp"
#include "work/calls.hpp"
#include "work/sample_file.hpp"

namespace grosr::tool {
namespace {

sys::options with_threads(unsigned threads) {
  sys::options o;
  o.threads = threads;
  return o;
}

double cpu_percent_over(double seconds) {
  const auto used = [] {
    rusage u{};
    getrusage(RUSAGE_SELF, &u);
    const auto s = [](const timeval& t) { return double(t.tv_sec) + double(t.tv_usec) / 1e6; };
    return s(u.ru_utime) + s(u.ru_stime);
  };
  const double before = used();
  const auto began = clock::now();
  interrupt::sleep_for_seconds(seconds);
  return 100 * (used() - before) / (microseconds_since(began) / 1e6);
}

void latency_rows(session& s) {
  const double round_trip = limits::pong_ping(s.where, s.sized(5000u, 200u)).us.median();
  s.out.limit("device_cpu_device_p50_us", round_trip);
  sys::options o = with_threads(1);
  o.spin = std::chrono::milliseconds(20);
  {
    const sys::server server(s.where, o);
    row r("one warp, no-op, server awake");
    r.latency(time_calls(s.where, server, s.sized(20'000u, 500u), 0))
        .limit("device - CPU - device p50", "p50_us", round_trip)
        .at_most("p50_us", 1.6 * round_trip, "1.6x the ping-pong")
        .check(r.value("max_us") < 1e8, "a call failed");
    s.out.add(r);
  }
  const double bare = limits::doorbell_ping(s.where, s.sized(200u, 30u)).us.median();
  const sys::server server(s.where, with_threads(1));
  row r("one warp, no-op, server asleep");
  r.latency(time_calls(s.where, server, s.sized(300u, 50u), s.sized(2000.0, 5000.0)))
      .limit("waking a thread of the CPU, and nothing else, p50", "p50_us", bare)
      .at_most("p50_us", 60)
      .check(r.value("max_us") < 1e8, "a call failed");
  s.out.add(r);
  row idle("server idle: CPU time of the whole process");
  interrupt::sleep_for_seconds(0.05);
  idle.set("cpu_percent", cpu_percent_over(s.sized(2.0, 0.5))).at_most("cpu_percent", 0.5);
  s.out.add(idle);
}

// What threads of the CPU alone make of a call a second.
double cpu_calls(unsigned threads, unsigned each) {
  std::vector<std::jthread> all;
  const auto began = clock::now();
  for (unsigned t = 0; t < threads; ++t)
    all.emplace_back([each] {
      for (unsigned i = 0; i < each; ++i) ::syscall(SYS_getppid);
    });
  for (auto& t : all) t.join();
  return static_cast<double>(threads) * each * 1e6 / microseconds_since(began);
}

void rate_row(session& s, const std::string& name, double least, double cpu_alone, auto&& once) {
  call_traffic last;
  std::uint64_t wrong = 0;
  const samples us = s.repeat(name, {1, s.sized(9u, 3u), 3.0}, [&] {
    last = once();
    wrong += last.wrong;
    return last.us;
  });
  row r(name);
  r.rate(us, "calls", static_cast<double>(last.calls))
      .check(wrong == 0, grouped(wrong) + " calls had a wrong result");
  if (cpu_alone > 0) r.limit("the CPU's threads alone", "calls_per_s", cpu_alone);
  if (s.gpu() && least > 0) r.at_least("calls_per_s", least);
  s.out.add(r);
}

void rate_rows(session& s) {
  const device_properties p = s.where.properties();
  const simt::shape warps = s.gpu() ? simt::shape{p.sms * 4, 64} : simt::shape{2, 64};
  const simt::shape lanes = s.gpu() ? simt::shape{p.sms * 4, 32} : simt::shape{2, 64};
  for (unsigned threads : {1u, 8u}) {
    if (threads != 1 && !s.gpu()) continue;
    const sys::server server(s.where, with_threads(threads));
    const std::string by = threads == 1 ? ", one service thread" : ", 8 service threads";
    rate_row(s, "no-op by warps of all SMs" + by, threads == 1 ? 60e6 : 0, 0, [&] {
      return call_nothing(s.where, server, warps, called_by::warp, s.sized(1000u, 10u));
    });
    rate_row(s, "no-op by lanes of all SMs" + by, threads == 8 ? 200e6 : 0, 0, [&] {
      return call_nothing(s.where, server, lanes, called_by::lane, s.sized(100u, 3u));
    });
    const double alone = cpu_calls(threads, s.sized(500'000u, 10'000u));
    rate_row(s, "getppid by warps of all SMs" + by, threads == 8 ? 60e6 : 0, alone,
             [&] { return call_getppid(s.where, server, warps, s.sized(500u, 10u)); });
  }
}

// What threads of the CPU alone read of the page cache into their own memory.
double cpu_reads(const sample_file& f, std::uint32_t piece, unsigned threads) {
  std::vector<std::jthread> all;
  const auto began = clock::now();
  for (unsigned t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      std::vector<char> to(piece);
      for (std::uint64_t at = std::uint64_t{t} * piece; at < f.bytes();
           at += std::uint64_t{threads} * piece)
        if (::pread(f.descriptor(), to.data(), piece, static_cast<off_t>(at)) < 0) break;
    });
  for (auto& t : all) t.join();
  return static_cast<double>(f.bytes()) / microseconds_since(began) / 1e3;
}

void read_rows(session& s) {
  const std::size_t mb = 1 << 20;
  const double bus = limits::copy_to_device(s.where, s.sized(256 * mb, 2 * mb)).number;
  s.out.limit("bus_copy_to_device_gb_per_s", bus);
  const unsigned threads = s.sized(12u, 2u);
  const sample_file f(s.sized(std::uint64_t{1} << 30, std::uint64_t{1} << 20));
  sys::server server(s.where, with_threads(threads));
  server.grant(f.descriptor());
  const simt::shape grid =
      s.gpu() ? simt::shape{s.where.properties().sms * 2, 256} : simt::shape{2, 64};
  file_reader reader(s.where, server, grid);
  for (std::uint32_t piece : {4096u, 16384u, 65536u, 262144u, 1048576u}) {
    if (!s.gpu() && piece > 65536) continue;
    const called_by who = piece < 65536 ? called_by::warp : called_by::block;
    const std::string name = "pread " + grouped(piece) + " B by " +
                             (who == called_by::warp ? "warps" : "blocks") + ", " +
                             grouped(threads) + " threads";
    double alone = 0;
    for (int i = 0; i < 3; ++i) alone = std::max(alone, cpu_reads(f, piece, threads));
    call_traffic last;
    std::uint64_t wrong = 0;
    bool check = true;
    const samples us = s.repeat(name, {1, s.sized(7u, 3u), 4.0}, [&] {
      last = reader.read({f.descriptor(), f.bytes(), piece, who}, check);
      check = false;
      wrong += last.wrong;
      return last.us;
    });
    row r(name);
    r.rate(us, "calls", static_cast<double>(last.calls))
        .set("gb_per_s", static_cast<double>(f.bytes()) / us.median() / 1e3)
        .check(wrong == 0, grouped(wrong) + " calls were short or brought other bytes")
        .limit("bus, copy to the device", "gb_per_s", bus)
        .baseline("the CPU alone, into its own memory", "gb_per_s", alone);
    if (s.gpu() && piece == 4096) r.at_least("calls_per_s", 7e6);
    if (s.gpu() && piece >= 65536)
      r.at_least("gb_per_s", std::min(0.9 * bus, 0.8 * alone), "90% of the bus, 80% of the CPU");
    s.out.add(r);
  }
}

// What threads of the CPU alone read of the disk. Like the GPU's blocks they take pieces in turn.
double cpu_disk_reads(const sample_file& f, std::uint32_t piece, unsigned threads) {
  f.forget();
  return cpu_reads(f, piece, threads);
}

// Calls that wait for the disk, as many under way as there are warps or blocks.
void disk_rows(session& s) {
  const sample_file f(s.sized(std::uint64_t{1} << 28, std::uint64_t{1} << 20));
  const simt::shape grid =
      s.gpu() ? simt::shape{s.where.properties().sms * 2, 256} : simt::shape{2, 64};
  for (std::uint32_t piece : {4096u, 65536u}) {
    const double disk = cpu_disk_reads(f, piece, 64), alone = cpu_disk_reads(f, piece, 1);
    for (unsigned threads : {1u, 12u})
      for (bool io_uring : {true, false}) {
        if (!s.gpu() && threads != 1) continue;
        sys::options o = with_threads(threads);
        o.io_uring = io_uring;
        sys::server server(s.where, o);
        server.grant(f.descriptor());
        file_reader reader(s.where, server, grid);
        const std::string name = "pread " + grouped(piece) + " B of the disk, " + grouped(threads) +
                                 " threads, io_uring " + (io_uring ? "on" : "off");
        call_traffic last;
        std::uint64_t wrong = 0;
        const called_by who = piece < 65536 ? called_by::warp : called_by::block;
        const samples us = s.repeat(name, {1, s.sized(5u, 3u), 4.0}, [&] {
          f.forget();
          last = reader.read({f.descriptor(), f.bytes(), piece, who}, true);
          wrong += last.wrong;
          return last.us;
        });
        row r(name);
        r.rate(us, "calls", static_cast<double>(last.calls))
            .set("gb_per_s", static_cast<double>(f.bytes()) / us.median() / 1e3)
            .check(wrong == 0, grouped(wrong) + " calls were short or brought other bytes")
            .limit("64 threads of the CPU", "gb_per_s", disk)
            .baseline("one thread of the CPU", "gb_per_s", alone);
        if (io_uring && server.statistics().by_ring == 0) r.note("there is no io_uring here");
        s.out.add(r);
      }
  }
}

/// Says so when its scope ends, however: threads that look at it are joined after it.
struct set_at_end {
  std::atomic<bool>& flag;
  ~set_at_end() { flag = true; }
};

/// What a CPU-bound program with so many threads makes a second.
double compute(unsigned threads, double seconds) {
  std::atomic<bool> ends{false};
  std::atomic<std::uint64_t> all{0};
  std::vector<std::jthread> program;
  const set_at_end stop{ends};  // Ctrl-C is an exception
  const auto began = clock::now();
  for (unsigned t = 0; t < threads; ++t)
    program.emplace_back([&, t] {
      std::uint64_t rounds = 0, x = t + 1;
      for (; !ends.load(std::memory_order_relaxed); ++rounds)
        for (int i = 0; i < 1000; ++i) x = x * 6364136223846793005ull + 1442695040888963407ull;
      all += rounds + (x == 0 ? 1 : 0);
    });
  interrupt::sleep_for_seconds(seconds);
  ends = true;
  program.clear();
  return static_cast<double>(all.load()) * 1e6 / microseconds_since(began);
}

void neighbour_row(session& s) {
  const unsigned serving = s.sized(4u, 1u);
  const unsigned others = std::max(std::thread::hardware_concurrency(), serving + 2) - serving - 1;
  const sys::server server(s.where, with_threads(serving));
  const simt::shape grid =
      s.gpu() ? simt::shape{s.where.properties().sms * 4, 64} : simt::shape{1, 64};
  std::uint64_t wrong = 0, calls = 0;
  const std::string name = "a CPU-bound program on the other processors, while " +
                           grouped(serving) + " serve all SMs: slower by";
  const samples slower = s.repeat(name, {1, s.sized(5u, 3u), 6.0}, [&] {
    const double seconds = s.sized(0.3, 0.05);
    const double alone = compute(others, seconds);
    std::atomic<bool> ends{false};
    std::jthread traffic([&] {
      while (!ends) {
        const call_traffic t = call_getppid(s.where, server, grid, s.sized(2000u, 5u));
        wrong += t.wrong;
        calls += t.calls;
      }
    });
    const set_at_end stop{ends};
    const double beside = compute(others, seconds);
    ends = true;
    traffic.join();
    return 100 * (alone - beside) / alone;
  });
  row r(name);
  r.set("median_percent", slower.median())
      .set("calls", static_cast<double>(calls))
      .at_most("median_percent", 5)
      .check(wrong == 0 && calls != 0, grouped(wrong) + " calls had a wrong result");
  s.out.add(r);
}

}  // namespace

void bench_syscalls(session& s) {
  latency_rows(s);
  rate_rows(s);
  read_rows(s);
  disk_rows(s);
  neighbour_row(s);
}

}  // namespace grosr::tool
