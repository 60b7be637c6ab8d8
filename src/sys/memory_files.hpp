// Files of memory (memfd_create) that kernels made: what they take of the server's bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "sys/quota.hpp"

namespace grosr::sys {

inline constexpr std::uint64_t page_bytes = 4096;

/// A file of memory, charged by its length. Its descriptors, its mappings and calls on it share it:
/// when the last of them is gone Linux frees the memory, and the charge ends.
class memory_file {
 public:
  explicit memory_file(quota& bytes) : bytes_(&bytes) {}
  ~memory_file() { bytes_->give(charged_); }
  memory_file(const memory_file&) = delete;

  /// Held by calls that make it longer or shorter, or move a position in it: between their looks at
  /// it and what Linux does, nobody else does either.
  std::mutex lock;

  /// Lock held. Charges for a length of `end`, rounded to pages; false: there is not so much.
  bool grow_to(std::uint64_t end);
  /// Lock held: the file is as long as `fd` says it is. What was charged beyond comes back.
  void settle(int fd);
  /// Lock held: memory up to there was taken, whatever the length.
  void keep_to(std::uint64_t end);
  /// Lock held: nothing beyond the length is left.
  void drop_kept() { kept_ = 0; }

 private:
  quota* bytes_;
  std::uint64_t charged_ = 0, kept_ = 0;
};

/// By descriptor. Any thread may call.
class memory_files {
 public:
  /// Whether there are any: calls need not look else.
  bool any() const { return count_.load(std::memory_order_acquire) != 0; }

  void add(int fd, std::shared_ptr<memory_file> file);
  /// `to` is the same file as `from`, or none of memory if that is none.
  void share(int from, int to);
  void drop(int fd);
  /// Null: it is no file of memory that kernels made.
  std::shared_ptr<memory_file> find(int fd) const;

 private:
  mutable std::shared_mutex lock_;
  std::map<int, std::shared_ptr<memory_file>> files_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace grosr::sys
