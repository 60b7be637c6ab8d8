#include "node_table.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace grosr::cryptfs {

node::~node() {
  if (fd >= 0) close(fd);
}

node& node_table::look_up(const node& parent, const char* name, struct stat& attributes) {
  auto found = std::make_unique<node>();
  found->fd = openat(parent.fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (found->fd < 0 || fstatat(found->fd, "", &attributes, AT_EMPTY_PATH) != 0)
    throw std::system_error(errno, std::generic_category());
  found->id = {attributes.st_dev, attributes.st_ino};
  if (found->id == hidden_) throw std::system_error(ENOENT, std::generic_category());
  std::lock_guard guard(lock_);
  auto& known = all_[found->id];
  if (!known) known = std::move(found);
  ++known->lookups;
  return *known;
}

bool node_table::is_hidden(const node& parent, const char* name) const {
  struct stat s;
  return fstatat(parent.fd, name, &s, AT_SYMLINK_NOFOLLOW) == 0 &&
         file_id{s.st_dev, s.st_ino} == hidden_;
}

void node_table::forget(node& n, std::uint64_t times) {
  std::lock_guard guard(lock_);
  if (&n == &root_) return;
  n.lookups -= times;
  if (n.lookups == 0) all_.erase(n.id);
}

}  // namespace grosr::cryptfs
