// A word in pinned memory that the host and the device share.
#pragma once

#include <cstdint>

#include "grosr/simt/atomic.hpp"

namespace grosr::run {

using host_word = simt::atomic_ref<std::uint32_t, simt::scope::system>;

}  // namespace grosr::run
