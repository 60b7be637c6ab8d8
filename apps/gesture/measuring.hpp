// Runs of ways, checked, as rows of a report.
#pragma once

#include <string>
#include <vector>

#include "measure/report.hpp"
#include "ways.hpp"

namespace grosr::gesture {

/// All ways by all courses, in that order of rows: courses, and ways in each.
void measure_all(const setup& s, const std::vector<const named_way*>& ways,
                 const std::vector<course>& courses, tool::report& out);

}  // namespace grosr::gesture
