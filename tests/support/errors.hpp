// What a call threw.
#pragma once

#include <gtest/gtest.h>

#include "grosr/simt/error.hpp"

namespace grosr::testing {

/// The error that `call` throws; fails the test if it throws none.
template <class Call>
error error_of(Call&& call) {
  try {
    call();
  } catch (const error& e) {
    return e;
  }
  ADD_FAILURE() << "nothing was thrown";
  return error(errc::misuse, "");
}

}  // namespace grosr::testing
