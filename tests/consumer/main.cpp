// Lists the devices of this machine through an installed GROSR.
#include <cstdio>
#include <grosr/simt/device.hpp>
#include <grosr/version.hpp>

int main() {
  std::printf("grosr %s\n", GROSR_VERSION_STRING);
  int devices = 0;
  for (auto& d : grosr::device::list()) {
    std::printf("%s\n", d.name().c_str());
    ++devices;
  }
  return devices > 0 ? 0 : 1;
}
