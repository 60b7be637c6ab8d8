// The only file that is compiled again when the commit changes.
#include <grosr/version.hpp>

namespace grosr {

std::string_view version() noexcept { return GROSR_VERSION_STRING; }

std::string_view commit() noexcept {
  return
#include "grosr_commit.inc"
      ;
}

build_info build() noexcept {
#ifdef GROSR_HAS_CUDA
  constexpr std::string_view backends = "host cuda";
#else
  constexpr std::string_view backends = "host";
#endif
  return {version(),        commit(),
          backends,         GROSR_BUILD_COMPILER,
          GROSR_BUILD_NVCC, GROSR_BUILD_ARCHITECTURES,
          GROSR_BUILD_TYPE, GROSR_BUILD_SANITIZERS,
          GROSR_BUILD_FLAGS};
}

}  // namespace grosr
