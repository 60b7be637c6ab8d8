// load(), with the sizes that tests vary.
#pragma once

#include "graph/io/text.hpp"
#include "grosr/graph/io/input.hpp"

namespace grosr::graphs {

/// how.threads and how.memory count, not options.threads.
loaded load(const std::string& file_or_generator, const input_options& options, const reading& how);

}  // namespace grosr::graphs
