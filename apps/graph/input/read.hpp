// load(), with the sizes that tests vary.
#pragma once

#include "input.hpp"
#include "input/text.hpp"

namespace grosr::graphs {

/// how.threads and how.memory count, not options.threads.
loaded load(const std::string& file_or_generator, const input_options& options, const reading& how);

}  // namespace grosr::graphs
