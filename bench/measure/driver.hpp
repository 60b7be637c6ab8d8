// Which GPU driver runs here.
#pragma once

#include <string>

#include "grosr/simt/device.hpp"

namespace grosr::tool {

/// "580.65.06" for a GPU; "none" for the host backend; "unknown" where it does not say.
std::string driver_version(const device& d);

}  // namespace grosr::tool
