// The end of what was forked for its effect alone.
#pragma once

#include "grosr/run/join.hpp"

namespace grosr::recursion {

/// Has the first error of what it waited for.
struct joined {
  using result = void;
  GROSR_DEVICE int operator()(auto& context) const { return context.status(); }
};

}  // namespace grosr::recursion
