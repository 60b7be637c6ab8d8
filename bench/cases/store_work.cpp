#include "cases/store_work.hpp"

#include <optional>
#include <thread>
#include <type_traits>

#include "cases/benches.hpp"
#include "cases/host_threads.hpp"
#include "cli/progress.hpp"

namespace grosr::tool {
namespace {

// Not inlined: a call a task is what is compared.
GROSR_NOINLINE void store_plainly(std::uint32_t* results, std::uint32_t i) { results[i] = 2 * i; }

}  // namespace

store_work::store_work(session& s, std::uint32_t n)
    : s_(s), n_(n), results_(s.where, simt::space::device, n) {}

template <class Once>
outcome store_work::measure(const std::string& what, std::uint32_t n, plan p, Once&& once) {
  outcome o;
  const std::vector<std::uint32_t> untouched(n, 0xffffffffu);
  std::vector<std::uint32_t> got(n);
  o.us = s_.repeat(what, p, [&] {
    results_.copy_from(untouched);
    double us = 0;
    if constexpr (std::is_void_v<decltype(once())>)
      us = timed(once);
    else
      us = once();
    if (o.wrong.empty()) {
      results_.copy_to(got);
      o.wrong = first_wrong(got, [](std::size_t i) { return static_cast<std::uint32_t>(2 * i); });
    }
    return us;
  });
  return o;
}

outcome store_work::launch_each(std::uint32_t n, bool wait_each) {
  launcher kernels(s_.where);
  return measure(wait_each ? "launch and wait" : "launches, one wait", n, {1, 5, 3.0}, [&] {
    for (std::uint32_t i = 0; i < n; ++i) {
      kernels.store_one(results_.data(), i);
      if (wait_each) kernels.wait();
      if (i % 256 == 0) progress::pulse();
    }
    kernels.wait();
  });
}

outcome store_work::graph(std::uint32_t n) {
  auto graph = store_graph(s_.where, results_.data(), n);
  if (!graph) return {};
  return measure("graph", n, {2, 11, 3.0}, [&] { graph->replay(); });
}

outcome store_work::bulk() {
  launcher kernels(s_.where);
  return measure("bulk", n_, {3, 51, 2.0}, [&] {
    kernels.store_all(results_.data(), n_);
    kernels.wait();
  });
}

outcome store_work::plain_function() {
  return measure("function", n_, {3, 51, 2.0}, [&] {
    std::thread([&] {
      for (std::uint32_t i = 0; i < n_; ++i) store_plainly(results_.data(), i);
    }).join();
  });
}

void store_work::judge(outcome& o, any_runtime& r, const runtime_options& options) {
  if (o.wrong.empty()) o.wrong = trouble(r, settled_stats(r), options.memory_limit);
}

outcome store_work::submit_span() {
  std::vector<store> tasks(n_);
  for (std::uint32_t i = 0; i < n_; ++i) tasks[i] = {results_.data(), i, i};
  const runtime_options options = usual_options(s_.where);
  auto r = make_basic_runtime(s_.where, options);
  outcome o = measure("GROSR", n_, {3, s_.sized(31u, 11u), 5.0},
                      [&] { await(*r, submit_in_pieces(*r, tasks)); });
  judge(o, *r, options);
  return o;
}

outcome store_work::submit_by(unsigned threads) {
  const runtime_options options = usual_options(s_.where);
  const single_tasks tasks(s_.where, options);
  std::optional<host_threads> others;
  if (threads > 1) others.emplace(threads);
  const auto part = [&](unsigned i) {
    tasks.submit(results_.data(), part_of(n_, i, threads), part_of(n_, i + 1, threads));
  };
  std::vector<double> submit_us;
  const plan p{3, s_.sized(31u, 11u), 5.0};
  outcome o = measure("GROSR, one by one", n_, p, [&] {
    const auto began = others ? others->run(part) : clock::now();
    if (!others) part(0);
    submit_us.push_back(microseconds_since(began));
    await(tasks.runtime());
    return microseconds_since(began);
  });
  submit_us.erase(submit_us.begin(), submit_us.begin() + p.warmup);
  o.submit_us = samples(std::move(submit_us));
  judge(o, tasks.runtime(), options);
  return o;
}

outcome store_work::keep_in_flight(unsigned tickets) {
  const runtime_options options = usual_options(s_.where);
  const single_tasks tasks(s_.where, options);
  outcome o = measure("GROSR, tickets in flight", n_, {3, s_.sized(31u, 11u), 5.0},
                      [&] { tasks.keep_in_flight(results_.data(), n_, tickets); });
  judge(o, tasks.runtime(), options);
  return o;
}

}  // namespace grosr::tool
