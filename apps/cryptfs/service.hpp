// What the operations of FUSE work on, and who calls them.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse3/fuse_lowlevel.h>

#include <exception>
#include <string>

#include "descriptor.hpp"
#include "file_format.hpp"
#include "node_table.hpp"

namespace grosr::cryptfs {

/// One mounted file system.
struct service {
  file_format format;
  node_table nodes;

  service(cipher& by, std::uint32_t sector_bytes, int root_fd, file_id key_file)
      : format(by, sector_bytes), nodes(root_fd, key_file) {}
};

/// A thread that takes requests: `received` is where they come in.
struct worker {
  workspace space;
  simt::buffer<std::byte> received;

  /// Room for the largest request and its header, as libfuse counts them.
  explicit worker(const device& d) : space(d), received(d, simt::space::pinned, room()) {}
  static std::size_t room();
  bool has_received(const void* p) const {
    const auto* at = static_cast<const std::byte*>(p);
    return at >= received.data() && at < received.data() + received.size();
  }
};
/// The calling thread's.
worker*& this_worker();

/// All that the file system answers.
const fuse_lowlevel_ops& operations();

// Their parts.
void add_file_operations(fuse_lowlevel_ops& o);
void add_name_operations(fuse_lowlevel_ops& o);

inline service& of(fuse_req_t req) { return *static_cast<service*>(fuse_req_userdata(req)); }
inline node& node_of(fuse_req_t req, fuse_ino_t number) {
  return number == FUSE_ROOT_ID ? of(req).nodes.root() : *reinterpret_cast<node*>(number);
}

/// errno of what a call said, as an exception.
int checked(int result);
int error_of(const std::exception_ptr& e);
/// Answers with the error of what `f` throws; else f has answered.
template <class F>
void answered(fuse_req_t req, F f) {
  try {
    f();
  } catch (...) {
    fuse_reply_err(req, error_of(std::current_exception()));
  }
}

/// A path to a node, which renaming does not change.
std::string path_of(const node& n);
/// Throws std::system_error.
int open_again(const node& n, int flags);
/// Sets the size, as it is unencrypted. Throws std::system_error.
void complete(fuse_req_t req, node& n, struct stat& attributes);
/// What the kernel is to be told of a node, which counts as known once more from then on.
fuse_entry_param entry_of(fuse_req_t req, const node& parent, const char* name);
void answer_entry(fuse_req_t req, const fuse_entry_param& e);
/// Throws EPERM for names of the key file.
void refuse_key_file(fuse_req_t req, const node& parent, const char* name);
/// A new file belongs to who asked for it, where the file system runs for others. `mode`: what it
/// was made with, or 0 for what has none that matters.
void give_to_caller(fuse_req_t req, int parent_fd, const char* name, mode_t mode);

constexpr double trusted_s = 1;  ///< what the kernel keeps attributes and names for

}  // namespace grosr::cryptfs
