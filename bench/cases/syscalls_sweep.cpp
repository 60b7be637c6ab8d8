// `grosr bench syscalls-sweep`: the same calls made in different ways. Rows carry what was varied
// as values of their own, so that tools/plot.py can draw them.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "cases/benches.hpp"
#include "cases/sweeps.hpp"
#include "cli/text.hpp"
#include "limits/limits.hpp"
#include "permute/permutation.hpp"
#include "work/calls.hpp"
#include "work/sample_file.hpp"

namespace grosr::tool {
namespace {

constexpr std::uint64_t kib = 1024, mib = kib * kib;

sys::options with_threads(unsigned threads) {
  sys::options o;
  o.threads = threads;
  return o;
}

// ---- granularity: a file read by lanes, by blocks, by the grid ---------------------------------

const char* name_of(read_by who) {
  return who == read_by::lane ? "lanes" : who == read_by::block ? "blocks" : "the grid";
}

row read_row(session& s, whole_reader& reader, const whole_reading& r, double bus) {
  const std::string name = "pread of " + grouped(r.bytes / kib) + " KiB by " + name_of(r.who) +
                           ", " + grouped(r.threads) + " lanes a block";
  std::uint64_t wrong = 0, calls = 0;
  bool check = true;
  const samples us = s.repeat(name, {1, s.sized(5u, 1u), 0.5}, [&] {
    const call_traffic t = reader.read(r, check);
    check = false;
    wrong += t.wrong;
    calls = t.calls;
    return t.us;
  });
  row result(name);
  result.rate(us, "calls", static_cast<double>(calls))
      .set("file_bytes", static_cast<double>(r.bytes))
      .set("lanes_a_block", r.threads)
      .set("gb_per_s", static_cast<double>(r.bytes) / us.median() / 1e3)
      .check(wrong == 0, grouped(wrong) + " calls or words were wrong")
      .limit("bus, copy to the device", "gb_per_s", bus);
  return result;
}

void granularity_rows(session& s) {
  const double bus = limits::copy_to_device(s.where, s.sized(256 * mib, 2 * mib)).number;
  s.out.limit("bus_copy_to_device_gb_per_s", bus);
  const auto sizes = s.gpu() ? std::vector<std::uint64_t>{mib, 8 * mib, 64 * mib, 512 * mib}
                             : std::vector<std::uint64_t>{64 * kib, 256 * kib};
  const sample_file f(sizes.back());
  sys::server server(s.where, with_threads(s.sized(12u, 2u)));
  server.grant(f.descriptor());
  whole_reader reader(s.where, server, f.bytes());
  for (const std::uint64_t bytes : sizes) {
    const auto row_of = [&](read_by who) {
      return read_row(s, reader, {f.descriptor(), bytes, 1024, 64, who}, bus);
    };
    const row lanes = row_of(read_by::lane), grid = row_of(read_by::grid);
    row blocks = row_of(read_by::block);
    const double best = std::min(lanes.value("median_us"), grid.value("median_us"));
    blocks.baseline("lanes", "median_us", lanes.value("median_us"))
        .baseline("the grid", "median_us", grid.value("median_us"))
        .at_most("median_us", 1.05 * best, "best or equal: 1.05x the best other");
    for (const row& r : {lanes, blocks, grid}) s.out.add(r);
  }
  const std::uint64_t bytes = s.sized(512 * mib, 256 * kib);
  for (const unsigned threads : {128u, 256u, 512u, 1024u}) {
    if (!s.gpu() && threads > 256) continue;
    s.out.add(read_row(s, reader, {f.descriptor(), bytes, 1024, threads, read_by::block}, bus));
  }
}

// ---- ordering: permuted blocks of data, written strongly or not, waited for or not -------------

class memory_files {
 public:
  explicit memory_files(unsigned n) {
    for (unsigned i = 0; i < n; ++i) {
      const int file = ::memfd_create("grosr", MFD_CLOEXEC);
      if (file < 0)
        throw error(errc::out_of_memory,
                    "make a file in memory: not possible; allow more open "
                    "files (ulimit -n)");
      files_.push_back(file);
    }
  }
  ~memory_files() {
    for (const int f : files_) ::close(f);
  }
  memory_files(const memory_files&) = delete;
  const std::vector<int>& descriptors() const { return files_; }

