// One run of a bench, as the bench sees it: where, how large, how often, and where rows go.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/progress.hpp"
#include "grosr/simt/device.hpp"
#include "measure/report.hpp"

namespace grosr::tool {

/// How often something is done: `warmup` times unmeasured, then `repeats` times; after `budget_s`
/// it ends early, but not before 3 repeats. `--repeats` overrides both.
struct plan {
  unsigned warmup = 1;
  unsigned repeats = 11;
  double budget_s = 5;
};

struct session {
  device where;
  report& out;
  std::vector<std::uint64_t> numbers;  ///< positional arguments, checked
  unsigned repeats = 0;                ///< of --repeats; 0: each bench's own
  bool quick = false;                  ///< --quick: small sizes, short budgets

  bool gpu() const { return where.is_cuda(); }

  /// Sizes for a GPU, and for the host backend, which is some thousand times slower, or --quick.
  template <class T>
  T sized(T on_gpu, T on_host) const {
    return gpu() && !quick ? on_gpu : on_host;
  }

  std::optional<std::uint64_t> number(std::size_t i) const {
    return i < numbers.size() ? std::optional(numbers[i]) : std::nullopt;
  }

  /// Calls `once()`, which returns the microseconds that count, as the plan says. Shows progress;
  /// leaves on Ctrl-C.
  template <class Once>
  samples repeat(const std::string& what, const plan& p, Once&& once) const {
    const unsigned wanted = repeats ? repeats : p.repeats;
    const double budget_s = quick ? std::min(p.budget_s, 0.2) : p.budget_s;
    progress shown(what, wanted);
    for (unsigned i = 0; i < p.warmup; ++i) once();
    const auto began = clock::now();
    std::vector<double> all;
    while (all.size() < wanted) {
      all.push_back(once());
      shown.at(all.size());
      if (!repeats && all.size() >= 3 && microseconds_since(began) > budget_s * 1e6) break;
    }
    return samples(std::move(all));
  }
};

}  // namespace grosr::tool
