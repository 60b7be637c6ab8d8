// One property under many schedules of the host backend.
#pragma once

#include <errno.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>

#include "grosr/simt/detail/host_machine.hpp"
#include "support/scale.hpp"

namespace grosr::testing {

/// Calls `property()` under seeds 1, 2, ... n, scaled by GROSR_TEST_SCALE but never fewer than
/// `least`, a tenth of that with a sanitizer, and stops at the first that fails or throws, with the
/// command that replays it. When GROSR_SEED is set, that seed alone.
template <class Property>
void for_seeds(std::uint64_t n, Property&& property, std::uint64_t least = 1) {
  struct restore {
    ~restore() { simt::host::set_seed(std::nullopt); }
  } at_end;
  simt::host::set_seed(std::nullopt);
  const auto only = simt::host::seed();
  const std::uint64_t first = only.value_or(1);
  const std::uint64_t last = only ? *only : scaled(n, std::max<std::uint64_t>(1, least / slowdown));
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    simt::host::set_seed(seed);
    try {
      property();
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
    if (::testing::Test::HasFailure()) {
      const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
      ADD_FAILURE() << "seed " << seed << " failed; replay it with\n  GROSR_SEED=" << seed << " "
                    << program_invocation_name << " --gtest_filter=" << test->test_suite_name()
                    << "." << test->name();
      return;
    }
    if (seed == last) return;  // last may be the largest number there is
  }
}

}  // namespace grosr::testing
