// Nobody who changes places of directories and links meanwhile makes a call lead out.
#include <fcntl.h>

#include <atomic>
#include <thread>

#include "support/scale.hpp"
#include "sys/folder_tree.hpp"

namespace grosr::sys {
namespace {

class folder_races : public folders_test {};

INSTANTIATE_TEST_SUITE_P(resolvers, folder_races,
                         ::testing::Values(resolver::openat2, resolver::walk), resolver_name);

// Runs `change` over and over on a thread of its own.
class meanwhile {
 public:
  template <class Change>
  explicit meanwhile(Change change)
      : thread_([this, change] {
          while (!done_.load()) change(), changes_.fetch_add(1);
        }) {}
  ~meanwhile() {
    done_ = true;
    thread_.join();
  }
  long changes() const { return changes_.load(); }

 private:
  std::atomic<bool> done_{false};
  std::atomic<long> changes_{0};
  std::thread thread_;
};

void exchange(const fs::path& a, const fs::path& b) {
  ASSERT_EQ(::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE), 0);
}

// A walk that met a link finds a directory when it looks what it was.
bool is_denial(const std::string& text) {
  return text == folders_test::failing(EPERM) || text == folders_test::failing(EAGAIN) ||
         text == folders_test::failing(ENOTDIR);
}

TEST_P(folder_races, links_that_change_places_with_directories_do_not_lead_out) {
  for (const fs::path& text : {out(), fs::path("../out")}) {
    fs::create_directory(rw() / "d");
    write_file(rw() / "d/file", "inside d");
    fs::create_symlink(text, rw() / "l");
    const folders f = both();
    long inside = 0, denied = 0;
    {
      const meanwhile swap([&] { exchange(rw() / "d", rw() / "l"); });
      const auto enough = static_cast<long>(testing::scaled(2'000, 50));
      for (long i = 0; i < 100 * enough && (inside < enough || denied < enough); ++i) {
        const std::string text_read = read(f, "d/file");
        inside += text_read == "inside d";
        denied += text_read == failing(EPERM);
        ASSERT_TRUE(text_read == "inside d" || is_denial(text_read)) << text_read;
        const long made = f.mkdir("d/new", 0700);
        ASSERT_TRUE(made == 0 || made == -EEXIST || is_denial(failing(-made))) << made;
        if (i % 64 == 0) std::this_thread::yield();
      }
      EXPECT_GT(swap.changes(), 0);
    }
    EXPECT_GT(inside, 0);
    EXPECT_GT(denied, 0);
    EXPECT_FALSE(fs::exists(out() / "new"));
    fs::remove_all(rw() / "d");
    fs::remove_all(rw() / "l");
  }
}

TEST_P(folder_races, a_directory_that_is_moved_out_does_not_lead_out) {
  write_file(top / "secret", "outside");
  write_file(rw() / "secret", "inside");
  fs::create_directories(rw() / "sub/b");
  const folders f = both();
  const meanwhile move([&] {
    fs::rename(rw() / "sub/b", out() / "b");
    fs::rename(out() / "b", rw() / "sub/b");
  });
  const long tries = static_cast<long>(testing::scaled(20'000, 500));
  for (long i = 0; i < tries; ++i) {
    const std::string text = read(f, "sub/b/../../secret");
    ASSERT_NE(text, "outside");
    if (i % 64 == 0) std::this_thread::yield();
  }
}

TEST_P(folder_races, threads_share_it) {
  const folders f = both();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const bool writes = t % 2 == 0;
      for (std::uint64_t i = 0; i < testing::scaled(2'000, 100); ++i) {
        const long fd = f.open((writes ? rw() : ro()).c_str(), O_RDONLY | O_DIRECTORY, 0);
        ASSERT_GE(fd, 0);
        const long file = f.openat(static_cast<int>(fd), "file", O_RDWR, 0);
        ASSERT_EQ(file < 0, !writes);
        if (file >= 0) end(f, file);
        end(f, fd);
      }
    });
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace grosr::sys
