// Tasks of all widths in one runtime: tickets, priorities, errors, block-shared memory, and a long
// task that yields for urgent ones.
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <vector>

#include <grosr/grosr.hpp>

namespace simt = grosr::simt;

struct sum {  // the 32 lanes of a warp call it together
  static constexpr grosr::width width = grosr::width::warp;
  const std::uint32_t* values;
  std::uint32_t count;
  std::uint64_t* result;
  GROSR_DEVICE int operator()(auto& context) const {
    if (count == 0) return -EINVAL;  // 0, or a negative errno
    std::uint64_t mine = 0;
    for (std::uint32_t i = context.rank(); i < count; i += context.size()) mine += values[i];
    for (unsigned step = 16; step != 0; step /= 2)
      mine += simt::shuffle(simt::full_mask, mine, context.rank() ^ step);
    if (context.rank() == 0) *result = mine;
    return 0;
  }
};

struct histogram {  // the 128 threads of a block call it together
  static constexpr grosr::width width = grosr::width::block;
  const std::uint32_t* values;
  std::uint32_t count;
  std::uint32_t* bins;  // 64 of them
  struct block_bins {
    std::uint32_t bin[64];
  };
  GROSR_DEVICE void operator()(auto& context) const {
    auto& mine = simt::block_shared<block_bins>();  // the same object for all 128 threads
    for (std::uint32_t i = context.rank(); i < 64; i += context.size()) mine.bin[i] = 0;
    context.sync();
    for (std::uint32_t i = context.rank(); i < count; i += context.size())
      simt::atomic_ref<std::uint32_t, simt::scope::block>(mine.bin[values[i] % 64])
          .fetch_add(1, simt::relaxed);
    context.sync();
    for (std::uint32_t i = context.rank(); i < 64; i += context.size())
      simt::atomic_ref<std::uint32_t>(bins[i]).fetch_add(mine.bin[i], simt::relaxed);
  }
};

struct scale {  // a long task: it yields between two pieces of work
  std::uint32_t* values;
  std::uint32_t at, count;
  GROSR_DEVICE void operator()(auto& context) const {
    for (std::uint32_t i = at; i < count; ++i) {
      values[i] *= 3;
      if (context.yield_to_higher()) {
        context.spawn(scale{values, i + 1, count});  // the rest of it
        return;
      }
    }
  }
};

int main() {
  const grosr::device device = grosr::device::best();
  constexpr std::uint32_t count = 4096;
  simt::buffer<std::uint32_t> values(device, simt::space::pinned, count);
  simt::buffer<std::uint32_t> long_row(device, simt::space::pinned, count);
  simt::buffer<std::uint64_t> result(device, simt::space::pinned, 1);
  simt::buffer<std::uint32_t> bins(device, simt::space::device, 64);
  for (std::uint32_t i = 0; i < count; ++i) values[i] = long_row[i] = i;

  grosr::runtime<sum, histogram, scale> runtime{device};
  runtime.submit(scale{long_row.data(), 0, count}, grosr::priority::low);
  auto ticket = runtime.submit(sum{values.data(), count, result.data()}, grosr::priority::urgent);
  if (!ticket.wait_for(std::chrono::seconds(60))) return 1;  // wait() has no limit
  auto wrong = runtime.submit(sum{values.data(), 0, result.data()});
  wrong.wait();
  if (wrong.failed())
    for (const grosr::task_error& e : runtime.errors())
      std::printf("a task of type %s returned %d\n", e.type.c_str(), e.code);
  runtime.submit(histogram{values.data(), count, bins.data()});
  runtime.wait_all();  // everything submitted, and everything that it spawned

  std::vector<std::uint32_t> counted(64);
  bins.copy_to(counted);
  std::printf("sum %llu, %u in the first bin, the last of the long row is %u\n",
              static_cast<unsigned long long>(result[0]), counted[0], long_row[count - 1]);
  const bool good = result[0] == std::uint64_t{count} * (count - 1) / 2 && counted[0] == 64 &&
                    long_row[count - 1] == 3 * (count - 1) && wrong.failed();
  return good ? 0 : 1;
}
