// Files and directories that the kernel knows, and what the file system knows of each.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "file_format.hpp"

namespace grosr::cryptfs {

using file_id = std::pair<dev_t, ino_t>;

/// A file or directory of the encrypted directory. It lives as long as the kernel knows it.
struct node {
  int fd = -1;  ///< by O_PATH
  std::uint64_t lookups = 0;
  file_id id{};
  file_state file;

  node() = default;
  ~node();
  node(const node&) = delete;
};

/// Thread-safe.
class node_table {
 public:
  /// Takes the descriptor of the encrypted directory. `hidden` is never found, under any name.
  node_table(int root_fd, file_id hidden) : hidden_(hidden) { root_.fd = root_fd; }

  node& root() { return root_; }
  /// The node of what lies in a directory under a name, which the kernel knows once more then. Sets
  /// `attributes` but for the size. Throws std::system_error.
  node& look_up(const node& parent, const char* name, struct stat& attributes);
  /// Whether a name is one of what is hidden, which file systems that ignore case have more of.
  bool is_hidden(const node& parent, const char* name) const;
  /// The kernel knows it so many times less.
  void forget(node& n, std::uint64_t times);

 private:
  const file_id hidden_;
  node root_;
  std::mutex lock_;
  std::map<file_id, std::unique_ptr<node>> all_;
};

}  // namespace grosr::cryptfs
