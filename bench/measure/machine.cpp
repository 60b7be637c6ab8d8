#include "measure/machine.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <fstream>

namespace grosr::tool {
namespace {

/// What follows `key` and `separator` in a file's first line that begins with it; "unknown".
std::string value_of(const char* path, const std::string& key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const std::size_t at = line.find(separator, key.size());
    const std::size_t begin = line.find_first_not_of(" \t\"", at == line.npos ? at : at + 1);
    if (begin == line.npos) continue;
    const std::size_t end = line.find_last_not_of(" \t\"");
    return line.substr(begin, end - begin + 1);
  }
  return "unknown";
}

}  // namespace

std::string cpu_model() { return value_of("/proc/cpuinfo", "model name", ':'); }

std::string system_name() { return value_of("/etc/os-release", "PRETTY_NAME", '='); }

std::string kernel_version() {
  utsname u{};
  return ::uname(&u) == 0 ? std::string(u.sysname) + " " + u.release : "unknown";
}

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

double cpu_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

}  // namespace grosr::tool
