// What sorts check of the memory that they are given.
#pragma once

#include <string>

#include "grosr/simt/buffer.hpp"
#include "grosr/simt/error.hpp"

namespace grosr::recursion {

/// Throws error(invalid_option).
inline void check_sort_memory(const simt::buffer<std::uint32_t>& keys,
                              const simt::buffer<std::uint32_t>& scratch) {
  if (keys.size() > 0xffff'ffffu)
    throw error(errc::invalid_option, "sort of " + std::to_string(keys.size()) +
                                          " keys: at most 4294967295 fit a call; sort parts");
  if (scratch.size() < keys.size())
    throw error(errc::invalid_option, "sort of " + std::to_string(keys.size()) +
                                          " keys: the scratch buffer holds " +
                                          std::to_string(scratch.size()) + "; make it as large");
}

}  // namespace grosr::recursion
