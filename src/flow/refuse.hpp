// What several files of this room throw.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

#include "grosr/simt/error.hpp"

namespace grosr::flow {

[[noreturn]] inline void refuse(const std::string& text) {
  throw error(errc::invalid_option, text);
}

[[noreturn]] inline void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace grosr::flow
