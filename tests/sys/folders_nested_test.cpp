// Where folders lie in each other, the inner one's access holds, whatever the way to it.
#include <fcntl.h>

#include "sys/folder_tree.hpp"

namespace grosr::sys {
namespace {

// rw may be written, inner below it only be read, innermost below that be written.
class nested_folders : public folders_test {
 protected:
  nested_folders() {
    fs::create_directories(rw() / "sub/inner/innermost");
    write_file(inner() / "file", "inside inner");
    write_file(inner() / "innermost/file", "inside innermost");
    fs::create_symlink("sub/inner", rw() / "to_inner");
    fs::create_symlink("sub/inner/file", rw() / "to_file");
  }
  fs::path inner() const { return rw() / "sub/inner"; }
  folders three() const {
    return folders(
        {{rw(), access::write}, {inner(), access::read}, {inner() / "innermost", access::write}},
        GetParam());
  }
};

INSTANTIATE_TEST_SUITE_P(resolvers, nested_folders,
                         ::testing::Values(resolver::openat2, resolver::walk), resolver_name);

TEST_P(nested_folders, the_longest_prefix_says_what_is_allowed) {
  const folders f = three();
  EXPECT_EQ(try_open(f, rw() / "file", O_RDWR), 0);
  EXPECT_EQ(try_open(f, rw() / "sub/new", O_RDWR | O_CREAT), 0);
  EXPECT_EQ(try_open(f, inner() / "file", O_RDWR), -EPERM);
  EXPECT_EQ(read(f, inner() / "file"), "inside inner");
  EXPECT_EQ(try_open(f, inner() / "innermost/file", O_RDWR), 0);
  EXPECT_EQ(try_open(f, inner() / "innermost", O_TMPFILE | O_RDWR), 0);
  EXPECT_EQ(try_open(f, rw() / "sub", O_TMPFILE | O_RDWR), 0);
  EXPECT_EQ(f.mkdir((inner() / "innermost/new").c_str(), 0700), 0);
  EXPECT_EQ(f.truncate((inner() / "innermost/file").c_str(), 3), 0);
  EXPECT_EQ(f.chmod("file", 0600), 0);
}

TEST_P(nested_folders, no_other_way_to_an_inner_folder_gives_more) {
  const folders f = three();
  for (const char* path : {"sub/inner/file", "sub/deep/../inner/file", "to_inner/file", "to_file",
                           "./sub//inner/file", "sub/inner/innermost/../file"}) {
    EXPECT_EQ(try_open(f, path, O_RDWR), -EPERM) << path;
    EXPECT_EQ(try_open(f, path, O_RDONLY | O_TRUNC), -EPERM) << path;
    EXPECT_EQ(f.truncate(path, 0), -EPERM) << path;
    EXPECT_EQ(f.chmod(path, 0), -EPERM) << path;
    EXPECT_EQ(f.access(path, W_OK), -EPERM) << path;
  }
  for (const char* path : {"sub/inner/file", "sub/deep/../inner/file", "to_inner/file"}) {
    EXPECT_EQ(f.unlink(path), -EPERM) << path;
    EXPECT_EQ(f.rename(path, "new"), -EPERM) << path;
    EXPECT_EQ(f.rename("file", path), -EPERM) << path;
    EXPECT_EQ(f.link(path, "new"), -EPERM) << path;
  }
  EXPECT_EQ(try_open(f, "to_inner/new", O_WRONLY | O_CREAT), -EPERM);
  EXPECT_EQ(try_open(f, "to_inner/", O_TMPFILE | O_RDWR), -EPERM);
  EXPECT_EQ(f.mkdir("to_inner/new", 0700), -EPERM);
  EXPECT_EQ(f.chmod("sub/inner", 0), -EPERM);
  EXPECT_EQ(f.chmod("to_inner", 0), -EPERM);
  EXPECT_EQ(f.chmod("to_inner/", 0), -EPERM);
  EXPECT_EQ(f.chmod("sub/inner/.", 0), -EPERM);
  EXPECT_EQ(content(inner() / "file"), "inside inner");
}

TEST_P(nested_folders, a_descriptor_allows_what_its_place_does) {
  const folders f = three();
  const long top_fd = f.open(".", O_RDONLY | O_DIRECTORY, 0);
  EXPECT_EQ(f.openat(static_cast<int>(top_fd), "sub/inner/file", O_RDWR, 0), -EPERM);
  EXPECT_EQ(f.unlinkat(static_cast<int>(top_fd), "sub/inner/file", 0), -EPERM);
  const long file = f.openat(static_cast<int>(top_fd), "sub/inner/innermost/file", O_RDWR, 0);
  EXPECT_GE(file, 0);
  end(f, file);
  end(f, top_fd);
  for (const char* path : {"sub/inner", "to_inner", "sub/deep/../inner"}) {
    const long fd = f.open(path, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0) {
      EXPECT_TRUE(walks()) << path;
      continue;
    }
    EXPECT_EQ(f.openat(static_cast<int>(fd), "file", O_RDWR, 0), -EPERM) << path;
    EXPECT_EQ(f.mkdirat(static_cast<int>(fd), "new", 0700), -EPERM) << path;
    end(f, fd);
  }
}

TEST_P(nested_folders, inner_folders_stay_where_they_are) {
  const folders f = three();
  EXPECT_EQ(f.rename("sub/inner", "moved"), -EBUSY);
  EXPECT_EQ(f.renameat2(AT_FDCWD, "sub/deep", AT_FDCWD, "sub/inner", RENAME_EXCHANGE), -EBUSY);
  EXPECT_EQ(f.rmdir("sub/inner"), -EBUSY);
  EXPECT_EQ(f.rename("sub", "moved"), 0) << "what holds one may be moved";
  EXPECT_EQ(try_open(f, "moved/inner/file", O_RDWR), -EPERM);
  EXPECT_EQ(try_open(f, inner() / "file", O_RDWR), -EPERM);
  EXPECT_EQ(read(f, inner() / "file"), "inside inner");
}

}  // namespace
}  // namespace grosr::sys
