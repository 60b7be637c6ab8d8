#include "work/calls.hpp"

#include <unistd.h>

#include "grosr/simt/wait.hpp"

namespace grosr::tool {
namespace {

struct timed_calls {
  sys::server_ref sys;
  std::uint64_t* stamps;  // begin and end of each
  std::uint32_t calls;
  std::uint64_t pause_ns;
  GROSR_DEVICE void operator()() const {
    for (std::uint32_t i = 0; i < calls; ++i) {
      if (pause_ns != 0)
        simt::wait_until([] { return false; }, simt::clock_ns() + pause_ns, nullptr, "the pause");
      const std::uint64_t began = simt::clock_ns();
      const long result = sys::nothing(sys.warp());
      const std::uint64_t ended = simt::clock_ns();
      if (simt::lane_id() == 0) {
        stamps[2 * i] = began;
        stamps[2 * i + 1] = result == 0 ? ended : 0;
      }
    }
  }
};

enum class what { nothing, getppid };

template <called_by Who, what What>
struct many_calls {
  sys::server_ref sys;
  std::uint32_t turns;
  long expected;
  std::uint64_t* wrong;
  GROSR_DEVICE void operator()() const {
    std::uint32_t bad = 0;
    for (std::uint32_t i = 0; i < turns; ++i) {
      long result;
      if constexpr (Who == called_by::lane)
        result = sys::nothing(sys);
      else if constexpr (What == what::nothing)
        result = sys::nothing(sys.warp());
      else
        result = sys::syscall(sys.warp(), SYS_getppid);
      bad += result != expected ? 1 : 0;
    }
    if (bad != 0) simt::atomic_ref<std::uint64_t>(*wrong).fetch_add(bad, simt::relaxed);
  }
};

template <class Kernel>
call_traffic timed_launch(const device& d, simt::shape grid, Kernel k) {
  simt::buffer<std::uint64_t> wrong(d, simt::space::device, 1);
  k.wrong = wrong.data();
  simt::stream s(d);
  call_traffic t;
  t.us = timed([&] {
    simt::launch(s, grid, k);
    s.wait();
  });
  wrong.copy_to({&t.wrong, 1});
  return t;
}

template <called_by Who>
struct read_pieces {
  sys::server_ref sys;
  file_reading r;
  unsigned char* to;
  std::uint64_t places;  // bytes that each block has
  bool check;
  std::uint64_t* wrong;

