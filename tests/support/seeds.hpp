// One property under many schedules of the host backend.
#pragma once

#include <errno.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <utility>

#include "grosr/simt/detail/host_machine.hpp"
#include "support/scale.hpp"

namespace grosr::testing {

/// The first of `count` seeds out of 1 to n: the slice that GROSR_TEST_SLICE, any number, names.
/// Consecutive numbers name consecutive slices; without one it is the first.
inline std::uint64_t first_of_slice(std::uint64_t n, std::uint64_t count) {
  const char* text = std::getenv("GROSR_TEST_SLICE");
  const std::uint64_t slice = text != nullptr ? std::strtoull(text, nullptr, 10) : 0;
  const std::uint64_t slices = std::max<std::uint64_t>(1, n / std::max<std::uint64_t>(1, count));
  return 1 + slice % slices * count;
}

/// Calls `property()` under `count` of the seeds 1, 2, ... n; which ones, first_of_slice() says. It
/// stops at the first that fails or throws, with the command that replays it. When GROSR_SEED is
/// set, that seed alone.
template <class Property>
void for_slice_of_seeds(std::uint64_t n, std::uint64_t count, Property&& property) {
  struct restore {
    ~restore() { simt::host::set_seed(std::nullopt); }
  } at_end;
  simt::host::set_seed(std::nullopt);
  const auto only = simt::host::seed();
  const std::uint64_t first = only.value_or(first_of_slice(n, count));
  const std::uint64_t last = only ? *only : first + count - 1;
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

/// Calls `property()` under some of the seeds 1, 2, ... n: as many as GROSR_TEST_SCALE says but
/// never fewer than `least`, a tenth of that with a sanitizer. As for_slice_of_seeds().
template <class Property>
void for_seeds(std::uint64_t n, Property&& property, std::uint64_t least = 1) {
  for_slice_of_seeds(n, scaled(n, std::max<std::uint64_t>(1, least / slowdown)),
                     std::forward<Property>(property));
}

/// The same for a property that takes long: `few` of n seeds at a time, scaled, and all of them
/// when GROSR_TEST_SCALE is 1 or more.
template <class Property>
void for_few_seeds(std::uint64_t n, std::uint64_t few, Property&& property) {
  for_slice_of_seeds(n, scale() < 1 ? std::min(n, scaled(few)) : scaled(n),
                     std::forward<Property>(property));
}

}  // namespace grosr::testing
