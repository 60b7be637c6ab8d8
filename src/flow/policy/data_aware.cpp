// Nodes run where most of their inputs lie. While that device is busy they wait for it, up to a
// threshold; then they run elsewhere, so that every node runs in the end.
#include "flow/scheduling.hpp"

#include <algorithm>

namespace grosr::flow {
namespace {

class data_aware final : public scheduling_policy {
 public:
  bool looks_at_bytes() const override { return true; }

  std::optional<choice> choose(std::span<const queued_node> queue, std::span<const unit_load> units,
                               std::int64_t now) override {
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const queued_node& n = queue[i];
      const auto preferred = unit_of_most(n, units);
      const auto unit = least_loaded(n, units);
      if (!preferred) {
        if (unit) return choice{i, *unit, "its inputs lie with no unit that it can run on"};
        continue;
      }
      if (units[*preferred].has_room())
        return choice{i, *preferred, "most of its inputs lie there"};
      if (unit && now - n.since > threshold(n))
        return choice{i, *unit, "waited too long for where its inputs lie"};
    }
    return std::nullopt;
  }

 private:
  /// Among equal ones rather one that has room.
  static std::optional<std::size_t> unit_of_most(const queued_node& n,
                                                 std::span<const unit_load> units) {
    std::optional<std::size_t> most;
    for (std::size_t u = 0; u < n.bytes.size(); ++u) {
      if (!n.can_run_on(u) || n.bytes[u] == 0) continue;
      if (!most || n.bytes[u] > n.bytes[*most] ||
          (n.bytes[u] == n.bytes[*most] && !units[*most].has_room() && units[u].has_room()))
        most = u;
    }
    return most;
  }

  /// Until some runs of its own have gone by, and not less than a copy takes.
  static std::int64_t threshold(const queued_node& n) {
    return std::max<std::int64_t>(static_cast<std::int64_t>(8 * n.mean_run), 200'000);
  }
};

}  // namespace

std::unique_ptr<scheduling_policy> make_data_aware() { return std::make_unique<data_aware>(); }

}  // namespace grosr::flow
