// Operations on files: attributes, opening, reading, writing.
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "service.hpp"

namespace grosr::cryptfs {
namespace {

int fd_of(const fuse_file_info* fi) { return static_cast<int>(fi->fh); }

struct stat attributes_of(fuse_req_t req, node& n) {
  struct stat s;
  checked(fstatat(n.fd, "", &s, AT_EMPTY_PATH));
  complete(req, n, s);
  return s;
}

void get_attributes(fuse_req_t req, fuse_ino_t ino, fuse_file_info*) {
  answered(req, [&] {
    const struct stat s = attributes_of(req, node_of(req, ino));
    fuse_reply_attr(req, &s, trusted_s);
  });
}

void resize(fuse_req_t req, node& n, std::uint64_t size, const fuse_file_info* fi) {
  const int fd = fi ? fd_of(fi) : open_again(n, O_RDWR);
  const descriptor at_end{fi ? -1 : fd};
  of(req).format.truncate(n.file, fd, size, this_worker()->space);
}

timespec time_to_set(int to_set, int given, int now, const timespec& t) {
  timespec all = t;
  if (to_set & now)
    all.tv_nsec = UTIME_NOW;
  else if (!(to_set & given))
    all.tv_nsec = UTIME_OMIT;
  return all;
}

void set_attributes(fuse_req_t req, fuse_ino_t ino, struct stat* s, int to_set,
                    fuse_file_info* fi) {
  answered(req, [&] {
    node& n = node_of(req, ino);
    if (to_set & FUSE_SET_ATTR_MODE) checked(chmod(path_of(n).c_str(), s->st_mode));
    if (to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) {
      const uid_t uid = to_set & FUSE_SET_ATTR_UID ? s->st_uid : static_cast<uid_t>(-1);
      const gid_t gid = to_set & FUSE_SET_ATTR_GID ? s->st_gid : static_cast<gid_t>(-1);
      checked(fchownat(n.fd, "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW));
    }
    if (to_set & FUSE_SET_ATTR_SIZE) resize(req, n, static_cast<std::uint64_t>(s->st_size), fi);
    if (to_set & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME)) {
      const timespec times[2] = {
          time_to_set(to_set, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW, s->st_atim),
          time_to_set(to_set, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW, s->st_mtim)};
      checked(utimensat(n.fd, "", times, AT_EMPTY_PATH));
    }
    const struct stat now = attributes_of(req, n);
    fuse_reply_attr(req, &now, trusted_s);
  });
}

/// A part of a sector is written by way of what it holds, so who writes reads, too. Who truncates
/// writes.
int flags_of(const fuse_file_info* fi) {
  const bool reads_only = (fi->flags & O_ACCMODE) == O_RDONLY && !(fi->flags & O_TRUNC);
  const int mode = reads_only ? O_RDONLY : O_RDWR;
  return mode | (fi->flags & (O_SYNC | O_DSYNC | O_NOATIME));
}

void answer_open(fuse_file_info* fi, int fd) {
  fi->fh = static_cast<std::uint64_t>(fd);
  fi->keep_cache = 1;
}

void open_file(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  answered(req, [&] {
    node& n = node_of(req, ino);
    const int fd = open_again(n, flags_of(fi));
    try {
      if (fi->flags & O_TRUNC) of(req).format.truncate(n.file, fd, 0, this_worker()->space);
      of(req).format.size(n.file, fd);
    } catch (...) {
      close(fd);
      throw;
    }
    answer_open(fi, fd);
    if (fuse_reply_open(req, fi) == -ENOENT) close(fd);  // the open was interrupted
  });
}

void create_file(fuse_req_t req, fuse_ino_t ino, const char* name, mode_t mode,
                 fuse_file_info* fi) {
  answered(req, [&] {
    const node& parent = node_of(req, ino);
    refuse_key_file(req, parent, name);
    // It may be there: another client can have made it since the kernel looked.
    int fd = openat(parent.fd, name, O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_RDWR, mode);
    const bool made = fd >= 0;
    if (!made && (errno != EEXIST || fi->flags & O_EXCL)) checked(-1);
    if (!made) fd = checked(openat(parent.fd, name, O_NOFOLLOW | O_CLOEXEC | O_RDWR));
    node* n = nullptr;
    fuse_entry_param e{};
    try {
      if (made) give_to_caller(req, parent.fd, name, mode);
      e = entry_of(req, parent, name);
      n = &node_of(req, e.ino);
      if (!made && fi->flags & O_TRUNC)
        of(req).format.truncate(n->file, fd, 0, this_worker()->space);
    } catch (...) {
      if (n) of(req).nodes.forget(*n, 1);
      if (made) unlinkat(parent.fd, name, 0);
      close(fd);
      throw;
    }
    answer_open(fi, fd);
    if (fuse_reply_create(req, &e, fi) == -ENOENT) {  // it was interrupted
      of(req).nodes.forget(*n, 1);
      close(fd);
    }
  });
}

void release_file(fuse_req_t req, fuse_ino_t, fuse_file_info* fi) {
  close(fd_of(fi));
  fuse_reply_err(req, 0);
}

void read_file(fuse_req_t req, fuse_ino_t ino, std::size_t bytes, off_t offset,
               fuse_file_info* fi) {
  answered(req, [&] {
    const auto got =
        of(req).format.read(node_of(req, ino).file, fd_of(fi), static_cast<std::uint64_t>(offset),
                            bytes, this_worker()->space);
    fuse_reply_buf(req, reinterpret_cast<const char*>(got.data()), got.size());
  });
}

void write_file(fuse_req_t req, fuse_ino_t ino, const char* data, std::size_t bytes, off_t offset,
                fuse_file_info* fi) {
  answered(req, [&] {
    const worker& here = *this_worker();
    of(req).format.write(node_of(req, ino).file, fd_of(fi), static_cast<std::uint64_t>(offset),
                         {reinterpret_cast<const std::byte*>(data), bytes}, here.has_received(data),
                         here.space);
    fuse_reply_write(req, bytes);
  });
}

/// File systems below that report errors of writes when a file is closed do so here.
void flush_file(fuse_req_t req, fuse_ino_t, fuse_file_info* fi) {
  answered(req, [&] {
    checked(close(checked(fcntl(fd_of(fi), F_DUPFD_CLOEXEC, 0))));
    fuse_reply_err(req, 0);
  });
}

void sync_file(fuse_req_t req, fuse_ino_t, int data_only, fuse_file_info* fi) {
  answered(req, [&] {
    checked(data_only ? fdatasync(fd_of(fi)) : fsync(fd_of(fi)));
    fuse_reply_err(req, 0);
  });
}

void file_system_room(fuse_req_t req, fuse_ino_t ino) {
  answered(req, [&] {
    struct statvfs s;
    checked(fstatvfs(node_of(req, ino).fd, &s));
    fuse_reply_statfs(req, &s);
  });
}

}  // namespace

void add_file_operations(fuse_lowlevel_ops& o) {
  o.getattr = get_attributes;
  o.setattr = set_attributes;
  o.open = open_file;
  o.create = create_file;
  o.release = release_file;
  o.read = read_file;
  o.write = write_file;
  o.flush = flush_file;
  o.fsync = sync_file;
  o.statfs = file_system_room;
}

}  // namespace grosr::cryptfs
