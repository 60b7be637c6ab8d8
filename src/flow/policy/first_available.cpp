// No queue: whichever node comes to a free unit first. Nodes take turns in the order of the list,
// from where the last one stood.
#include "flow/scheduling.hpp"

namespace grosr::flow {
namespace {

class first_available final : public scheduling_policy {
 public:
  std::optional<choice> choose(std::span<const queued_node> queue, std::span<const unit_load> units,
                               std::int64_t, input_bytes&) override {
    for (std::size_t n = 0; n < queue.size(); ++n) {
      const std::size_t i = (next_ + n) % queue.size();
      const auto unit = least_loaded(queue[i], units);
      if (!unit) continue;
      next_ = i + 1 < queue.size() ? i : 0;  // the list closes up behind it
      return choice{i, *unit, "was there when a unit was free"};
    }
    return std::nullopt;
  }

 private:
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<scheduling_policy> make_first_available() {
  return std::make_unique<first_available>();
}

}  // namespace grosr::flow