  GROSR_DEVICE void operator()() const {
    const std::uint64_t pieces = (r.bytes + r.piece - 1) / r.piece;
    const unsigned group = Who == called_by::lane   ? 1
                           : Who == called_by::warp ? simt::warp_size
                                                    : simt::block_size();
    const std::uint32_t mine = simt::thread_id() / group, groups = simt::block_size() / group;
    const std::uint64_t all = std::uint64_t{groups} * simt::grid_size();
    unsigned char* place = to + simt::block_id() * places + std::uint64_t{mine} * r.piece;
    std::uint64_t bad = 0;
    for (std::uint32_t round = 0; round < r.rounds; ++round)
      for (std::uint64_t i = std::uint64_t{simt::block_id()} * groups + mine; i < pieces;
           i += all) {
        const std::uint64_t at = i * r.piece;
        const std::uint64_t expected = r.bytes - at < r.piece ? r.bytes - at : r.piece;
        const auto offset = static_cast<std::int64_t>(at);
        long got = 0;
        if constexpr (Who == called_by::lane)
          got = sys::pread(sys, r.file, place, r.piece, offset);
        else if constexpr (Who == called_by::warp)
          got = sys::pread(sys.warp(), r.file, place, r.piece, offset);
        else
          got = sys::pread(sys.block(sys::consumer), r.file, place, r.piece, offset);
        if (got != static_cast<long>(expected)) ++bad;
        if (check && got > 0) {
          for (std::uint64_t w = simt::thread_id() % group; w < static_cast<std::uint64_t>(got) / 8;
               w += group)
            if (reinterpret_cast<const std::uint64_t*>(place)[w] != word_at(at + 8 * w)) ++bad;
          if constexpr (Who == called_by::block) simt::sync_block();
          if constexpr (Who == called_by::warp) simt::sync_warp();
        }
      }
    if (bad != 0) simt::atomic_ref<std::uint64_t>(*wrong).fetch_add(bad, simt::relaxed);
  }
};

}  // namespace

samples time_calls(const device& d, const sys::server& s, unsigned n, double pause_us) {
  simt::buffer<std::uint64_t> stamps(d, simt::space::device, 2 * n);
  simt::run(d, {1, 32},
            timed_calls{s.ref(), stamps.data(), n, static_cast<std::uint64_t>(pause_us * 1e3)});
  std::vector<std::uint64_t> at(2 * n);
  stamps.copy_to(at);
  std::vector<double> us;
  for (unsigned i = n / 10; i < n; ++i)
    us.push_back(at[2 * i + 1] == 0 ? 1e9 : static_cast<double>(at[2 * i + 1] - at[2 * i]) / 1e3);
  return samples(std::move(us));
}

call_traffic call_nothing(const device& d, const sys::server& s, simt::shape grid, called_by who,
                          std::uint32_t turns) {
  const bool lanes = who == called_by::lane;
  call_traffic t =
      lanes ? timed_launch(d, grid,
                           many_calls<called_by::lane, what::nothing>{s.ref(), turns, 0, nullptr})
            : timed_launch(d, grid,
                           many_calls<called_by::warp, what::nothing>{s.ref(), turns, 0, nullptr});
  t.calls = std::uint64_t{grid.blocks} * grid.threads / (lanes ? 1 : simt::warp_size) * turns;
  return t;
}

call_traffic call_getppid(const device& d, const sys::server& s, simt::shape grid,
                          std::uint32_t turns) {
  call_traffic t = timed_launch(
      d, grid, many_calls<called_by::warp, what::getppid>{s.ref(), turns, ::getppid(), nullptr});
  t.calls = std::uint64_t{grid.blocks} * grid.threads / simt::warp_size * turns;
  return t;
}

struct file_reader::state {
  device where;
  const sys::server& server;
  simt::shape grid;
  simt::buffer<unsigned char> to;
};

file_reader::file_reader(const device& d, const sys::server& s, simt::shape grid)
    : state_(new state{d, s, grid, {}}) {}
file_reader::~file_reader() = default;

call_traffic file_reader::read(const file_reading& r, bool check) {
  state& s = *state_;
  const std::uint32_t groups = r.who == called_by::lane   ? s.grid.threads
                               : r.who == called_by::warp ? s.grid.threads / simt::warp_size
                                                          : 1;
  const std::uint64_t places = std::uint64_t{groups} * r.piece;
  if (s.to.size() < places * s.grid.blocks)
    s.to = simt::buffer<unsigned char>(s.where, simt::space::device, places * s.grid.blocks);
  const auto launch = [&](auto kernel) {
    call_traffic t = timed_launch(s.where, s.grid, kernel);
    if (check) {
      kernel.check = true;
      kernel.r.rounds = 1;
      t.wrong += timed_launch(s.where, s.grid, kernel).wrong;
    }
    t.calls = (r.bytes + r.piece - 1) / r.piece * r.rounds;
    return t;
  };
  const sys::server_ref ref = s.server.ref();
  switch (r.who) {
    case called_by::lane:
      return launch(read_pieces<called_by::lane>{ref, r, s.to.data(), places, false, nullptr});
    case called_by::warp:
      return launch(read_pieces<called_by::warp>{ref, r, s.to.data(), places, false, nullptr});
    default:
      return launch(read_pieces<called_by::block>{ref, r, s.to.data(), places, false, nullptr});
  }
}

}  // namespace grosr::tool
