// The ways: messages, atomics of tasks to all memory, and a kernel that does nothing else.
#include "grosr/net/world.hpp"
#include "grosr/simt/launch.hpp"
#include "updates.hpp"

namespace grosr::gups {
namespace {

/// The next of a sequence of random numbers: Marsaglia, "Xorshift RNGs", 2003, scaled.
struct random_numbers {
  std::uint64_t state;
  GROSR_DEVICE explicit random_numbers(std::uint64_t seed) : state(seed * 0x9e3779b97f4a7c15u | 1) {
    next();
    next();
  }
  GROSR_DEVICE std::uint64_t next() {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1du;
  }
};

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
      world.add(table, x >> shift, back != 0 ? 0 - (x | 1) : x | 1);
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

/// The same by a kernel.
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

unsigned shift_of(std::uint64_t elements) {
  unsigned bits = 0;
  while (std::uint64_t{1} << bits < elements) ++bits;
  return 64 - bits;
}

simt::shape grid_of(const device& d) {
  const auto p = d.properties();
  if (!d.is_cuda()) return {2, 64};
  return {p.sms * (p.max_threads_per_sm / 256), 256};
}

/// By tasks of a world.
class by_tasks : public way {
 public:
  by_tasks(const problem& p, net::path path)
      : p_(p),
        world_(ranks_of(p), {.link_bytes = p.link_bytes, .path = path, .processes = p.processes}),
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
    std::vector<look_through> all;
    for (std::uint32_t i = 0; i < lanes; ++i) all.push_back({table_.ref(), wrong_.ref(), i, lanes});
    for (std::uint32_t r = world_.first_rank(); world_.is_here(r); ++r) world_.submit(r, all);
    world_.wait_all();
    std::uint64_t found = 0;
    wrong_.copy_to(std::span<std::uint64_t>(&found, 1));
    return found;
  }

  std::vector<net::rank_stats> stats() override { return world_.stats(); }

 private:
  static std::vector<net::rank_options> ranks_of(const problem& p) {
    net::rank_options r{.where = p.where};
    r.runtime.sms = p.sms;
    r.runtime.blocks_per_sm = p.blocks_per_sm;
    r.runtime.memory_limit = std::size_t{64} << 20;
    return std::vector<net::rank_options>(p.ranks, r);
  }

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
          .fetch_add(back != 0 ? 0 - (x | 1) : x | 1, simt::relaxed);
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
  std::uint64_t wrong() override {
    simt::buffer<std::uint64_t> found(p_.where, simt::space::device, 1);
    simt::run(p_.where, grid_of(p_.where), count_wrong{table_.data(), p_.elements, found.data()});
    std::uint64_t n = 0;
    found.copy_to(std::span<std::uint64_t>(&n, 1));
    return n;
  }

 private:
  problem p_;
  simt::buffer<std::uint64_t> table_;
};

}  // namespace

const std::vector<named_way>& all_ways() {
  static const std::vector<named_way> ways{
      {"kernel", "a kernel that does nothing but atomics to the table",
       [](const problem& p) -> std::unique_ptr<way> { return std::make_unique<by_kernel>(p); }},
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
