#include "measure/driver.hpp"

#include <fstream>
#include <regex>

namespace grosr::tool {

std::string driver_version(const device& d) {
  if (!d.is_cuda()) return "none";
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun ..."
  std::smatch found;
  if (std::regex_search(line, found, std::regex(R"(\b\d{3,}\.\d+(\.\d+)?\b)"))) return found.str();
  return "unknown";
}

}  // namespace grosr::tool
