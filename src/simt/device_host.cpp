// host:N, the CPU as a device.
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>

#include "simt/backend.hpp"
#include "simt/environment.hpp"
#include "simt/host_cpus.hpp"

namespace grosr::simt::host_backend {
namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    if (begin != std::string::npos) return line.substr(begin);
  }
  return "CPU";
}

std::size_t pages(int name) {
  const long count = sysconf(name);
  return count > 0
             ? static_cast<std::size_t>(count) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE))
             : 0;
}

}  // namespace

int device_count() {
  check_environment();  // here programs begin
  return static_cast<int>(from_environment(host_devices).value_or(1));
}

std::size_t memory() {
  static const std::size_t all = pages(_SC_PHYS_PAGES);
  return all;
}

device_properties properties() {
  device_properties p;
  p.description = cpu_model();
  p.sms = host::usable_cpus();
  p.max_threads_per_sm = 2048;  // fibers: a choice, not a limit of the processor
  p.max_threads_per_block = 1024;
  p.memory = memory();
  p.memory_free = pages(_SC_AVPHYS_PAGES);
  utsname names{};
  if (uname(&names) == 0) p.architecture = names.machine;
  return p;
}

}  // namespace grosr::simt::host_backend
