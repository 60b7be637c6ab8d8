// File systems that the bench writes to and reads from: cryptfs, and others where they are
// installed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cipher.hpp"

namespace grosr::cryptfs {

/// An encrypted directory of some kind, made in `folder`, and mounted again and again.
class file_system {
 public:
  virtual ~file_system() = default;
  virtual void mount() = 0;
  virtual void unmount() noexcept = 0;
  const std::string& mountpoint() const { return mountpoint_; }
  const std::string& name() const { return name_; }

 protected:
  file_system(std::string name, const std::string& folder);
  const std::string name_, directory_, mountpoint_;
};

/// Throws usage_error where nothing can be mounted. `make`: what encrypts, with a key.
std::unique_ptr<file_system> own_file_system(
    const std::string& name, const std::string& folder,
    const std::function<std::unique_ptr<cipher>(const secret&)>& make);
/// Those that are installed here: gocryptfs, EncFS.
std::vector<std::unique_ptr<file_system>> other_file_systems(const std::string& folder);

}  // namespace grosr::cryptfs
