#include "cli/sibling.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/errors.hpp"

namespace grosr::tool {

std::span<const sibling> siblings() {
  static constexpr std::array all{
      sibling{"bench",
              "Measure: each rate beside its limit and its baselines, after its results are "
              "checked"},
      sibling{"graph",
              "Graphs from files and generators: searches, shortest paths, components, ranks, "
              "conversion"}};
  return all;
}

int become_sibling(int argc, char** argv) {
  if (argc < 2) return 0;
  for (const sibling& s : siblings()) {
    if (std::strcmp(argv[1], s.name) != 0) continue;
    std::error_code ignored;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored);
    const std::string program = self.parent_path() / fmt::format("grosr-{}", s.name);
    execv(program.c_str(), argv + 1);
    fmt::print(stderr,
               "grosr {0}: {1} cannot be started ({2}); './dev build' makes it and puts it beside "
               "grosr\n",
               s.name, program, std::strerror(errno));
    return exit_usage;
  }
  return 0;
}

}  // namespace grosr::tool
