// What is written is wholly there at its end, and until then what was there before.
#include "graph/io/output_file.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include "input_files.hpp"

namespace grosr::graphs {
namespace {

std::size_t files_in(const folder& f) {
  const std::filesystem::directory_iterator all(f.at(""));
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

int write(output_file& to, const std::string& text) { return to.write(text.data(), text.size()); }

TEST(output_files, are_what_they_were_until_they_are_finished) {
  const folder f;
  const std::string path = f.write("old", "old");
  for (const bool finish : {false, true}) {
    {
      output_file to;
      ASSERT_EQ(to.open(path), 0);
      ASSERT_EQ(write(to, "new "), 0);
      EXPECT_EQ(f.content("old"), "old");
      ASSERT_EQ(write(to, "text"), 0);
      if (finish) {
        ASSERT_EQ(to.finish(), 0);
      }
    }
    EXPECT_EQ(f.content("old"), finish ? "new text" : "old");
    EXPECT_EQ(files_in(f), 1u);
  }
  {
    output_file to;
    ASSERT_EQ(to.open(f.at("new")), 0);
    ASSERT_EQ(write(to, "text"), 0);
  }
  EXPECT_EQ(files_in(f), 1u);
}

TEST(output_files, keep_modes_and_links) {
  const folder f;
  ASSERT_EQ(chmod(f.write("private", "old").c_str(), 0640), 0);
  ASSERT_EQ(symlink("private", f.at("link").c_str()), 0);
  ASSERT_EQ(symlink("later", f.at("dangling").c_str()), 0);
  for (const char* name : {"link", "dangling"}) {
    output_file to;
    ASSERT_EQ(to.open(f.at(name)), 0);
    ASSERT_EQ(write(to, name), 0);
    ASSERT_EQ(to.finish(), 0);
    EXPECT_TRUE(std::filesystem::is_symlink(f.at(name)));
  }
  EXPECT_EQ(f.content("private"), "link");
  EXPECT_EQ(f.content("later"), "dangling");
  struct stat s {};
  ASSERT_EQ(stat(f.at("private").c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 07777, 0640u);
}

TEST(output_files, of_a_killed_process_are_what_they_were) {
  const folder f;
  const std::string path = f.write("old", "old");
  const pid_t child = fork();
  if (child == 0) {
    output_file to;
    if (to.open(path) == 0 && write(to, "new") == 0) raise(SIGKILL);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(f.content("old"), "old");
  for (const auto& entry : std::filesystem::directory_iterator(f.at(""))) {
    const std::string name = entry.path().filename();
    EXPECT_TRUE(name == "old" || name.ends_with(".tmp")) << name;
  }
}

TEST(output_files, that_cannot_be_say_why) {
  const folder f;
  const auto why = [](const std::string& path) { return output_file().open(path); };
  EXPECT_EQ(why(""), ENOENT);
  EXPECT_EQ(why(f.at("")), EISDIR);
  EXPECT_EQ(why(f.at("none/x")), ENOENT);
  EXPECT_EQ(why(f.at("none/")), EISDIR);
  if (geteuid() != 0) {
    ASSERT_EQ(chmod(f.write("fixed", "").c_str(), 0444), 0);
    EXPECT_EQ(why(f.at("fixed")), EACCES);
  }
}

TEST(output_files, that_are_pipes_are_written_directly) {
  const folder f;
  ASSERT_EQ(mkfifo(f.at("pipe").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = f.content("pipe"); });
  output_file to;
  EXPECT_EQ(to.open(f.at("pipe")), 0);
  EXPECT_EQ(write(to, "through"), 0);
  EXPECT_EQ(to.finish(), 0);
  reader.join();
  EXPECT_EQ(got, "through");
}

}  // namespace
}  // namespace grosr::graphs
