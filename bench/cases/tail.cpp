// `grosr bench tail`: warp tasks whose times are Pareto distributed, from 1 us to 10 ms. Nothing
// waits behind a long one while a worker idles, so all of them take little longer than the longest
// one, or than their sum on all workers.
//
// A task takes its time by spinning: lane 0 reads context.clock_ns() until it has passed, the
// others wait for lane 0. Times are nominal: a GPU's clock may tick once a microsecond.
#include <functional>
#include <memory>
#include <numeric>
#include <queue>
#include <random>

#include "cases/benches.hpp"
#include "cases/host_threads.hpp"
#include "cases/tail_work.hpp"
#include "cli/text.hpp"

namespace grosr::tool {

tail_work::tail_work(const device& d, std::uint32_t count, double least_ns, double most_ns)
    : ns(count), device_ns(d, simt::space::device, count), ran(d, simt::space::device, count) {
  std::mt19937_64 random(1);
  for (std::uint32_t& t : ns) {
    const double u = static_cast<double>(random() >> 11) * 0x1p-53;
    t = static_cast<std::uint32_t>(least_ns / (1 - u * (1 - least_ns / most_ns)));
  }
  device_ns.copy_from(ns);
}

double tail_work::longest_us() const { return *std::max_element(ns.begin(), ns.end()) / 1e3; }
double tail_work::sum_us() const { return std::accumulate(ns.begin(), ns.end(), 0.0) / 1e3; }
void tail_work::clear() { ran.copy_from(std::vector<std::uint32_t>(ns.size())); }

std::string tail_work::wrong(std::uint32_t times) const {
  std::vector<std::uint32_t> got(ns.size());
  ran.copy_to(got);
  return first_wrong(got, [&](std::size_t) { return times; });
}

namespace {

/// How long they take where each goes to the first idle worker, in their order, at no cost.
double in_turn_us(const std::vector<std::uint32_t>& ns, unsigned workers) {
  std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> idle_from;
  for (unsigned i = 0; i < workers; ++i) idle_from.push(0);
  std::uint64_t last = 0;
  for (std::uint32_t t : ns) {
    const std::uint64_t end = idle_from.top() + t;
    idle_from.pop();
    idle_from.push(end);
    last = std::max(last, end);
  }
  return static_cast<double>(last) / 1e3;
}

struct measured {
  samples us;
  std::string wrong;
};

class tail_bench {
 public:
  tail_bench(session& s, std::uint32_t count)
      : s_(s),
        work_(s.where, count, 1e3, s.sized(10e6, 1e6)),
        runtime_(make_tail_runtime(s.where, options_)),
        workers_(s.gpu() ? runtime_->stats().workers : s.where.properties().sms),
        bound_us_(std::max(work_.longest_us(), work_.sum_us() / workers_)),
        in_turn_us_(in_turn_us(work_.ns, workers_)) {
    s.out.remark(grouped(count) + " tasks, " + three_digits(work_.sum_us() / count) +
                 " us each on average, the longest " + three_digits(work_.longest_us()) + " us; " +
                 grouped(workers_) + " workers");
    s.out.remark("a task spins: a lane reads context.clock_ns() until the task's time has passed");
  }

  void run() {
    measure_kernels();
    add("spawned by one task", measure([&] {
          const auto began = clock::now();
          runtime_->submit(spin_all{work_.device_ns.data(), work_.ran.data(), work_.count(), 0});
          return began;
        }));
    std::vector<spin_all> parents;
    for (std::uint32_t i = 0; i < work_.count(); i += simt::warp_size)
      parents.push_back({work_.device_ns.data() + i, work_.ran.data() + i,
                         std::min(work_.count() - i, simt::warp_size), 0});
    add("spawned by many tasks, up to 32 by each", measure([&] {
          const auto began = clock::now();
          runtime_->submit(parents);
          return began;
        }));
    std::vector<spin_task> tasks(work_.count());
    for (std::uint32_t i = 0; i < work_.count(); ++i)
      tasks[i] = {work_.ran.data() + i, work_.ns[i], 0};
    constexpr unsigned threads = 8;
    host_threads together(threads);
    const auto mine = [&](unsigned i) {
      const std::uint32_t from = part_of(work_.count(), i, threads);
      return std::span<const spin_task>(tasks).subspan(
          from, part_of(work_.count(), i + 1, threads) - from);
    };
    add("submitted by 8 threads, a span each",
        measure([&] { return together.run([&](unsigned i) { runtime_->submit(mine(i)); }); }));
    add("submitted by 8 threads, one at a time", measure([&] {
          return together.run([&](unsigned i) {
            for (const spin_task& t : mine(i)) runtime_->submit(t);
          });
        }));
  }

 private:
  /// `start()` hands over all tasks, and returns when it began.
  template <class Start>
  measured measure(Start&& start) {
    measured m = repeat("tail", [&] {
      const clock::time_point began = start();
      await(*runtime_);
      return microseconds_since(began);
    });
    if (m.wrong.empty())
      m.wrong = trouble(*runtime_, settled_stats(*runtime_), options_.memory_limit);
    return m;
  }

  template <class Once>
  measured repeat(const char* what, Once&& once) {
    measured m;
    work_.clear();
    std::uint32_t times = 0;
    m.us = s_.repeat(what, {1, s_.sized(11u, 5u), 5.0}, [&] {
      ++times;
      return once();
    });
    m.wrong = work_.wrong(times);
    return m;
  }

  // Kernels are loaded while the runtime's is not resident.
  void measure_kernels() {
    tail_kernels kernels(s_.where);
    each_ = repeat("a warp each", [&] { return kernels.warp_each(work_); });
    loop_ =
        repeat("a loop", [&] { return kernels.loop(work_, s_.gpu() ? workers_ : workers_ * 4); });
    add_row(row("a kernel of one warp a task"), each_);
    add_row(row("a loop of as many warps over a counter"), loop_);
  }

  row& add_values(row& r, const measured& m) {
    return r.rate(m.us, "tasks", work_.count())
        .set("over_bound_x", m.us.median() / bound_us_)
        .limit("the longest task, or all work on all workers", "median_us", bound_us_)
        .limit("each to the first idle worker, in order, at no cost", "median_us", in_turn_us_)
        .check(m.wrong.empty(), m.wrong);
  }

  void add_row(row r, const measured& m) { s_.out.add(add_values(r, m)); }

  void add(const char* name, const measured& m) {
    row r(name);
    add_values(r, m)
        .baseline("a kernel of one warp a task", "median_us", each_.us.median())
        .baseline("a loop of as many warps over a counter", "median_us", loop_.us.median())
        .at_most("over_bound_x", 1.05);
    s_.out.add(r);
  }

  session& s_;
  tail_work work_;
  runtime_options options_ = usual_options(s_.where);
  std::unique_ptr<any_runtime> runtime_;
  unsigned workers_;
  double bound_us_, in_turn_us_;
  measured each_, loop_;
};

}  // namespace

void bench_tail(session& s) {
  tail_bench(s, static_cast<std::uint32_t>(s.number(0).value_or(s.sized(200'000u, 1'000u)))).run();
}

}  // namespace grosr::tool
