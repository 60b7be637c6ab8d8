// What kernels may ask of the host.
#pragma once

#include <string>
#include <vector>

namespace grosr::sys {

enum class access { read, write };  ///< write includes read

/// A folder, and all that lies below it. Where one folder lies in another, the inner one's access
/// holds below it.
struct folder {
  std::string path = {};  ///< a directory that exists; a relative one is below the host's own
  access allowed = access::read;
};

/// What kernels may call. The default: no file, no network, no process. A call that is denied
/// returns `-EPERM`.
struct policy {
  /// Files below these. A path is absolute, or relative to the first folder. Neither `..` nor a
  /// link leads out of the folder that a path begins in.
  std::vector<folder> folders = {};
  bool network = false;  ///< sockets
  bool process = false;  ///< calls that make, change or signal processes
  bool raw = false;      ///< `syscall` with pointers that the server cannot check
};

}  // namespace grosr::sys
