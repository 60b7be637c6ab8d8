// A mounted encrypted directory, and the threads that serve it.
#pragma once

#include <memory>
#include <string>

#include "cipher.hpp"
#include "key_file.hpp"

namespace grosr::cryptfs {

struct mount_options {
  std::string directory, mountpoint;
  unsigned threads = 4;
  bool allow_other = false;
};

/// Throws usage_error for what cannot be mounted, or not there.
void check_mount(const mount_options& o);

class mounted {
 public:
  /// Mounts, and begins to serve. `by` outlives it. Throws usage_error.
  mounted(const mount_options& o, std::uint32_t sector_bytes, cipher& by);
  /// end().
  ~mounted();
  mounted(const mounted&) = delete;

  /// Whether somebody has unmounted it, or serving failed.
  bool ended() const;
  bool failed() const;
  /// Takes the mount point away, and waits for requests that have begun. What has files open there
  /// gets errors from then on.
  void end() noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace grosr::cryptfs
