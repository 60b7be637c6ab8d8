#include <memory>

#include "work/basic.hpp"

#include "work/hosted.hpp"

namespace grosr::tool {

std::unique_ptr<any_runtime> make_basic_runtime(const device& d, const runtime_options& options) {
  return std::make_unique<hosted<store, second_stage, first_stage>>(d, options);
}

}  // namespace grosr::tool
