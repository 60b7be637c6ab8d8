// Folders to test with, and a tree around them.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "sys/folders.hpp"

namespace grosr::sys {

namespace fs = std::filesystem;

inline void write_file(const fs::path& path, const std::string& text) {
  std::ofstream(path) << text;
}

inline std::string content(int fd) {
  char text[64];
  const long n = ::pread(fd, text, sizeof text, 0);
  return n < 0 ? "unreadable" : std::string(text, static_cast<std::size_t>(n));
}

inline std::string content(const fs::path& path) {
  const descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return content(fd.get());
}

// top/rw/{file, sub/file, sub/deep}, top/ro/{file, sub/file}, top/out/file: out is no folder.
class folders_test : public ::testing::TestWithParam<resolver> {
 public:
  folders_test() {
    std::string name = fs::temp_directory_path() / "grosr_folders_XXXXXX";
    top = fs::canonical(::mkdtemp(name.data()));
    fs::create_directories(rw() / "sub/deep");
    fs::create_directories(ro() / "sub");
    fs::create_directories(out());
    for (const fs::path& folder : {rw(), ro()}) {
      write_file(folder / "file", "inside");
      write_file(folder / "sub/file", "inside sub");
    }
    write_file(out() / "file", "outside");
  }
  void SetUp() override {
    if (!walks() && resolver_here() != resolver::openat2) GTEST_SKIP() << "no openat2 here";
  }
  ~folders_test() override { fs::remove_all(top); }

  fs::path rw() const { return top / "rw"; }
  fs::path ro() const { return top / "ro"; }
  fs::path out() const { return top / "out"; }
  bool walks() const { return GetParam() == resolver::walk; }
  // What a path with a link or `..` gives: the walk denies all of these.
  long unless_walked(long result) const { return walks() ? -EPERM : result; }

  // The text of a file opened for reading, or -errno in words.
  static std::string read(const folders& f, const fs::path& path, int flags = O_RDONLY) {
    return text_of(f, f.open(path.c_str(), flags, 0));
  }
  static std::string read_at(const folders& f, long directory, const char* path) {
    return text_of(f, f.openat(static_cast<int>(directory), path, O_RDONLY, 0));
  }
  static std::string text_of(const folders& f, long fd) {
    if (fd < 0) return "error " + std::to_string(-fd);
    const std::string text = content(static_cast<int>(fd));
    end(f, fd);
    return text;
  }
  static std::string failing(long e) { return "error " + std::to_string(e); }
  std::string unless_walked(const std::string& text) const {
    return walks() ? failing(EPERM) : text;
  }

  // What opening gives, 0 or -errno.
  static long try_open(const folders& f, const fs::path& path, int flags, unsigned mode = 0600) {
    const long fd = f.open(path.c_str(), flags, mode);
    return fd < 0 ? fd : (end(f, fd), 0);
  }
  static void end(const folders& f, long fd) {
    f.forget(static_cast<int>(fd));
    ::close(static_cast<int>(fd));
  }

  folders both() const {
    return folders({{rw(), access::write}, {ro(), access::read}}, GetParam());
  }

  fs::path top;
};

inline std::string resolver_name(const ::testing::TestParamInfo<resolver>& info) {
  return info.param == resolver::openat2 ? "openat2" : "walk";
}

}  // namespace grosr::sys
