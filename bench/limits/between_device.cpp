// How long SMs, and lanes of a warp, need to hear from each other.
#include <array>

#include "grosr/simt/atomic.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/launch.hpp"
#include "grosr/simt/shared.hpp"
#include "grosr/simt/wait.hpp"
#include "limits/limits.hpp"

namespace grosr::tool::limits {
namespace {

using word = simt::atomic_ref<std::uint32_t>;

GROSR_DEVICE inline void spin(std::uint32_t& at, std::uint32_t value, const char* why) {
  for (unsigned turn = 0; word(at).load(simt::acquire) != value; ++turn)
    simt::pause_if_host(turn, why);
}

/// Block 0 and block 1 pass a number to and fro; each says on which SM it is.
struct hop_kernel {
  std::uint32_t *there, *back, *sms, n;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    sms[simt::block_id()] = simt::sm_id();
    const bool first = simt::block_id() == 0;
    for (std::uint32_t i = 1; i <= n; ++i) {
      if (first) word(*there).store(i, simt::release);
      spin(first ? *back : *there, i, "the other block");
      if (!first) word(*back).store(i, simt::release);
    }
  }
};

/// Lane 0 writes a record, and another lane each time reads it and says what comes next.
struct hop_in_warp_kernel {
  std::uint32_t *result, n;
  GROSR_DEVICE void operator()() const {
    auto& record = simt::block_shared<std::array<std::uint32_t, 4>>();
    std::uint32_t next = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      if (simt::lane_id() == 0) record = {next, i, 0, 0};
      simt::sync_warp();
      std::uint32_t got = record[0] + 1;
      simt::sync_warp();
      next = simt::shuffle(simt::full_mask, got, i % simt::warp_size);
    }
    if (simt::lane_id() == 0) *result = next;
  }
};

/// Every block waits for all others, n times.
struct barrier_kernel {
  std::uint32_t *arrived, *passed, n;
  GROSR_DEVICE void operator()() const {
    for (std::uint32_t i = 1; i <= n; ++i) {
      simt::sync_block();
      if (simt::thread_id() == 0) {
        if (word(*arrived).fetch_add(1, simt::acq_rel) + 1 == i * simt::grid_size())
          word(*passed).store(i, simt::release);
        else
          spin(*passed, i, "the other blocks");
      }
      simt::sync_block();
    }
  }
};

/// Microseconds of one round: many rounds less few, so that the launch does not count. Of three
/// runs each the shortest.
template <class Run>
double a_round(std::uint32_t n, Run&& run) {
  double few = run(n / 10), many = run(n);
  for (unsigned i = 0; i < 2; ++i) {
    few = std::min(few, run(n / 10));
    many = std::min(many, run(n));
  }
  return many > few ? (many - few) / (n - n / 10) : many / n;
}

}  // namespace

figure hop(const device& d, unsigned n) {
  constexpr std::size_t line = 32;
  simt::buffer<std::uint32_t> words(d, simt::space::device, 3 * line);
  std::uint32_t* at = words.data();
  figure f;
  f.number = a_round(n, [&](std::uint32_t rounds) {
    words.copy_from(std::vector<std::uint32_t>(3 * line));
    return timed([&] { simt::run(d, {2, 32}, hop_kernel{at, at + line, at + 2 * line, rounds}); });
  });
  std::vector<std::uint32_t> got(3 * line);
  words.copy_to(got);
  if (got[0] != n || got[line] != n) f.wrong = "hops were lost";
  if (d.is_cuda() && got[2 * line] == got[2 * line + 1]) f.wrong = "both blocks were on one SM";
  return f;
}

figure hop_in_warp(const device& d, unsigned n) {
  simt::buffer<std::uint32_t> result(d, simt::space::device, 1);
  figure f;
  f.number = a_round(n, [&](std::uint32_t rounds) {
    return timed([&] { simt::run(d, {1, 32}, hop_in_warp_kernel{result.data(), rounds}); });
  });
  std::vector<std::uint32_t> got(1);
  result.copy_to(got);
  if (got[0] != n) f.wrong = "hops were lost";
  return f;
}

figure grid_barrier(const device& d, unsigned n) {
  simt::buffer<std::uint32_t> words(d, simt::space::device, 64);
  const unsigned blocks = d.properties().sms;
  figure f;
  f.number = a_round(n, [&](std::uint32_t rounds) {
    words.copy_from(std::vector<std::uint32_t>(64));
    return timed([&] {
      simt::run(d, {blocks, 32}, barrier_kernel{words.data(), words.data() + 32, rounds});
    });
  });
  std::vector<std::uint32_t> got(64);
  words.copy_to(got);
  if (got[0] != n * blocks || got[32] != n) f.wrong = "a block ran ahead";
  return f;
}

}  // namespace grosr::tool::limits
