// results[i] = 2 * i for i < N, by every means that `throughput` and `baselines` compare.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "grosr/simt/buffer.hpp"
#include "limits/kernels.hpp"
#include "measure/session.hpp"
#include "work/basic.hpp"

namespace grosr::tool {

struct outcome {
  samples us;         ///< of all the tasks together
  std::string wrong;  ///< what was wrong with the results of any repeat; empty if nothing
  samples submit_us;  ///< of submit_by(): until the last call of submit() returned
};

/// Each call measures and, outside the clock, checks all results of every repeat. The runtime lives
/// only during the calls that need it.
class store_work {
 public:
  store_work(session& s, std::uint32_t n);

  outcome launch_each(std::uint32_t n, bool wait_each);  ///< the first n of them
  outcome graph(std::uint32_t n);                        ///< no samples where there are no graphs
  outcome bulk();                                        ///< one kernel
  outcome plain_function();                              ///< one std::thread calling a function
  outcome submit_span();
  outcome submit_by(unsigned threads);       ///< one by one, no ticket kept; a ring each
  outcome keep_in_flight(unsigned tickets);  ///< one by one, by one thread

 private:
  template <class Once>
  outcome measure(const std::string& what, std::uint32_t n, plan p, Once&& once);
  void judge(outcome& o, any_runtime& r, const runtime_options& options);

  session& s_;
  std::uint32_t n_;
  simt::buffer<std::uint32_t> results_;
};

}  // namespace grosr::tool
