// wordcount --compare: all ways of counting, checked against each other, beside each other.
#pragma once

#include "counting.hpp"
#include "measure/session.hpp"

namespace grosr::wordcount {

/// `cpu_threads`: of OpenMP and Vectorscan; `threads`: the server's, 0 for the usual number.
void compare(tool::session& s, const question& q, unsigned threads, unsigned cpu_threads);

}  // namespace grosr::wordcount
