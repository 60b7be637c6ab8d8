#include "measure/driver.hpp"

#include <cctype>
#include <fstream>
#include <sstream>

namespace grosr::tool {

std::string driver_version(const device& d) {
  if (!d.is_cuda()) return "none";
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line, word;
  std::getline(file, line);  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun ..."
  for (std::istringstream words(line); words >> word;)
    if (std::isdigit(static_cast<unsigned char>(word[0])) && word.find('.') != std::string::npos)
      return word;
  return "unknown";
}

}  // namespace grosr::tool
