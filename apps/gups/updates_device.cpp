// Messages, atomics of tasks to all memory, and a kernel that does nothing else.
#include "random_updates.hpp"
#include "ranks/share_out.hpp"

namespace grosr::gups {
namespace {

/// Updates of a warp.
struct update {
  net::array_ref<std::uint64_t> table;
  std::uint64_t seed;
  std::uint32_t count, shift;
  std::uint32_t back;
  static constexpr grosr::width width = grosr::width::warp;
  GROSR_DEVICE void operator()(auto& context) const {
    auto world = net::world_of(context);
    random_numbers random(seed + context.rank());
    GROSR_NO_UNROLL
    for (std::uint32_t i = context.rank(); i < count; i += simt::warp_size) {
      const std::uint64_t x = random.next();
      world.add(table, x >> shift, addend_of(x, back != 0));
    }
  }
};

/// Counts the elements of this rank that are not zero: every `stride`th from `first` on.
struct look_through {
  net::array_ref<std::uint64_t> table, wrong;
  std::uint32_t first, stride;
  GROSR_DEVICE void operator()(auto& context) const {
    auto world = net::world_of(context);
    const std::uint64_t* const mine = world.local(table);
    const std::uint64_t n = table.size_of(world.rank());
    std::uint64_t found = 0;
    GROSR_NO_UNROLL
    for (std::uint64_t i = first; i < n; i += stride) found += mine[i] != 0 ? 1 : 0;
    if (found != 0) world.add(wrong, 0, found);
  }
};

/// The same by a kernel, of all elements.
struct count_wrong {
  const std::uint64_t* table;
  std::uint64_t elements;
  std::uint64_t* wrong;
  GROSR_DEVICE void operator()() const {
    const std::uint64_t stride = std::uint64_t{simt::grid_size()} * simt::block_size();
    std::uint64_t found = 0;
    for (std::uint64_t i = std::uint64_t{simt::block_id()} * simt::block_size() + simt::thread_id();
         i < elements; i += stride)
      found += table[i] != 0 ? 1 : 0;
    if (found != 0) simt::atomic_ref<std::uint64_t>(*wrong).fetch_add(found, simt::relaxed);
  }
};

/// By tasks of a world.
class by_tasks : public way {
 public:
  by_tasks(const problem& p, net::path path)
      : p_(p),
        world_(ranks::ranks_of(p, std::size_t{64} << 20),
               {.link_bytes = p.link_bytes, .path = path, .processes = p.processes}),
        table_(world_, p.elements),
        wrong_(world_, 1) {}

  void round(bool back) override {
    const auto tasks = static_cast<std::uint32_t>(p_.updates / p_.per_task);
    for (std::uint32_t r = world_.first_rank(); world_.is_here(r); ++r) {
      std::vector<update> all;
      for (std::uint32_t i = 0; i < tasks; ++i)
        all.push_back({table_.ref(), (std::uint64_t{r} * tasks + i) * simt::warp_size + 1,
                       p_.per_task, shift_of(p_.elements), back ? 1u : 0u});
      world_.submit(r, all);
    }
    world_.wait_all();
  }

  std::uint64_t wrong() override {
    const std::uint32_t lanes = p_.where.is_cuda() ? 32'768 : 64;
    ranks::on_all_ranks(world_, lanes, [&](std::uint32_t i) {
      return look_through{table_.ref(), wrong_.ref(), i, lanes};
    });
    std::uint64_t found = 0;
    wrong_.copy_to(std::span<std::uint64_t>(&found, 1));
    return found;
  }

  std::vector<net::rank_stats> stats() override { return world_.stats(); }

 private:
  problem p_;
  net::world<update, look_through> world_;
  net::array<std::uint64_t> table_, wrong_;
};

/// A lane of the kernel: as many updates as others make.
struct update_kernel {
  std::uint64_t* table;
  std::uint64_t updates;
  std::uint32_t shift, back;
  GROSR_DEVICE void operator()() const {
    const std::uint64_t lanes = std::uint64_t{simt::grid_size()} * simt::block_size(),
                        self = std::uint64_t{simt::block_id()} * simt::block_size() +
                               simt::thread_id(),
                        mine = updates / lanes + (self < updates % lanes ? 1 : 0);
    random_numbers random(self + 1);
    for (std::uint64_t i = 0; i < mine; ++i) {
      const std::uint64_t x = random.next();
      simt::atomic_ref<std::uint64_t>(table[x >> shift])
          .fetch_add(addend_of(x, back != 0), simt::relaxed);
    }
  }
};

/// By a kernel of the whole device.
class by_kernel : public way {
 public:
  explicit by_kernel(const problem& p) : p_(p), table_(p.where, simt::space::device, p.elements) {}

  void round(bool back) override {
    simt::run(
        p_.where, grid_of(p_.where),
        update_kernel{table_.data(), p_.updates * p_.ranks, shift_of(p_.elements), back ? 1u : 0u});
  }
  std::uint64_t wrong() override { return wrong_in(table_, p_.where); }

 private:
  problem p_;
  simt::buffer<std::uint64_t> table_;
};

}  // namespace

std::uint64_t wrong_in(const simt::buffer<std::uint64_t>& table, const device& where) {
  simt::buffer<std::uint64_t> found(where, simt::space::device, 1);
  simt::run(where, grid_of(where), count_wrong{table.data(), table.size(), found.data()});
  std::uint64_t n = 0;
  found.copy_to(std::span<std::uint64_t>(&n, 1));
  return n;
}

const std::vector<named_way>& all_ways() {
  static const std::vector<named_way> ways{
      {"kernel", "a kernel that does nothing but atomics to the table",
       [](const problem& p) -> std::unique_ptr<way> { return std::make_unique<by_kernel>(p); }},
      {"coprocessor", "kernels of all ranks, the host exchanges buffers",
       [](const problem& p) { return by_coprocessor(p, 1); }},
      {"coprocessor-large", "the same with buffers that are eight times as large",
       [](const problem& p) { return by_coprocessor(p, 8); }},
      {"direct", "tasks of all ranks, atomics to the memory of the others",
       [](const problem& p) -> std::unique_ptr<way> {
         return std::make_unique<by_tasks>(p, net::path::automatic);
       }},
      {"messages", "tasks of all ranks, messages to the others",
       [](const problem& p) -> std::unique_ptr<way> {
         return std::make_unique<by_tasks>(p, net::path::messages);
       }}};
  return ways;
}

}  // namespace grosr::gups
