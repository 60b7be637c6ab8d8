// What may be written can be changed in every way that a path names, what may only be read in none.
#include <fcntl.h>
#include <sys/stat.h>

#include <climits>

#include "sys/folder_tree.hpp"

namespace grosr::sys {
namespace {

class folder_changes : public folders_test {};

INSTANTIATE_TEST_SUITE_P(resolvers, folder_changes,
                         ::testing::Values(resolver::openat2, resolver::walk), resolver_name);

TEST_P(folder_changes, bad_paths_are_refused_as_linux_does) {
  const folders f = both();
  EXPECT_EQ(f.open("", O_RDONLY, 0), -ENOENT);
  EXPECT_EQ(f.open(nullptr, O_RDONLY, 0), -EFAULT);
  EXPECT_EQ(f.unlink(""), -ENOENT);
  EXPECT_EQ(f.mkdir("", 0700), -ENOENT);
  struct ::stat s;
  EXPECT_EQ(f.stat("", &s), -ENOENT);
  std::string slashes = rw().string() + std::string(PATH_MAX, '/') + "file";
  EXPECT_EQ(f.open(slashes.c_str(), O_RDONLY, 0), -ENAMETOOLONG);
  slashes.erase(rw().string().size(), slashes.size() - (PATH_MAX - 1));
  ASSERT_EQ(slashes.size(), std::size_t{PATH_MAX} - 1);
  slashes.replace(0, rw().string().size(), rw().string());
  EXPECT_EQ(read(f, slashes), "inside");
  std::string long_name(300, 'n');
  EXPECT_EQ(f.open(long_name.c_str(), O_RDONLY, 0), -ENAMETOOLONG);
  EXPECT_EQ(f.mkdir(long_name.append("/x").c_str(), 0700), -ENAMETOOLONG);
  EXPECT_EQ(try_open(f, "file/", O_RDONLY), -ENOTDIR);
  EXPECT_EQ(try_open(f, "file/.", O_RDONLY), -ENOTDIR);
  EXPECT_EQ(try_open(f, "new/", O_RDWR | O_CREAT), -EISDIR);
  EXPECT_EQ(try_open(f, "sub", O_RDWR), -EISDIR);
  EXPECT_EQ(try_open(f, ".", O_RDWR | O_CREAT), -EISDIR);
  EXPECT_EQ(f.unlink("file/"), -ENOTDIR);
  EXPECT_EQ(f.unlinkat(AT_FDCWD, "file", 0x8000), -EINVAL);
  EXPECT_EQ(f.renameat2(AT_FDCWD, "file", AT_FDCWD, "f", 1u << 20), -EINVAL);
}

TEST_P(folder_changes, the_last_component_of_a_change_is_a_name) {
  const folders f = both();
  for (const fs::path& path : {fs::path("."), fs::path("sub/."), fs::path("sub/.."), rw(),
                               rw() / "", fs::path("sub/deep/../"), fs::path("./")}) {
    EXPECT_EQ(f.mkdir(path.c_str(), 0700), -EEXIST) << path;
    EXPECT_EQ(f.symlink("x", path.c_str()), -EEXIST) << path;
    EXPECT_EQ(f.unlink(path.c_str()), -EISDIR) << path;
    EXPECT_EQ(f.rmdir(path.c_str()), -EINVAL) << path;
    EXPECT_EQ(f.rename(path.c_str(), "x"), -EBUSY) << path;
    EXPECT_EQ(f.rename("sub", path.c_str()), -EBUSY) << path;
    EXPECT_EQ(f.link(path.c_str(), "x"), -EPERM) << path;
  }
  EXPECT_TRUE(fs::exists(rw() / "sub/deep"));
}

TEST_P(folder_changes, where_writing_is_allowed_everything_can_be_changed) {
  const folders f = both();
  EXPECT_EQ(try_open(f, "new", O_WRONLY | O_CREAT | O_EXCL), 0);
  EXPECT_EQ(try_open(f, "new", O_WRONLY | O_CREAT | O_EXCL), -EEXIST);
  EXPECT_EQ(try_open(f, "sub/", O_TMPFILE | O_RDWR), 0);
  EXPECT_EQ(f.truncate("new", 100), 0);
  EXPECT_EQ(fs::file_size(rw() / "new"), 100u);
  EXPECT_EQ(f.truncate("new", -1), -EINVAL);
  EXPECT_EQ(f.truncate("sub", 0), -EISDIR);
  EXPECT_EQ(f.chmod("new", 0640), 0);
  const ::timespec times[2] = {{10, 0}, {20, 0}};
  EXPECT_EQ(f.utimensat(AT_FDCWD, "new", times, 0), 0);
  struct ::stat s;
  EXPECT_EQ(f.stat("new", &s), 0);
  EXPECT_EQ(s.st_mode & 07777, 0640u);
  EXPECT_EQ(s.st_mtime, 20);
  EXPECT_EQ(f.access("new", R_OK | W_OK), 0);
  EXPECT_EQ(f.access("none", F_OK), -ENOENT);
  EXPECT_EQ(f.mkdir("made/", 0700), 0);
  EXPECT_EQ(f.mkdir("made", 0700), -EEXIST);
  EXPECT_EQ(f.rename("new", (rw() / "made/moved").c_str()), 0);
  EXPECT_EQ(f.renameat2(AT_FDCWD, "file", AT_FDCWD, "made/moved", RENAME_NOREPLACE), -EEXIST);
  EXPECT_EQ(f.renameat2(AT_FDCWD, "file", AT_FDCWD, "made/moved", RENAME_EXCHANGE), 0);
  EXPECT_EQ(read(f, "made/moved"), "inside");
  EXPECT_EQ(f.link("made/moved", "again"), 0);
  EXPECT_EQ(read(f, "again"), "inside");
  EXPECT_EQ(f.rmdir("made"), -ENOTEMPTY);
  EXPECT_EQ(f.unlink("made"), -EISDIR);
  EXPECT_EQ(f.unlink("made/moved"), 0);
  EXPECT_EQ(f.rmdir("made/"), 0);
  EXPECT_EQ(f.unlink("none"), -ENOENT);
}

TEST_P(folder_changes, a_link_itself_can_be_looked_at_and_dated) {
  fs::create_symlink(out() / "file", rw() / "link");
  const folders f = both();
  struct ::stat s;
  EXPECT_EQ(f.lstat("link", &s), 0);
  EXPECT_TRUE(S_ISLNK(s.st_mode));
  EXPECT_EQ(f.faccessat(AT_FDCWD, "link", F_OK, AT_SYMLINK_NOFOLLOW), 0);
  const ::timespec times[2] = {{10, 0}, {20, 0}};
  EXPECT_EQ(f.utimensat(AT_FDCWD, "link", times, AT_SYMLINK_NOFOLLOW), 0);
  EXPECT_EQ(f.lstat("link", &s), 0);
  EXPECT_EQ(s.st_mtime, 20);
  EXPECT_EQ(::stat((out() / "file").c_str(), &s), 0);
  EXPECT_NE(s.st_mtime, 20);
}

TEST_P(folder_changes, where_only_reading_is_allowed_nothing_can_be_changed) {
  const folders f = both();
  const fs::path file = ro() / "file";
  for (const int flags : {O_WRONLY, O_RDWR, O_ACCMODE, O_RDONLY | O_TRUNC, O_RDONLY | O_CREAT,
                          O_RDONLY | O_APPEND, O_WRONLY | O_CREAT | O_EXCL}) {
    EXPECT_EQ(try_open(f, file, flags), -EPERM) << flags;
    EXPECT_EQ(try_open(f, ro() / "new", flags), -EPERM) << flags;
  }
  EXPECT_EQ(try_open(f, ro(), O_TMPFILE | O_RDWR), -EPERM);
  EXPECT_EQ(f.unlink(file.c_str()), -EPERM);
  EXPECT_EQ(f.rmdir((ro() / "sub").c_str()), -EPERM);
  EXPECT_EQ(f.mkdir((ro() / "new").c_str(), 0700), -EPERM);
  EXPECT_EQ(f.symlink("x", (ro() / "new").c_str()), -EPERM);
  EXPECT_EQ(f.rename(file.c_str(), (ro() / "new").c_str()), -EPERM);
  EXPECT_EQ(f.rename(file.c_str(), "new"), -EPERM);
  EXPECT_EQ(f.rename("file", (ro() / "new").c_str()), -EPERM);
  EXPECT_EQ(f.link(file.c_str(), "new"), -EPERM) << "it could be written by its new name";
  EXPECT_EQ(f.link("file", (ro() / "new").c_str()), -EPERM);
  EXPECT_EQ(f.truncate(file.c_str(), 0), -EPERM);
  EXPECT_EQ(f.chmod(file.c_str(), 0), -EPERM);
  EXPECT_EQ(f.utimensat(AT_FDCWD, file.c_str(), nullptr, 0), -EPERM);
  EXPECT_EQ(f.access(file.c_str(), W_OK), -EPERM);
  EXPECT_EQ(f.access(file.c_str(), R_OK), 0);
  EXPECT_EQ(read(f, file), "inside");
}

TEST_P(folder_changes, a_directory_opened_here_is_a_place_to_begin) {
  const folders f = both();
  const long sub = f.open("sub", O_RDONLY | O_DIRECTORY, 0);
  const long kept = f.open((ro() / "sub").c_str(), O_RDONLY | O_DIRECTORY, 0);
  ASSERT_GE(sub, 0);
  ASSERT_GE(kept, 0);
  EXPECT_NE(::fcntl(static_cast<int>(sub), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(read_at(f, sub, "file"), "inside sub");
  EXPECT_EQ(read_at(f, sub, "../file"), failing(EPERM)) << "not below the descriptor";
  EXPECT_EQ(read_at(f, sub, (rw() / "file").c_str()), "inside");
  EXPECT_EQ(read_at(f, sub, (out() / "file").c_str()), failing(EPERM));
  struct ::stat s, t;
  const int d = static_cast<int>(sub), k = static_cast<int>(kept);
  EXPECT_EQ(f.newfstatat(d, "", &s, AT_EMPTY_PATH), 0);
  EXPECT_EQ(::fstat(d, &t), 0);
  EXPECT_EQ(s.st_ino, t.st_ino);
  EXPECT_EQ(f.mkdirat(d, "new", 0700), 0);
  EXPECT_EQ(f.renameat2(d, "new", AT_FDCWD, "new", 0), 0);
  EXPECT_EQ(f.unlinkat(d, "file", 0), 0);
  EXPECT_EQ(read_at(f, kept, "file"), "inside sub");
  EXPECT_EQ(f.openat(k, "file", O_RDWR, 0), -EPERM);
  EXPECT_EQ(f.unlinkat(k, "file", 0), -EPERM);
  EXPECT_EQ(f.mkdirat(k, "new", 0700), -EPERM);
  EXPECT_EQ(f.renameat2(d, "deep", k, "deep", 0), -EPERM);
  const long again = f.openat(k, ".", O_RDONLY | O_DIRECTORY, 0);
  EXPECT_EQ(f.openat(static_cast<int>(again), "file", O_RDWR, 0), -EPERM);
  end(f, again);
  const long file = f.open("file", O_RDONLY, 0);
  EXPECT_EQ(read_at(f, file, "x"), failing(ENOTDIR));
  end(f, file);
  f.forget(d);
  EXPECT_EQ(read_at(f, sub, "deep"), failing(EBADF));
  end(f, sub);
  end(f, kept);
}

TEST_P(folder_changes, a_descriptor_that_was_not_opened_here_is_none) {
  const folders f = both();
  const descriptor mine(::open(out().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (const int fd : {mine.get(), -1, -7, 0, 1 << 20, INT_MAX, INT_MIN}) {
    EXPECT_EQ(read_at(f, fd, "file"), failing(EBADF)) << fd;
    EXPECT_EQ(f.unlinkat(fd, "file", 0), -EBADF) << fd;
    f.forget(fd);
  }
}

}  // namespace
}  // namespace grosr::sys
