// The bytes of a file, inflated if they are compressed with gzip.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "graph/host_threads.hpp"

namespace grosr::graphs {

/// Owns the open file. It throws error(bad_input) with a text that begins with the name of the
/// file.
class source {
 public:
  source(const std::string& path, host_threads& threads);
  ~source();
  source(const source&) = delete;

  /// Reads up to n bytes; fewer only at the end.
  std::size_t read(char* to, std::size_t n);

  /// The first bytes, which read() will return too; at most 64 KiB.
  std::string_view head() const { return {head_.data() + head_read_, head_.size() - head_read_}; }

  /// As errors name it.
  const std::string& name() const { return name_; }
  /// The size of the file; 0 where it has none, as a pipe.
  std::uint64_t file_bytes() const { return file_bytes_; }
  /// How many bytes of the file were read. Any thread may ask.
  std::uint64_t bytes_read() const { return bytes_read_.load(std::memory_order_relaxed); }
  /// For pread(), where the file is a plain one: neither compressed nor a pipe. Else -1.
  int plain_file() const { return inflater_ == nullptr && regular_ ? fd_ : -1; }

 private:
  struct inflater;
  std::size_t read_file(char* to, std::size_t n);
  std::size_t read_inflated(char* to, std::size_t n);
  void start_inflating();

  std::string name_;
  host_threads& threads_;
  int fd_ = -1;
  bool regular_ = false;
  std::uint64_t file_bytes_ = 0;
  std::atomic<std::uint64_t> bytes_read_{0};
  std::string head_;
  std::size_t head_read_ = 0;
  std::unique_ptr<inflater> inflater_;
};

}  // namespace grosr::graphs
