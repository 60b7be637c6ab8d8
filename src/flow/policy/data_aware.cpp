// Nodes run where most of their inputs lie. While that device is busy they wait for it, up to a
// threshold; then they run on another one that has little to do, if there is one. Nodes whose
// inputs the host has run where there is the least to do: so the first ones of many chains spread.
#include "flow/scheduling.hpp"

#include <algorithm>

namespace grosr::flow {
namespace {

class data_aware final : public scheduling_policy {
 public:
  std::optional<choice> choose(std::span<const queued_node> queue, std::span<const unit_load> units,
                               std::int64_t now, input_bytes& bytes) override {
    std::optional<double> mean_run;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const queued_node& n = queue[i];
      const auto preferred = unit_of_most(n, bytes.of(i), units);
      const auto unit = least_loaded(n, units);
      if (!preferred) {
        if (unit) return choice{i, *unit, "its inputs lie with no unit that it can run on"};
        continue;
      }
      if (units[*preferred].has_room())
        return choice{i, *preferred, "most of its inputs lie there"};
      // On another one that is busy, too, it would wait for a copy and for its turn.
      if (!unit || !units[*preferred].is_full() || 2 * units[*unit].running > units[*unit].depth)
        continue;
      if (!mean_run) mean_run = mean_on_devices(queue);
      if (now - n.since > threshold(n, *mean_run))
        return choice{i, *unit, "waited too long for where its inputs lie"};
    }
    return std::nullopt;
  }

 private:
  /// Among equal ones the one with the least under way for its depth.
  static std::optional<std::size_t> unit_of_most(const queued_node& n,
                                                 std::span<const std::size_t> bytes,
                                                 std::span<const unit_load> units) {
    std::optional<std::size_t> most;
    for (std::size_t u = 0; u < bytes.size(); ++u) {
      if (!n.can_run_on(u) || bytes[u] == 0) continue;
      if (!most || bytes[u] > bytes[*most] ||
          (bytes[u] == bytes[*most] && std::uint64_t{units[u].running} * units[*most].depth <
                                           std::uint64_t{units[*most].running} * units[u].depth))
        most = u;
    }
    return most;
  }

  static double mean_on_devices(std::span<const queued_node> queue) {
    double all = 0, have_run = 0;
    for (const queued_node& n : queue) {
      if (n.mean_run == 0 || n.units == 1) continue;
      all += n.mean_run;
      ++have_run;
    }
    return have_run == 0 ? 0 : all / have_run;
  }

  /// Until some runs have gone by, its own or those of others: its own may have been short when
  /// there was less to do, or there were none. And until short runs have, and a copy.
  static std::int64_t threshold(const queued_node& n, double mean_run) {
    return std::max(static_cast<std::int64_t>(8 * std::max(n.mean_run, mean_run)),
                    std::int64_t{1'000'000});
  }
};

}  // namespace

std::unique_ptr<scheduling_policy> make_data_aware() { return std::make_unique<data_aware>(); }

}  // namespace grosr::flow
