// The paper's effective priority (PTask, 5.1): the caller's own, raised where a node waits for
// longer than it does on average, and where it runs for less long than others do.
#include "flow/scheduling.hpp"

#include <algorithm>

namespace grosr::flow {
namespace {

class priority final : public scheduling_policy {
 public:
  std::optional<choice> choose(std::span<const queued_node> queue, std::span<const unit_load> units,
                               std::int64_t now) override {
    double all_run = 0, all_wait = 0;
    for (const queued_node& n : queue) {
      all_run += n.mean_run;
      all_wait += n.mean_wait;
    }
    const double mean_run = all_run / static_cast<double>(queue.size());
    const double mean_wait = all_wait / static_cast<double>(queue.size());
    std::optional<choice> best;
    double highest = 0;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const auto unit = least_loaded(queue[i], units);
      if (!unit) continue;
      const double p = effective(queue[i], mean_run, mean_wait, now);
      if (best && p <= highest) continue;  // equal ones in the order in which they came
      best = choice{i, *unit, "highest effective priority"};
      highest = p;
    }
    return best;
  }

 private:
  // One step of priority is worth as much as four times the mean wait, and as running for no time.
  static constexpr double wait_weight = 0.25, run_weight = 1;
  static constexpr double least_wait_ns = 1000;

  static double effective(const queued_node& n, double mean_run, double mean_wait,
                          std::int64_t now) {
    double p = n.priority;
    // Not more than others wait: who has waited for long does not get used to it.
    const double usual = std::max(std::min(n.mean_wait, mean_wait), least_wait_ns);
    p += wait_weight * (static_cast<double>(now - n.since) - usual) / usual;
    if (mean_run > 0) p += run_weight * (mean_run - n.mean_run) / std::max(mean_run, n.mean_run);
    return p;
  }
};

}  // namespace

std::unique_ptr<scheduling_policy> make_priority() { return std::make_unique<priority>(); }

}  // namespace grosr::flow
