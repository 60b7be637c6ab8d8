// Distributed arrays: each rank has a part, and any lane of any rank reaches all of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grosr/net/detail/rank_state.hpp"
#include "grosr/simt/buffer.hpp"

namespace grosr::net {

/// How the elements of an array lie on ranks.
enum class distribution : std::uint8_t {
  block,   ///< the first ones on rank 0, the next ones on rank 1, as many on each but the last
  cyclic,  ///< element i on rank i mod ranks
};

/// Where element `index` is.
struct place {
  std::uint32_t rank;
  std::uint64_t offset;  ///< in that rank's part
};

/// The shape of an array: the same on all ranks and on the host.
class layout {
 public:
  layout() = default;
  layout(std::uint64_t count, std::uint32_t ranks, distribution how)
      : count_(count),
        divisor_(how == distribution::cyclic ? ranks : (count + ranks - 1) / ranks),
        ranks_(ranks),
        how_(how) {
    if (divisor_ == 0) divisor_ = 1;
    if ((divisor_ & (divisor_ - 1)) == 0)
      while ((std::uint64_t{1} << (shift_ + 1)) <= divisor_) ++shift_;
    else
      shift_ = -1;
  }

  GROSR_DEVICE std::uint64_t size() const { return count_; }
  GROSR_DEVICE place find(std::uint64_t index) const {
    const std::uint64_t quotient = divide(index), rest = index - quotient * divisor_;
    if (how_ == distribution::cyclic) return {static_cast<std::uint32_t>(rest), quotient};
    return {static_cast<std::uint32_t>(quotient), rest};
  }
  /// The index of an element of a rank's part.
  GROSR_DEVICE std::uint64_t index_of(place p) const {
    return how_ == distribution::cyclic ? p.offset * divisor_ + p.rank
                                        : p.rank * divisor_ + p.offset;
  }
  /// Elements of a rank's part.
  GROSR_DEVICE std::uint64_t size_of(std::uint32_t rank) const {
    if (how_ == distribution::cyclic) return count_ / ranks_ + (rank < count_ % ranks_ ? 1 : 0);
    const std::uint64_t first = rank * divisor_;
    return first >= count_ ? 0 : count_ - first < divisor_ ? count_ - first : divisor_;
  }

 private:
  GROSR_DEVICE std::uint64_t divide(std::uint64_t index) const {
    if (shift_ >= 0) return index >> shift_;
    if ((index | divisor_) >> 32 == 0)
      return static_cast<std::uint32_t>(index) / static_cast<std::uint32_t>(divisor_);
    return index / divisor_;
  }

  std::uint64_t count_ = 0, divisor_ = 1;
  std::uint32_t ranks_ = 1;
  distribution how_ = distribution::block;
  std::int8_t shift_ = 0;  ///< log2 of the divisor, or -1

 protected:
  std::uint16_t number_ = most_arrays;  ///< of an array; here so that a ref takes 24 bytes
};

/// What device code knows of an array: a member of tasks, 24 bytes, the same on all ranks. Its
/// shape is the array's.
template <class T>
class array_ref : public layout {
 public:
  array_ref() = default;
  array_ref(const layout& shape, std::uint32_t number) : layout(shape) {
    number_ = static_cast<std::uint16_t>(number);
  }
  GROSR_DEVICE std::uint32_t number() const { return number_; }
};
static_assert(sizeof(array_ref<float>) == 24);

}  // namespace grosr::net
