#include "permute/permutation.hpp"

#include "grosr/simt/launch.hpp"
#include "measure/samples.hpp"

namespace grosr::tool {
namespace {

struct step {
  std::uint32_t factor, shift;
};

GROSR_DEVICE inline step step_of(std::uint64_t key, std::uint64_t block, std::uint32_t round) {
  std::uint64_t x = key ^ (block * 0x9e3779b97f4a7c15ull) ^ (std::uint64_t{round} << 40);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  x ^= x >> 31;
  return {static_cast<std::uint32_t>(x) | 1u, static_cast<std::uint32_t>(x >> 32)};
}

struct stage {
  std::uint32_t word[2][permutation::most_block / 4];
};

template <bool Relaxed, bool Started>
struct permute_blocks {
  sys::server_ref sys;
  permutation p;
  int from;
  const int* to;
  std::uint32_t files;
  std::uint64_t first;
  std::uint32_t count;
  std::uint32_t* out;     // count blocks
  std::uint64_t* status;  // how many failed, and with what

  GROSR_DEVICE void note(long result) const {
    if (result == static_cast<long>(p.block_bytes) || simt::thread_id() != 0) return;
    simt::atomic_ref<std::uint64_t>(status[0]).fetch_add(1, simt::relaxed);
    if (result < 0)
      simt::atomic_ref<std::uint64_t>(status[1]).store(static_cast<std::uint64_t>(result),
                                                       simt::relaxed);
  }

  GROSR_DEVICE void load(std::uint64_t block, std::uint32_t* place, stage& s) const {
    const std::uint32_t words = p.block_bytes / 4;
    if (from >= 0)
      note(sys::pread(sys.block(), from, place, p.block_bytes,
                      static_cast<std::int64_t>(block * p.block_bytes)));
    for (std::uint32_t i = simt::thread_id(); i < words; i += simt::block_size())
      s.word[0][i] = from >= 0 ? place[i] : sample_word(block * words + i);
  }

  GROSR_DEVICE void permute(std::uint64_t block, std::uint32_t* place, stage& s) const {
    const std::uint32_t words = p.block_bytes / 4;
    for (std::uint32_t round = 0; round < p.rounds; ++round) {
      simt::sync_block();
      const step k = step_of(p.key, block, p.undo ? p.rounds - 1 - round : round);
      const std::uint32_t* now = s.word[round % 2];
      std::uint32_t* next = round + 1 == p.rounds ? place : s.word[1 - round % 2];
      for (std::uint32_t i = simt::thread_id(); i < words; i += simt::block_size()) {
        const std::uint32_t other = (k.factor * i + k.shift) & (words - 1);
        if (p.undo)
          next[i] = now[other];
        else
          next[other] = now[i];
      }
    }
  }

  template <class Caller>
  GROSR_DEVICE void write(const Caller& c, std::uint64_t block, std::uint32_t* place) const {
    const int file = to[block % files];
    const auto offset = static_cast<std::int64_t>(block / files * p.block_bytes);
    if constexpr (Started) {
      auto t = sys::pwrite(c.start(), file, place, p.block_bytes, offset);
      const long begun = sys::drop(c.start(), t);
      if (begun != 0 && begun != -EINPROGRESS) note(begun);
    } else {
      note(sys::pwrite(c, file, place, p.block_bytes, offset));
    }
  }

  GROSR_DEVICE void operator()() const {
    stage& s = simt::block_shared<stage>();
    for (std::uint32_t i = simt::block_id(); i < count; i += simt::grid_size()) {
      std::uint32_t* place = out + std::size_t{i} * (p.block_bytes / 4);
      load(first + i, place, s);
      permute(first + i, place, s);
      if constexpr (Relaxed)
        write(sys.block(sys::producer), first + i, place);
      else
        write(sys.block(), first + i, place);
    }
  }
};

}  // namespace

permuter::permuter(const device& d, sys::server& s, std::size_t bytes)
    : where_(d),
      server_(s),
      out_(d, simt::space::device, bytes / 4),
      status_(d, simt::space::device, 2),
      files_(d, simt::space::device, 256) {}

permuted permuter::run(const permutation& p, const writing& how, unsigned places, int from,
                       const std::vector<int>& to, std::uint64_t first, std::uint32_t count) {
  files_.copy_from(to);
  std::uint64_t told[2] = {};
  status_.copy_from(told);
  simt::stream s(where_);
  permuted result;
  const auto launch = [&](auto kernel) {
    result.us = timed([&] {
      simt::launch(s, {std::min(places, count), 1024}, kernel);
      s.wait();
      server_.drain();
    });
  };
  const auto with = [&]<bool Relaxed, bool Started>() {
    launch(permute_blocks<Relaxed, Started>{server_.ref(), p, from, files_.data(),
                                            static_cast<std::uint32_t>(to.size()), first, count,
                                            out_.data(), status_.data()});
  };
  if (how.relaxed)
    how.started ? with.operator()<true, true>() : with.operator()<true, false>();
  else
    how.started ? with.operator()<false, true>() : with.operator()<false, false>();
  status_.copy_to(told);
  result.failed = told[0];
  result.code = static_cast<int>(static_cast<std::int64_t>(told[1]));
  return result;
}

void permute_on_host(const permutation& p, std::uint64_t block, const std::uint32_t* from,
                     std::uint32_t* to) {
  std::uint32_t factor = 1, shift = 0;
  for (std::uint32_t round = 0; round < p.rounds; ++round) {
    const step k = step_of(p.key, block, round);
    factor *= k.factor;
    shift = k.factor * shift + k.shift;
  }
  const std::uint32_t words = p.block_bytes / 4;
  for (std::uint32_t i = 0; i < words; ++i) {
    const std::uint32_t other = (factor * i + shift) & (words - 1);
    if (p.undo)
      to[i] = from[other];
    else
      to[other] = from[i];
  }
}

}  // namespace grosr::tool
