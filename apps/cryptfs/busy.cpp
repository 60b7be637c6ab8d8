#include "busy.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cli/interrupt.hpp"
#include "measure/samples.hpp"

namespace grosr::cryptfs {
namespace {

double median_us(busy_kernel& kernel, std::uint64_t steps) {
  std::vector<double> us;
  for (int i = 0; i < 5; ++i) us.push_back(tool::timed([&] { kernel.run(steps); }));
  return tool::samples(std::move(us)).median();
}

}  // namespace

busy_time calibrate(const device& d, double us) {
  busy_kernel kernel(d);
  busy_time found;
  for (found.us = median_us(kernel, found.steps); found.us < us / 2;
       found.us = median_us(kernel, found.steps)) {
    tool::interrupt::check();
    found.steps *= 2;
  }
  // Twice, for what clocks do when work begins.
  for (int i = 0; i < 2; ++i) {
    const double steps = static_cast<double>(found.steps) * us / found.us;
    found.steps = static_cast<std::uint64_t>(std::max(1.0, std::round(steps)));
    found.us = median_us(kernel, found.steps);
  }
  return found;
}

}  // namespace grosr::cryptfs
