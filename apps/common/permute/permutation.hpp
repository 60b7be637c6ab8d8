// Blocks of data, permuted on a device and written to files by pwrite: the work of the program
// `permute`, and of the bench that varies how such a kernel writes.
#pragma once

#include <cstdint>
#include <vector>

#include "grosr/simt/buffer.hpp"
#include "grosr/sys/server.hpp"

namespace grosr::tool {

/// A keyed bijection of the 4-byte words of each block. One round sends word i to
/// `(a i + b) mod words`, a odd; a and b follow from the key, the block and the round.
struct permutation {
  static constexpr std::uint32_t least_block = 512, most_block = 16'384;
  std::uint64_t key = 1;
  std::uint32_t block_bytes = 8192;  ///< a power of two, from least_block to most_block
  std::uint32_t rounds = 1;
  bool undo = false;
};

/// How a kernel writes: pwrite of a block, strongly ordered or as a producer, waited for or
/// started and dropped.
struct writing {
  bool relaxed = true;
  bool started = false;
};

struct permuted {
  double us = 0;             ///< from the launch until the last write has ended
  std::uint64_t failed = 0;  ///< blocks that were not read or written, where that was waited for
  int code = 0;              ///< of one of them: a negative errno, or 0 when it was short
};

/// The words of a file that is not there: what is permuted where none is named.
constexpr std::uint32_t sample_word(std::uint64_t index) {
  return static_cast<std::uint32_t>(index * 0x9e3779b97f4a7c15ull >> 29);
}

/// Permutes blocks with thread blocks of 1024 that take one block of data after the other.
class permuter {
 public:
  /// At most so many bytes of data in one launch. The server lives longer than this.
  permuter(const device& d, sys::server& s, std::size_t bytes);

  /// Blocks `first` to `first + count` of the descriptor `from` (-1: sample_word()). Block i goes
  /// to `to[i % to.size()]` at `i / to.size()` times its size; at most 256 of them. Descriptors are
  /// those that kernels have. `places`: so many thread blocks.
  permuted run(const permutation& p, const writing& how, unsigned places, int from,
               const std::vector<int>& to, std::uint64_t first, std::uint32_t count);

 private:
  device where_;
  sys::server& server_;
  simt::buffer<std::uint32_t> out_;
  simt::buffer<std::uint64_t> status_;
  simt::buffer<int> files_;
};

/// The same on the host, in time that does not depend on the rounds: all rounds of a block in one
/// step. `block`: its number.
void permute_on_host(const permutation& p, std::uint64_t block, const std::uint32_t* from,
                     std::uint32_t* to);

}  // namespace grosr::tool
