#include "grosr/flow/block_template.hpp"

#include <fmt/format.h>

#include "grosr/simt/error.hpp"

namespace grosr::flow {

block_template::block_template(records layout, element_type element,
                               std::array<std::size_t, 3> extents)
    : layout_(layout), element_(element), extents_(extents) {
  const auto [x, y, z] = extents;
  std::size_t all = element.bytes;
  for (const std::size_t n : extents)
    if (n == 0 || n > 0xffffffffu || __builtin_mul_overflow(all, n, &all) || all > PTRDIFF_MAX)
      throw error(errc::invalid_option,
                  fmt::format("a block of {} x {} x {} {} was asked for; each extent is 1 to "
                              "4,294,967,295, and all bytes fit into memory",
                              x, y, z, element.name));
}

std::string block_template::text() const {
  const auto [x, y, z] = extents_;
  if (layout_ == records::bytes) return fmt::format("up to {} bytes", x);
  if (layout_ == records::variable) return fmt::format("records of {}, up to {}", element_.name, x);
  if (z != 1) return fmt::format("{}[{} x {} x {}]", element_.name, x, y, z);
  if (y != 1) return fmt::format("{}[{} x {}]", element_.name, x, y);
  return fmt::format("{}[{}]", element_.name, x);
}

}  // namespace grosr::flow
