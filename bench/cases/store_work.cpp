#include "cases/store_work.hpp"

#include <thread>

#include "cases/benches.hpp"
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
    const double us = timed(once);
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

outcome store_work::with_runtime(const std::string& what, bool as_span) {
  std::vector<store> tasks(n_);
  for (std::uint32_t i = 0; i < n_; ++i) tasks[i] = {results_.data(), i, i};
  const runtime_options options = usual_options(s_.where);
  auto r = make_basic_runtime(s_.where, options);
  outcome o = measure(what, n_, {3, s_.sized(31u, 11u), 5.0}, [&] {
    if (as_span) {
      await(*r, submit_in_pieces(*r, tasks));
    } else {
      for (const store& t : tasks) {
        r->submit(t);
        progress::pulse();
      }
      await(*r);
    }
  });
  if (o.wrong.empty()) o.wrong = trouble(*r, settled_stats(*r), options.memory_limit);
  return o;
}

outcome store_work::submit_span() { return with_runtime("GROSR", true); }
outcome store_work::submit_each() { return with_runtime("GROSR, one by one", false); }

}  // namespace grosr::tool
