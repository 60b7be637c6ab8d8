// Operations on names: directories, links, renaming.
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <vector>

#include "key_file.hpp"
#include "service.hpp"

namespace grosr::cryptfs {
namespace {

void look_up(fuse_req_t req, fuse_ino_t parent, const char* name) {
  answered(req, [&] {
    const node& p = node_of(req, parent);
    if (&p == &of(req).nodes.root() && std::strcmp(name, key_file_name) == 0)
      throw std::system_error(ENOENT, std::generic_category());
    answer_entry(req, entry_of(req, p, name));
  });
}

void forget(fuse_req_t req, fuse_ino_t ino, std::uint64_t times) {
  of(req).nodes.forget(node_of(req, ino), times);
  fuse_reply_none(req);
}

void forget_several(fuse_req_t req, std::size_t count, fuse_forget_data* all) {
  for (std::size_t i = 0; i < count; ++i)
    of(req).nodes.forget(node_of(req, all[i].ino), all[i].nlookup);
  fuse_reply_none(req);
}

/// Makes what has a name by `f(directory)`, and answers with it. `how`: removes it again where the
/// caller gets an error.
template <class F>
void make(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, int how, F f) {
  answered(req, [&] {
    const node& p = node_of(req, parent);
    refuse_key_file(req, p, name);
    checked(f(p.fd));
    fuse_entry_param e;
    try {
      give_to_caller(req, p.fd, name, mode);
      e = entry_of(req, p, name);
    } catch (...) {
      unlinkat(p.fd, name, how);
      throw;
    }
    answer_entry(req, e);
  });
}

void make_directory(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode) {
  make(req, parent, name, 0, AT_REMOVEDIR, [&](int fd) { return mkdirat(fd, name, mode); });
}
void make_node(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, dev_t number) {
  make(req, parent, name, mode, 0, [&](int fd) { return mknodat(fd, name, mode, number); });
}
void make_symbolic_link(fuse_req_t req, const char* to, fuse_ino_t parent, const char* name) {
  make(req, parent, name, 0, 0, [&](int fd) { return symlinkat(to, fd, name); });
}

void make_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char* name) {
  answered(req, [&] {
    const node& p = node_of(req, parent);
    refuse_key_file(req, p, name);
    const std::string from = path_of(node_of(req, ino));
    checked(linkat(AT_FDCWD, from.c_str(), p.fd, name, AT_SYMLINK_FOLLOW));
    fuse_entry_param e;
    try {
      e = entry_of(req, p, name);
    } catch (...) {
      unlinkat(p.fd, name, 0);
      throw;
    }
    answer_entry(req, e);
  });
}

void read_link(fuse_req_t req, fuse_ino_t ino) {
  answered(req, [&] {
    char text[PATH_MAX + 1];
    const ssize_t n = readlinkat(node_of(req, ino).fd, "", text, PATH_MAX);
    text[checked(static_cast<int>(n))] = 0;
    fuse_reply_readlink(req, text);
  });
}

void remove(fuse_req_t req, fuse_ino_t parent, const char* name, int flags) {
  answered(req, [&] {
    const node& p = node_of(req, parent);
    refuse_key_file(req, p, name);
    checked(unlinkat(p.fd, name, flags));
    fuse_reply_err(req, 0);
  });
}
void remove_file(fuse_req_t req, fuse_ino_t parent, const char* name) {
  remove(req, parent, name, 0);
}
void remove_directory(fuse_req_t req, fuse_ino_t parent, const char* name) {
  remove(req, parent, name, AT_REMOVEDIR);
}

void rename_file(fuse_req_t req, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
                 const char* new_name, unsigned flags) {
  answered(req, [&] {
    const node &from = node_of(req, parent), &to = node_of(req, new_parent);
    refuse_key_file(req, from, name);
    refuse_key_file(req, to, new_name);
    checked(renameat2(from.fd, name, to.fd, new_name, flags));
    fuse_reply_err(req, 0);
  });
}

/// A directory that is read, and the entry that had no room in the last answer.
struct listing {
  DIR* all;
  off_t at = 0;
  const dirent* entry = nullptr;
};
listing& listing_of(const fuse_file_info* fi) { return *reinterpret_cast<listing*>(fi->fh); }

void open_directory(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  answered(req, [&] {
    const int fd = checked(openat(node_of(req, ino).fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    DIR* all = fdopendir(fd);
    if (!all) {
      close(fd);
      throw std::system_error(ENOMEM, std::generic_category());
    }
    auto* made = new listing{all};
    fi->fh = reinterpret_cast<std::uint64_t>(made);
    if (fuse_reply_open(req, fi) == -ENOENT) {
      closedir(all);
      delete made;
    }
  });
}

void read_directory(fuse_req_t req, fuse_ino_t ino, std::size_t bytes, off_t offset,
                    fuse_file_info* fi) {
  answered(req, [&] {
    listing& d = listing_of(fi);
    if (offset != d.at) {
      seekdir(d.all, offset);
      d.at = offset;
      d.entry = nullptr;
    }
    const bool is_root = &node_of(req, ino) == &of(req).nodes.root();
    std::vector<char> text(bytes);
    std::size_t used = 0;
    for (;;) {
      if (!d.entry) {
        errno = 0;
        d.entry = readdir(d.all);
        if (!d.entry && errno != 0 && used == 0) checked(-1);
        if (!d.entry) break;
      }
      if (!is_root || std::strcmp(d.entry->d_name, key_file_name) != 0) {
        struct stat s {};
        s.st_ino = d.entry->d_ino;
        s.st_mode = static_cast<mode_t>(d.entry->d_type) << 12;
        const std::size_t n = fuse_add_direntry(req, text.data() + used, bytes - used,
                                                d.entry->d_name, &s, d.entry->d_off);
        if (n > bytes - used) break;
        used += n;
      }
      d.at = d.entry->d_off;
      d.entry = nullptr;
    }
    fuse_reply_buf(req, text.data(), used);
  });
}

void release_directory(fuse_req_t req, fuse_ino_t, fuse_file_info* fi) {
  listing* d = &listing_of(fi);
  closedir(d->all);
  delete d;
  fuse_reply_err(req, 0);
}

void sync_directory(fuse_req_t req, fuse_ino_t, int, fuse_file_info* fi) {
  answered(req, [&] {
    checked(fsync(dirfd(listing_of(fi).all)));
    fuse_reply_err(req, 0);
  });
}

}  // namespace

void add_name_operations(fuse_lowlevel_ops& o) {
  o.lookup = look_up;
  o.forget = forget;
  o.forget_multi = forget_several;
  o.mkdir = make_directory;
  o.mknod = make_node;
  o.symlink = make_symbolic_link;
  o.link = make_link;
  o.readlink = read_link;
  o.unlink = remove_file;
  o.rmdir = remove_directory;
  o.rename = rename_file;
  o.opendir = open_directory;
  o.readdir = read_directory;
  o.releasedir = release_directory;
  o.fsyncdir = sync_directory;
}

}  // namespace grosr::cryptfs
