// What tests of system calls share: a folder of their own, servers, and a kernel that runs a
// callable.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "grosr/sys/server.hpp"
#include "support/devices.hpp"

namespace grosr::sys {

/// A folder that is gone with its owner.
class own_folder {
 public:
  own_folder() {
    char name[] = "/tmp/grosr.XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~own_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  own_folder(const own_folder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(file(name), std::ios::binary) << content;
  }
  std::string read(const std::string& name) const {
    std::ifstream f(file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(f), {}};
  }

 private:
  std::string path_;
};

/// Options for a server whose kernels may read and write below the folder; bytes travel through the
/// arena on every backend.
inline options options_for(const own_folder& f) {
  options o;
  o.threads = 2;
  o.policy.folders = {{f.path(), access::write}};
  o.use_arena = true;
  return o;
}

}  // namespace grosr::sys
