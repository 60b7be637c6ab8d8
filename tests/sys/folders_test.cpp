// Calls with paths reach what lies below the policy's folders, and nothing else.
#include <fcntl.h>

#include "support/errors.hpp"
#include "sys/folder_tree.hpp"

namespace grosr::sys {
namespace {

using testing::error_of;

class folder_paths : public folders_test {};

INSTANTIATE_TEST_SUITE_P(resolvers, folder_paths,
                         ::testing::Values(resolver::openat2, resolver::walk), resolver_name);

TEST_P(folder_paths, refuses_in_words_what_is_no_folder) {
  const auto text = [&](const fs::path& path) {
    const error e = error_of([&] { folders({{path}}, GetParam()); });
    EXPECT_EQ(e.code(), errc::invalid_option);
    return std::string(e.what());
  };
  EXPECT_NE(text(top / "none").find("none', but opening it says: No such file"), std::string::npos);
  EXPECT_NE(text(rw() / "file").find("Not a directory; make the directory"), std::string::npos);
  EXPECT_NE(text("").find("No such file"), std::string::npos);
  EXPECT_NE(text(rw().string() + std::string(1, '\0')).find("zero byte"), std::string::npos);
  const error e = error_of([&] {
    folders({{rw(), access::read}, {rw() / "sub/..", access::write}});
  });
  EXPECT_NE(std::string(e.what()).find("list it once"), std::string::npos);
}

TEST_P(folder_paths, without_folders_nothing_can_be_opened) {
  const folders none({}, GetParam());
  for (const char* path : {"/", ".", "file", "/etc/passwd", "/proc/self/cwd"})
    EXPECT_EQ(none.open(path, O_RDONLY, 0), -EPERM) << path;
  struct ::stat s;
  EXPECT_EQ(none.newfstatat(AT_FDCWD, "", &s, AT_EMPTY_PATH), -EPERM);
}

TEST_P(folder_paths, paths_are_absolute_or_below_the_first_folder) {
  const folders f = both();
  EXPECT_EQ(read(f, "file"), "inside");
  EXPECT_EQ(read(f, "sub/file"), "inside sub");
  EXPECT_EQ(read(f, "./sub/./file"), "inside sub");
  EXPECT_EQ(read(f, "sub//file"), "inside sub");
  EXPECT_EQ(read(f, rw() / "file"), "inside");
  EXPECT_EQ(read(f, ro() / "sub/file"), "inside sub");
  EXPECT_EQ(read(f, "//" + ro().string() + "//./sub///file"), "inside sub");
  EXPECT_EQ(read(f, "none"), failing(ENOENT));
  EXPECT_EQ(read(f, "file/none"), failing(ENOTDIR));
  for (const fs::path& path : {rw(), rw() / "", rw() / ".", fs::path("."), fs::path("sub///"),
                               fs::path("sub/."), fs::path("sub/deep")})
    EXPECT_EQ(try_open(f, path, O_RDONLY | O_DIRECTORY), 0) << path;
}

TEST_P(folder_paths, paths_outside_are_denied) {
  const folders f = both();
  for (const fs::path& path :
       {fs::path("/"), top, out() / "file", top / "rwx", top / "r", top / "rw.",
        rw() / "../out/file", rw() / "..", rw() / "sub/../../out/file", rw() / "../rw/file",
        top / "out/../rw/file", fs::path("../out/file"), fs::path(".."),
        fs::path("sub/../../rw/file"), top / "none", fs::path("/etc/passwd"), fs::path("/.."),
        fs::path("/proc/self/cwd/file"), fs::path("/proc/self/root") / out() / "file"}) {
    EXPECT_EQ(read(f, path), failing(EPERM)) << path;
    struct ::stat s;
    EXPECT_EQ(f.stat(path.c_str(), &s), -EPERM) << path;
    EXPECT_EQ(f.lstat(path.c_str(), &s), -EPERM) << path;
    EXPECT_EQ(f.truncate(path.c_str(), 0), -EPERM) << path;
    EXPECT_EQ(f.access(path.c_str(), F_OK), -EPERM) << path;
  }
  EXPECT_EQ(content(out() / "file"), "outside");
}

TEST_P(folder_paths, dots_that_stay_below_work) {
  const folders f = both();
  EXPECT_EQ(read(f, rw() / "sub/../file"), unless_walked("inside"));
  EXPECT_EQ(read(f, "sub/deep/../../sub/file"), unless_walked("inside sub"));
  EXPECT_EQ(f.unlink("sub/../file"), unless_walked(0));
}

TEST_P(folder_paths, links_lead_only_to_what_is_below) {
  fs::create_symlink("sub/file", rw() / "to_file");
  fs::create_symlink("sub", rw() / "to_sub");
  fs::create_symlink("../file", rw() / "sub/up");
  fs::create_symlink(rw() / "file", rw() / "absolute");
  fs::create_symlink("../out/file", rw() / "out_file");
  fs::create_symlink("../out", rw() / "out_folder");
  fs::create_symlink(out(), rw() / "out_absolute");
  fs::create_symlink("../out/new", rw() / "dangling");
  fs::create_symlink("loop", rw() / "loop");
  const folders f = both();
  EXPECT_EQ(read(f, "to_file"), unless_walked("inside sub"));
  EXPECT_EQ(read(f, "to_sub/file"), unless_walked("inside sub"));
  EXPECT_EQ(read(f, "to_sub/"), unless_walked("unreadable"));
  EXPECT_EQ(read(f, "sub/up"), unless_walked("inside"));
  EXPECT_EQ(try_open(f, "to_file", O_PATH), unless_walked(0L));
  EXPECT_EQ(try_open(f, "to_file", O_PATH | O_NOFOLLOW), 0);
  EXPECT_EQ(try_open(f, "to_file", O_RDONLY | O_NOFOLLOW), -ELOOP);
  EXPECT_EQ(try_open(f, "to_file", O_RDONLY | O_CREAT | O_EXCL), -EEXIST);
  EXPECT_EQ(try_open(f, "loop", O_RDONLY), unless_walked(-ELOOP));
  struct ::stat s;
  for (const char* path : {"absolute", "out_file", "out_folder/file", "out_absolute/file",
                           "out_folder/", "out_absolute/.", "out_folder/../rw/file"}) {
    EXPECT_EQ(read(f, path), failing(EPERM)) << path;
    EXPECT_EQ(read(f, path, O_RDWR), failing(EPERM)) << path;
    EXPECT_EQ(f.stat(path, &s), -EPERM) << path;
    EXPECT_EQ(f.truncate(path, 0), -EPERM) << path;
    EXPECT_EQ(f.chmod(path, 0), -EPERM) << path;
    EXPECT_EQ(f.access(path, R_OK), -EPERM) << path;
    EXPECT_EQ(f.utimensat(AT_FDCWD, path, nullptr, 0), -EPERM) << path;
  }
  EXPECT_EQ(f.lstat("out_folder/", &s), -EPERM);
  EXPECT_EQ(try_open(f, "dangling", O_WRONLY | O_CREAT), -EPERM);
  EXPECT_EQ(try_open(f, "out_folder/new", O_WRONLY | O_CREAT), -EPERM);
  EXPECT_EQ(try_open(f, "out_folder", O_TMPFILE | O_RDWR), -EPERM);
  EXPECT_EQ(f.mkdir("out_folder/new", 0700), -EPERM);
  EXPECT_EQ(f.unlink("out_folder/file"), -EPERM);
  EXPECT_EQ(f.rename("file", "out_folder/file"), -EPERM);
  EXPECT_EQ(f.rename("out_folder/file", "stolen"), -EPERM);
  EXPECT_EQ(f.link("out_folder/file", "stolen"), -EPERM);
  EXPECT_FALSE(fs::exists(out() / "new"));
  EXPECT_EQ(content(out() / "file"), "outside");
}

TEST_P(folder_paths, links_made_through_it_do_not_lead_out) {
  const folders f = both();
  EXPECT_EQ(f.symlink("../out", "a"), 0);
  EXPECT_EQ(f.symlink((out() / "file").c_str(), "b"), 0);
  EXPECT_EQ(f.symlink("/proc/self/root", "c"), 0);
  EXPECT_EQ(f.symlink("x", "a"), -EEXIST);
  EXPECT_EQ(f.symlink(nullptr, "d"), -EFAULT);
  EXPECT_EQ(read(f, "a/file"), failing(EPERM));
  EXPECT_EQ(read(f, "b"), failing(EPERM));
  EXPECT_EQ(read(f, "c" + out().string() + "/file"), failing(EPERM));
  EXPECT_EQ(f.link("b", "e"), 0) << "the link itself has two names then";
  EXPECT_EQ(read(f, "e"), failing(EPERM));
  char text[PATH_MAX];
  EXPECT_EQ(f.readlink("a", text, sizeof text), 6);
  EXPECT_EQ(std::string(text, 6), "../out");
  EXPECT_EQ(f.readlink("file", text, sizeof text), -EINVAL);
  EXPECT_EQ(f.readlink("a/", text, sizeof text), -EPERM);
  EXPECT_EQ(f.readlink("/proc/self/exe", text, sizeof text), -EPERM);
}

TEST_P(folder_paths, magic_links_are_not_followed) {
  const folders proc({{"/proc", access::read}}, GetParam());
  const descriptor outside(::open((out() / "file").c_str(), O_RDONLY | O_CLOEXEC));
  const std::string number = std::to_string(outside.get());
  EXPECT_NE(read(proc, "self/fd/" + number), "outside");
  EXPECT_NE(read(proc, "/proc/self/fd/" + number), "outside");
  EXPECT_NE(read(proc, "/proc/self/root" + out().string() + "/file"), "outside");
  EXPECT_LT(try_open(proc, "self/cwd", O_RDONLY), 0);
  EXPECT_LT(try_open(proc, "/proc/thread-self/cwd/.", O_PATH), 0);
  const folders f = both();
  fs::create_symlink("/proc/self/fd/" + number, rw() / "magic");
  EXPECT_EQ(read(f, "magic"), failing(EPERM));
  EXPECT_EQ(read(f, "/proc/self/fd/" + number), failing(EPERM));
  EXPECT_EQ(read(f, "/dev/fd/" + number), failing(EPERM));
}

TEST_P(folder_paths, a_folder_is_known_by_the_path_it_was_given_by) {
  fs::create_directory_symlink(rw(), top / "alias");
  const folders f({{top / "alias/", access::write}}, GetParam());
  EXPECT_EQ(read(f, top / "alias/file"), "inside");
  EXPECT_EQ(read(f, rw() / "file"), "inside");
  EXPECT_EQ(read(f, top / "alias/../out/file"), failing(EPERM));
  fs::rename(rw(), top / "elsewhere");
  EXPECT_EQ(read(f, rw() / "file"), "inside") << "it stays the folder";
  const folders here({{".", access::read}}, GetParam());
  EXPECT_EQ(try_open(here, fs::current_path(), O_RDONLY), 0);
  const folders all({{"/", access::read}}, GetParam());
  EXPECT_EQ(read(all, out() / "file"), "outside");
  EXPECT_EQ(try_open(all, "/", O_RDONLY), 0);
}

}  // namespace
}  // namespace grosr::sys
