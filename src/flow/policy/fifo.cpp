// First come, first served: the node that has waited longest, on the unit with the least to do.
#include "flow/scheduling.hpp"

namespace grosr::flow {
namespace {

class fifo final : public scheduling_policy {
 public:
  std::optional<choice> choose(std::span<const queued_node> queue, std::span<const unit_load> units,
                               std::int64_t, input_bytes&) override {
    for (std::size_t i = 0; i < queue.size(); ++i)
      if (const auto unit = least_loaded(queue[i], units))
        return choice{i, *unit, "waited longest"};
    return std::nullopt;
  }
};

}  // namespace

std::unique_ptr<scheduling_policy> make_fifo() { return std::make_unique<fifo>(); }

}  // namespace grosr::flow
