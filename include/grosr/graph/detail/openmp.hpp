// Loops on OpenMP threads; on one thread where GROSR_HAS_OPENMP is not defined.
#pragma once

#include <cstdint>

#ifdef GROSR_HAS_OPENMP
#include <omp.h>
#endif

namespace grosr::graphs {

/// As many as asked for; for 0, as many as OpenMP would take. Always 1 without OpenMP.
inline unsigned openmp_threads([[maybe_unused]] unsigned asked = 0) {
#ifdef GROSR_HAS_OPENMP
  return asked != 0 ? asked : static_cast<unsigned>(omp_get_max_threads());
#else
  return 1;
#endif
}

/// Calls body() on each of so many threads and waits for them. The body must not throw.
template <class Body>
void on_threads([[maybe_unused]] unsigned threads, const Body& body) {
#ifdef GROSR_HAS_OPENMP
  if (threads != 1) {
    const int count = static_cast<int>(threads);
#pragma omp parallel num_threads(count)
    body();
    return;
  }
#endif
  body();
}

/// In the body of on_threads(), with the same number, at most once: calls each(i) for every i below
/// n. Threads take `chunk` at a time; for 0, they share them evenly beforehand. Does not wait for
/// the others.
template <class Each>
void each_by_threads([[maybe_unused]] unsigned threads, std::uint64_t n,
                     [[maybe_unused]] std::uint64_t chunk, const Each& each) {
#ifdef GROSR_HAS_OPENMP
  if (threads != 1) {
    if (chunk == 0) {
#pragma omp for schedule(static) nowait
      for (std::uint64_t i = 0; i < n; ++i) each(i);
    } else {
#pragma omp for schedule(dynamic, chunk) nowait
      for (std::uint64_t i = 0; i < n; ++i) each(i);
    }
    return;
  }
#endif
  for (std::uint64_t i = 0; i < n; ++i) each(i);
}

/// How many threads a loop over vertices is worth.
inline unsigned threads_for_vertices(std::uint64_t n) { return n < 4096 ? 1 : openmp_threads(); }

}  // namespace grosr::graphs
