// Further processes of this program, and memory that they share.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "descriptor.hpp"

namespace grosr::cryptfs {

/// Memory that another process has by its descriptor.
class shared_memory {
 public:
  /// New, of zeros. Throws std::system_error.
  explicit shared_memory(std::size_t bytes);
  /// All of what another process made. Takes the descriptor.
  static shared_memory of(int fd) { return shared_memory(taken{}, fd); }
  ~shared_memory();
  shared_memory(const shared_memory&) = delete;

  char* data() const { return static_cast<char*>(data_); }
  std::size_t size() const { return bytes_; }
  int fd() const { return memory_.fd; }

 private:
  struct taken {};
  shared_memory(taken, int fd);
  void map();

  descriptor memory_;
  std::size_t bytes_ = 0;
  void* data_ = nullptr;
};

/// Two ends, which no process gets by inheritance.
struct pipe_ends {
  int read_end = -1, write_end = -1;

  pipe_ends();
  ~pipe_ends();
  pipe_ends(const pipe_ends&) = delete;
  static void close_end(int& fd);
};

/// Starts this program once more, with these arguments, and these descriptors as its numbers 0, 1,
/// 3 and so on; -1: /dev/null. Ctrl-C of a terminal does not reach it. Throws std::runtime_error.
pid_t start_own(std::vector<std::string> arguments, const std::vector<int>& descriptors);

/// For the process that was started: it ends with the one that did so, even if that is killed.
void end_with_parent();

}  // namespace grosr::cryptfs