 private:
  std::vector<int> files_;
};

// Calls f(i) for i below n, on all processors.
template <class F>
void on_all_processors(unsigned n, F&& f) {
  std::atomic<unsigned> next{0};
  std::vector<std::jthread> all;
  for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t)
    all.emplace_back([&] {
      for (unsigned i = next++; i < n; i = next++) f(i);
    });
  for (auto& t : all) t.join();
}

// Blocks that are not what the host makes of them.
std::uint64_t wrong_blocks(const permutation& p, const std::vector<int>& files, unsigned count) {
  const std::uint32_t words = p.block_bytes / 4;
  std::atomic<std::uint64_t> wrong{0};
  on_all_processors(count, [&](unsigned b) {
    std::vector<std::uint32_t> from(words), expected(words), got(words);
    for (std::uint32_t i = 0; i < words; ++i) from[i] = sample_word(std::uint64_t{b} * words + i);
    permute_on_host(p, b, from.data(), expected.data());
    const auto at = static_cast<off_t>(b / files.size() * p.block_bytes);
    const ssize_t n = ::pread(files[b % files.size()], got.data(), p.block_bytes, at);
    wrong += n != static_cast<ssize_t>(p.block_bytes) || got != expected ? 1 : 0;
  });
  return wrong;
}

struct write_case {
  const char* name;
  writing how;
};
constexpr write_case write_cases[] = {{"strong, blocking", {false, false}},
                                      {"strong, started", {false, true}},
                                      {"relaxed, blocking", {true, false}},
                                      {"relaxed, started", {true, true}}};

// What threads of the CPU alone write of blocks a second, each to a file of its own.
double cpu_writes(const memory_files& files, unsigned threads, std::uint32_t bytes, unsigned each) {
  std::vector<std::jthread> all;
  const auto began = clock::now();
  for (unsigned t = 0; t < threads; ++t)
    all.emplace_back([=, file = files.descriptors()[t % files.descriptors().size()]] {
      const std::vector<char> from(bytes);
      for (unsigned i = 0; i < each; ++i)
        if (::pwrite(file, from.data(), bytes, static_cast<off_t>(i % 1024) * bytes) < 0) break;
    });
  for (auto& t : all) t.join();
  return static_cast<double>(threads) * each * 1e6 / microseconds_since(began);
}

struct write_bench {
  session& s;
  sys::server& server;
  permuter& on;
  double cpu_alone;
  std::uint64_t key = 0;

