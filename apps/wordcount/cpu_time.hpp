// Time and CPU time of a piece of work.
#pragma once

#include <sys/resource.h>

#include "measure/samples.hpp"

namespace grosr::wordcount {

/// Seconds that all threads of the program have run so far, in the kernel too.
inline double cpu_seconds() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  const auto s = [](const timeval& t) { return double(t.tv_sec) + double(t.tv_usec) / 1e6; };
  return s(u.ru_utime) + s(u.ru_stime);
}

/// Calls work() and notes in `a` what it took.
template <class Answer, class Work>
void take_time(Answer& a, Work&& work) {
  const double before = cpu_seconds();
  a.us = tool::timed(work);
  a.cpu_s = cpu_seconds() - before;
}

}  // namespace grosr::wordcount
