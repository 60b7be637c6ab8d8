// Graphs share units in proportion to their priorities, by virtual time: each run of a graph of
// weight w moves the graph's time on by 1/w, and the graph that is behind runs next. PTask (5.1)
// adds boosts for long waits and short runs to the static priority; a step of priority is then
// worth a fixed wait, and shares are not linear. Here boosts change when the next run of a graph is
// due, by less than three runs, and runs shorter than others count for less, by a quarter at most.
#include "flow/scheduling.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace grosr::flow {
namespace {

class priority final : public scheduling_policy {
 public:
  std::optional<choice> choose(std::span<const queued_node> queue, std::span<const unit_load> units,
                               std::int64_t now, input_bytes&) override {
    ++turn_;
    served_.resize(units.size());
    share_of_.clear();
    double all_wait = 0, all_run = 0, have_run = 0;
    for (const queued_node& n : queue) {
      all_wait += n.mean_wait;
      all_run += n.mean_run;
      have_run += n.mean_run > 0 ? 1 : 0;
      const double last = served(n.units);
      share& s = shares_.try_emplace({n.graph, n.units}, share{last, turn_}).first->second;
      // A graph saves one run at most while none of its nodes is queued.
      if (s.seen + 1 < turn_) s.time = std::max(s.time, last - 1 / weight(n.priority));
      s.seen = turn_;
      share_of_.push_back(&s);
    }
    const double mean_wait = all_wait / static_cast<double>(queue.size());
    std::optional<choice> best;
    double earliest = 0, counts = 0;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const auto unit = least_loaded(queue[i], units);
      if (!unit) continue;
      const double one = 1 / weight(queue[i].priority), s = shortness(queue[i], all_run / have_run);
      const double due =
          share_of_[i]->time + one * std::exp2(-s - patience(queue[i], mean_wait, now));
      if (best && due >= earliest) continue;  // equal ones in the order in which they came
      best = choice{i, *unit, "furthest behind the share of its priority"};
      earliest = due;
      counts = one * (1 - run_weight * s);
    }
    if (!best) return best;
    share_of_[best->node]->time += counts;
    served_[best->unit] = std::max(served_[best->unit], earliest);
    std::erase_if(shares_, [this](const auto& s) {
      return s.second.seen != turn_ && s.second.time <= served(s.first.second) - most_weight;
    });
    return best;
  }

 private:
  /// What a graph has had of the units that some of its nodes can run on.
  struct share {
    double time = 0;
    std::uint64_t seen = 0;  // the last turn in which one of these nodes was queued
  };
  static constexpr double wait_weight = 0.25, run_weight = 0.25;
  static constexpr double least_wait_ns = 1000, most_weight = 100;

  /// 1, 2, 3... for these priorities, and 1/2, 1/3, 1/4... for 0, -1, -2...
  static double weight(double priority) {
    return priority >= 1 ? std::min(priority, most_weight)
                         : 1 / std::min(2 - priority, most_weight);
  }
  /// Between -1 and 1; 0 of a node that has not run.
  static double shortness(const queued_node& n, double mean_run) {
    return n.mean_run > 0 ? (mean_run - n.mean_run) / std::max(mean_run, n.mean_run) : 0;
  }
  /// Without bound: who waits for long is the next one of its graph. Not by more than others wait:
  /// who has waited for long does not get used to it.
  static double patience(const queued_node& n, double mean_wait, std::int64_t now) {
    const double usual = std::max(std::min(n.mean_wait, mean_wait), least_wait_ns);
    return wait_weight * (static_cast<double>(now - n.since) - usual) / usual;
  }
  /// How far virtual time has come on the furthest of these units.
  double served(std::uint64_t on) const {
    double last = 0;
    for (std::size_t u = 0; u < served_.size(); ++u)
      if ((on >> u & 1) != 0) last = std::max(last, served_[u]);
    return last;
  }

  std::map<std::pair<const void*, std::uint64_t>, share> shares_;  // by graph and units
  std::vector<share*> share_of_;                                   // by node of the queue
  std::vector<double> served_;                                     // by unit
  std::uint64_t turn_ = 0;
};

}  // namespace

std::unique_ptr<scheduling_policy> make_priority() { return std::make_unique<priority>(); }

}  // namespace grosr::flow