  /// The four ways to write. How much faster than the first the last one is, in percent.
  double rows(unsigned places, unsigned rounds, unsigned count, unsigned batch,
              const std::vector<int>& to) {
    server.coalesce(batch, {});
    std::vector<double> us_a_block;
    for (const write_case& c : write_cases) {
      permutation p;
      p.rounds = rounds;
      std::uint64_t failed = 0;
      const std::string name = std::string("pwrite, ") + c.name + ", " + grouped(rounds) +
                               " rounds, " + grouped(places) + " blocks at a time" +
                               (batch == 0 ? "" : ", batch " + grouped(batch)) +
                               (to.size() == 1 ? ", one file" : "");
      const samples us = s.repeat(name, {1, s.sized(5u, 1u), 0.2}, [&] {
        p.key = ++key;  // so that what an earlier launch wrote is wrong
        const permuted r = on.run(p, c.how, places, -1, to, 0, count);
        failed += r.failed;
        return r.us;
      });
      const std::uint64_t wrong = wrong_blocks(p, to, count);
      us_a_block.push_back(us.median() / count);
      row r(name);
      r.rate(us, "calls", count)
          .set("rounds", rounds)
          .set("places", places)
          .set("taken_at_once", batch)
          .set("files", static_cast<double>(to.size()))
          .set("block_us", us_a_block.back())
          .set("gb_per_s", static_cast<double>(count) * p.block_bytes / us.median() / 1e3)
          .baseline("the CPU's threads alone", "calls_per_s", cpu_alone)
          .check(failed == 0, grouped(failed) + " writes failed")
          .check(wrong == 0, grouped(wrong) + " blocks of data are wrong in the file");
      s.out.add(r);
    }
    return 100 * (us_a_block.front() / us_a_block.back() - 1);
  }
};

void ordering_rows(session& s) {
  const unsigned threads = s.sized(12u, 2u);
  // A file's lock lets one write at a time; so there are many.
  const memory_files files(s.sized(61u, 3u));
  sys::server server(s.where, with_threads(threads));
  for (const int f : files.descriptors()) server.grant(f);
  const unsigned all = s.gpu() ? s.where.properties().sms * 2 : 4, few = s.sized(16u, 2u);
  permuter on(s.where, server, s.sized(64 * mib, 256 * kib));
  const unsigned each = s.sized(10'000u, 4u);
  cpu_writes(files, threads, 8192, each);
  write_bench b{s, server, on, cpu_writes(files, threads, 8192, each)};
  const std::vector<int>& to = files.descriptors();
  // By work, with as many blocks at a time as a small GPU has, and with as many as there are.
  for (const unsigned places : {few, all})
    for (unsigned rounds = 1; rounds <= s.sized(1024u, 2u); rounds *= s.sized(4u, 2u)) {
      const unsigned count = s.sized(rounds < 64 || places == all ? 8192u : 2048u, 8u);
      const double faster = b.rows(places, rounds, count, 0, to);
      if (places == all || rounds > 16) continue;
      row r("relaxed, started against strong, blocking: " + grouped(rounds) + " rounds, " +
            grouped(places) + " blocks at a time");
      r.set("faster_percent", std::max(0.0, faster)).at_least("faster_percent", 25);
      s.out.add(r);
    }
  // By blocks at a time, with little work.
  for (unsigned places = s.sized(2u, 1u); places < all; places *= 2)
    if (places != few) b.rows(places, 1, s.sized(places < few ? 4096u : 8192u, 8u), 0, to);
  b.rows(all, 1, s.sized(4096u, 8u), 0, {to[0]});
}

// ---- coalescing: how many calls a thread takes at once, and how long it waits for so many ------

struct taking {
  unsigned batch;  // 0: the server's own choice
  unsigned window_us;
};

struct traffic_kind {
  const char* name;
  std::uint32_t bytes;  // of a pread, or one of these
};
constexpr std::uint32_t getppid_calls = 0, sleeps = ~0u;
constexpr bool reads(const traffic_kind& k) { return k.bytes != 0 && k.bytes < sleeps; }

void coalescing_case(session& s, sys::server& server, file_reader& reader, const sample_file& f,
                     simt::shape grid, unsigned threads, const traffic_kind& kind, bool few) {
  const auto takings = s.gpu() ? std::vector<taking>{{0, 0},  {1, 0},  {2, 0},  {4, 0}, {8, 0},
                                                     {16, 0}, {32, 0}, {8, 10}, {8, 50}}
                               : std::vector<taking>{{0, 0}, {1, 0}, {8, 0}, {8, 10}};
  double usual = 0;
  for (const taking& t : takings) {
    server.coalesce(t.batch, std::chrono::microseconds(t.window_us));
    const std::string name = std::string(kind.name) + ", " + grouped(threads) + " threads, " +
                             (few ? "few callers" : "many callers") + ", " +
                             (t.batch == 0 ? "usual batch" : "batch " + grouped(t.batch)) +
                             ", window " + grouped(t.window_us) + " us";
    call_traffic last;
    std::uint64_t wrong = 0;
    bool check = true;
    const std::uint32_t warps = grid.blocks * grid.threads / simt::warp_size;
    const std::uint64_t most = reads(kind)            ? f.bytes() / warps / kind.bytes
                               : kind.bytes == sleeps ? (few ? 20 : 1)
                                                      : 200;
    const auto turns = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(s.sized(few ? 200u : std::min(4 * threads, 20u), 4u), most));
    const samples us = s.repeat(name, {1, s.sized(5u, 1u), 0.1}, [&] {
      if (kind.bytes == getppid_calls)
        last = call_getppid(s.where, server, grid, turns);
      else if (kind.bytes == sleeps)
        last = call_sleeper(s.where, server, grid, turns);
      else
        last = reader.read({f.descriptor(), std::uint64_t{warps} * turns * kind.bytes, kind.bytes,
                            called_by::warp},
                           check);
      check = false;
      wrong += last.wrong;
      return last.us;
    });
    row r(name);
    r.rate(us, "calls", static_cast<double>(last.calls))
        .set("batch", t.batch)
        .set("window_us", t.window_us)
        .set("threads", threads)
        .set("callers", warps)
        .set("call_bytes", reads(kind) ? kind.bytes : 0)
        .check(wrong == 0, grouped(wrong) + " calls had a wrong result");
    if (t.batch == 0)
      usual = r.value("calls_per_s");
    else
      r.baseline("the usual batch, no window", "calls_per_s", usual);
    s.out.add(r);
  }
}

void coalescing_rows(session& s) {
  const unsigned sms = s.gpu() ? s.where.properties().sms : 1;
  const simt::shape many = s.sized(simt::shape{sms * 2, 256}, simt::shape{2, 64});
  const simt::shape few = s.sized(simt::shape{8, 64}, simt::shape{1, 64});
  const traffic_kind kinds[] = {{"getppid", getppid_calls}, {"pread 64 B", 64},
                                {"pread 4 KiB", 4096},      {"pread 16 KiB", 16384},
                                {"pread 64 KiB", 65536},    {"a wait of 100 us", sleeps}};
  const sample_file f(s.sized(192 * mib, mib));
  for (const unsigned threads : {1u, 4u, 12u}) {
    if (!s.gpu() && threads != 1) continue;
    sys::server server(s.where, with_threads(threads));
    server.grant(f.descriptor());
    server.install(sleeper{});
    file_reader reader(s.where, server, many), few_reader(s.where, server, few);
    for (const traffic_kind& k : kinds) {
      if (!s.gpu() && reads(k) && k.bytes > 64) continue;
      if (!s.gpu() || k.bytes != sleeps)
        coalescing_case(s, server, reader, f, many, threads, k, false);
      if (threads == 4) coalescing_case(s, server, few_reader, f, few, threads, k, true);
    }
  }
}

}  // namespace

void bench_syscalls_sweep(session& s) {
  const auto part = s.number(0);
  if (!part || part == 1) granularity_rows(s);
  if (!part || part == 2) ordering_rows(s);
  if (!part || part == 3) coalescing_rows(s);
}

}  // namespace grosr::tool
