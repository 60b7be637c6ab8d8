// Pinned memory of the host backend. All of it lies in one range of addresses, so that an atomic of
// a lane can tell it from device memory by a comparison.
#pragma once

#include <cstddef>

namespace grosr::simt::host {

/// Zeroed, aligned to pages; the heap's sanitizer knows where it ends. Null when the range is full,
/// or the process could get none: then memory comes from elsewhere, and is not told apart.
/// Thread-safe, as free_pinned().
void* allocate_pinned(std::size_t bytes);

void free_pinned(void* p);

}  // namespace grosr::simt::host
