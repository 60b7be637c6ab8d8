// Memory of the host that kernels have mapped, and may therefore unmap, advise on and pass to
// calls; and which calls use it.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "sys/map_room.hpp"
#include "sys/memory_files.hpp"
#include "sys/quota.hpp"

namespace grosr::sys {

/// Ranges of addresses. Any thread may call.
///
/// A range is kernels' from add() to unmap(). A call holds what it uses of them. What is unmapped
/// meanwhile is gone at once, as in Linux, but its addresses stay reserved, without access, until
/// the last call that holds any of them has ended: nothing of the program's can come to lie there.
///
/// What is mapped is charged to two quotas, by its length and as one mapping, until it is unmapped.
class mapped_ranges {
 public:
  mapped_ranges(quota& bytes, quota& mappings) : bytes_(bytes), mappings_(mappings) {}
  /// Unmaps all of them: kernels that have ended cannot.
  ~mapped_ranges();
  mapped_ranges(const mapped_ranges&) = delete;

  /// Charges for a mapping to be made; false: it would be one too many, or too large.
  bool charge(std::uint64_t bytes);
  /// It was not made.
  void discharge(std::uint64_t bytes);
  /// It was made, and charged for. `file`: what it maps, if that is a file of memory.
  void add(std::uint64_t begin, std::uint64_t bytes, std::shared_ptr<memory_file> file = nullptr);

  /// Whether a call may be made that makes, or divides, mappings.
  bool may_map() { return room_.take(); }

  /// munmap(2) of what is in ranges. 0, or -errno; -EPERM: not all of it is, unless `any` may go;
  /// -ENOMEM: it would divide a range, and there are too many mappings.
  long unmap(std::uint64_t begin, std::uint64_t bytes, bool any);

  /// While it lives, memory that was in ranges is kernels', or nobody's.
  class use {
   public:
    use() = default;
    use(use&& other) noexcept : all_(std::exchange(other.all_, nullptr)), at_(other.at_) {}
    use& operator=(use&& other) noexcept {
      std::swap(all_, other.all_);
      std::swap(at_, other.at_);
      return *this;
    }
    ~use() {
      if (all_) all_->release(at_);
    }

   private:
    friend class mapped_ranges;
    using place = std::list<std::pair<std::uint64_t, std::uint64_t>>::iterator;
    use(mapped_ranges& all, place at) : all_(&all), at_(at) {}
    mapped_ranges* all_ = nullptr;
    place at_{};
  };

  /// None: not all of these bytes are in ranges.
  std::optional<use> hold(std::uint64_t begin, std::uint64_t bytes);

  /// How many bytes from there on are in ranges.
  std::uint64_t bytes_from(std::uint64_t at) const;

 private:
  using range = std::pair<std::uint64_t, std::uint64_t>;  // begin and end
  struct mapping {
    std::uint64_t begin, end;
    std::shared_ptr<memory_file> file;
  };
  struct leaving {
    range at;
    std::size_t calls;  // that hold any of it, unmap() itself included
  };

  std::uint64_t end_from(std::uint64_t at) const;
  void insert(std::uint64_t begin, std::uint64_t end);
  std::vector<range> cut(std::uint64_t begin, std::uint64_t end);
  bool divides(std::uint64_t begin, std::uint64_t end) const;
  std::vector<mapping> cut_mappings(std::uint64_t begin, std::uint64_t end);
  void discharge(const std::vector<mapping>& gone);
  void charged_mappings(std::size_t are);
  void put_back(const std::vector<range>& removed, std::vector<mapping>& gone);
  long reserve(std::list<leaving>::iterator left);
  void release(use::place at);
  void leave(std::list<leaving>::iterator left);

  // A call that gives memory back is refused later than one that takes some.
  map_room room_{6}, room_to_divide_{7};
  quota &bytes_, &mappings_;
  mutable std::shared_mutex lock_;                // of all below
  std::map<std::uint64_t, std::uint64_t> ends_;   // by begin; neither overlapping nor touching
  std::map<std::uint64_t, mapping> mappings_at_;  // by begin; as they were made, or what is left
  std::size_t charged_ = 0;                       // mappings
  std::list<range> uses_;
  std::list<leaving> leaving_;  // unmapped, and held by calls; in no range
};

}  // namespace grosr::sys
