#include "service.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <system_error>

#include "cli/text.hpp"
#include "key_file.hpp"

namespace grosr::cryptfs {
namespace {

void begin(void*, fuse_conn_info* c) {
  c->max_write = most_request;
  c->max_readahead = most_request;
  c->max_background = 64;
  c->congestion_threshold = 48;
  // Requests come into memory that devices reach, not through pipes. Only this file system changes
  // its files, so what the kernel keeps of them stays right.
  c->want &=
      ~static_cast<unsigned>(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
                             FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_HANDLE_KILLPRIV);
}

}  // namespace

std::size_t worker::room() {
  return 256 * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + 2 * header_bytes;
}

worker*& this_worker() {
  static thread_local worker* here = nullptr;
  return here;
}

const fuse_lowlevel_ops& operations() {
  static const fuse_lowlevel_ops all = [] {
    fuse_lowlevel_ops o{};
    o.init = begin;
    add_file_operations(o);
    add_name_operations(o);
    return o;
  }();
  return all;
}

int checked(int result) {
  if (result < 0) throw std::system_error(errno, std::generic_category());
  return result;
}

int error_of(const std::exception_ptr& e) {
  try {
    std::rethrow_exception(e);
  } catch (const grosr::error& wrong) {
    static std::atomic<bool> said{false};
    if (!said.exchange(true))
      tool::say(fmt::format("cryptfs: {}; requests fail\n", tool::one_line(wrong.what())));
    return EIO;
  } catch (const std::system_error& wrong) {
    return wrong.code().value();
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  } catch (...) {
    return EIO;
  }
}

std::string path_of(const node& n) { return fmt::format("/proc/self/fd/{}", n.fd); }

int open_again(const node& n, int flags) {
  return checked(open(path_of(n).c_str(), flags | O_CLOEXEC));
}

void complete(fuse_req_t req, node& n, struct stat& attributes) {
  if (!S_ISREG(attributes.st_mode)) return;
  {
    std::shared_lock guard(n.file.lock);
    if (n.file.known) {
      attributes.st_size = static_cast<off_t>(n.file.size);
      return;
    }
  }
  // A size that is not known is an error: Linux would append to a file of 0 bytes at its start. Who
  // gets EACCES here gets it from open, too; a damaged file can be removed, and not opened.
  attributes.st_size = 0;
  const int fd = open(path_of(n).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == EACCES) return;
  const descriptor at_end{checked(fd)};
  try {
    attributes.st_size = static_cast<off_t>(of(req).format.size(n.file, fd));
  } catch (const damaged_file&) {
  }
}

fuse_entry_param entry_of(fuse_req_t req, const node& parent, const char* name) {
  fuse_entry_param e{};
  node& n = of(req).nodes.look_up(parent, name, e.attr);
  try {
    complete(req, n, e.attr);
  } catch (...) {
    of(req).nodes.forget(n, 1);  // the kernel is not told of it
    throw;
  }
  e.ino = reinterpret_cast<fuse_ino_t>(&n);
  e.attr_timeout = e.entry_timeout = trusted_s;
  return e;
}

void answer_entry(fuse_req_t req, const fuse_entry_param& e) {
  if (fuse_reply_entry(req, &e) == -ENOENT)  // it was interrupted
    of(req).nodes.forget(node_of(req, e.ino), 1);
}

void refuse_key_file(fuse_req_t req, const node& parent, const char* name) {
  node_table& nodes = of(req).nodes;
  if ((&parent == &nodes.root() && std::strcmp(name, key_file_name) == 0) ||
      nodes.is_hidden(parent, name))
    throw std::system_error(EPERM, std::generic_category());
}

void give_to_caller(fuse_req_t req, int parent_fd, const char* name, mode_t mode) {
  if (geteuid() != 0) return;
  const fuse_ctx* who = fuse_req_ctx(req);
  struct stat parent;
  checked(fstatat(parent_fd, "", &parent, AT_EMPTY_PATH));
  const gid_t group = parent.st_mode & S_ISGID ? static_cast<gid_t>(-1) : who->gid;
  checked(fchownat(parent_fd, name, who->uid, group, AT_SYMLINK_NOFOLLOW));
  // That took these bits away. Who may not have them was not given them by Linux.
  if (mode & (S_ISUID | S_ISGID)) checked(fchmodat(parent_fd, name, mode & 07777, 0));
}

}  // namespace grosr::cryptfs
