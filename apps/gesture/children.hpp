// Processes of this program that pipes connect, and why they ended.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace grosr::gesture {

/// A descriptor, closed at the end.
class owned_file {
 public:
  owned_file() = default;
  explicit owned_file(int f) : file_(f) {}
  owned_file(owned_file&& o) noexcept : file_(std::exchange(o.file_, -1)) {}
  owned_file& operator=(owned_file&& o) noexcept {
    std::swap(file_, o.file_);
    return *this;
  }
  ~owned_file();
  int get() const { return file_; }

 private:
  int file_ = -1;
};

/// Ends the processes that are left when it is destroyed.
class children {
 public:
  ~children();

  /// Starts this program with arguments, the first of which names the stage. Throws
  /// error(out_of_memory).
  void start(const std::vector<std::string>& arguments, const owned_file& in,
             const owned_file& out);

  /// Waits until all have ended, those that do not within some seconds are killed. Returns a line
  /// about the one that ended first of itself, not because others did; empty if none failed.
  std::string why_ended();

 private:
  struct child {
    pid_t process;
    std::string stage;
    owned_file errors;
    int status = 0;
    bool ended = false;
  };
  static std::string said(const child& c);
  std::vector<child> all_;
};

/// {reading end, writing end}
std::pair<owned_file, owned_file> make_pipe();
/// A file in memory alone.
owned_file make_memory_file(const char* name);

}  // namespace grosr::gesture
