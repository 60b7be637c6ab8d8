// --device.
#pragma once

#include <optional>
#include <string>

#include "cli/text.hpp"
#include "grosr/simt/device.hpp"

namespace grosr::tool {

/// The device of that name; the best one present without a name. Throws grosr::error.
inline device pick_device(const std::optional<std::string>& name) {
  return name ? device(one_line(*name)) : device::best();
}

}  // namespace grosr::tool
