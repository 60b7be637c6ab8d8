#include <algorithm>
#include <vector>

#include "grosr/net/world.hpp"
#include "work/messages.hpp"

namespace grosr::tool {
namespace {

struct count_numbers {
  net::array_ref<std::uint32_t> bins;
  std::uint32_t first, count;
  GROSR_DEVICE static std::uint32_t number(std::uint32_t i) { return i * 2654435761u >> 8; }
  GROSR_DEVICE void operator()(auto& context) const {
    auto world = net::world_of(context);
    GROSR_NO_UNROLL
    for (std::uint32_t i = first; i < first + count; ++i)
      world.add(bins, number(i) % bins.size(), 1u);
  }
};

class ranks_on_one_device : public counting_ranks {
 public:
  ranks_on_one_device(const device& where, std::uint32_t ranks, std::uint32_t tasks,
                      std::uint32_t per_task)
      : tasks_(tasks),
        per_task_(per_task),
        world_(shares_of(where, ranks), {.path = net::path::messages}),
        bins_(world_, bins),
        step_(bins) {
    for (std::uint32_t i = 0; i < tasks * ranks * per_task; ++i)
      ++step_[count_numbers::number(i) % bins];
  }

  void count() override {
    for (std::uint32_t r = 0; r < world_.size(); ++r) {
      std::vector<count_numbers> all;
      for (std::uint32_t t = 0; t < tasks_; ++t)
        all.push_back({bins_.ref(), (r * tasks_ + t) * per_task_, per_task_});
      world_.submit(r, all);
    }
    world_.wait_all();
    ++runs_;
  }
  bool is_right() const override {
    std::vector<std::uint32_t> found(bins);
    bins_.copy_to(found);
    for (std::uint32_t i = 0; i < bins; ++i)
      if (found[i] != runs_ * step_[i]) return false;
    return true;
  }
  std::uint64_t additions() const override {
    return std::uint64_t{tasks_} * per_task_ * world_.size();
  }

 private:
  static constexpr std::uint32_t bins = 1u << 12;

  static std::vector<net::rank_options> shares_of(const device& where, std::uint32_t ranks) {
    net::rank_options r{.where = where};
    if (where.is_cuda()) r.runtime.sms = std::max(1u, where.properties().sms / 2 / ranks);
    r.runtime.memory_limit = std::size_t{32} << 20;
    return std::vector<net::rank_options>(ranks, r);
  }

  std::uint32_t tasks_, per_task_;
  net::world<count_numbers> world_;
  net::array<std::uint32_t> bins_;
  std::vector<std::uint32_t> step_;  // what a run adds to each bin
  std::uint32_t runs_ = 0;
};

}  // namespace

std::unique_ptr<counting_ranks> make_counting_ranks(const device& where, std::uint32_t ranks,
                                                    std::uint32_t tasks, std::uint32_t per_task) {
  return std::make_unique<ranks_on_one_device>(where, ranks, tasks, per_task);
}

}  // namespace grosr::tool
