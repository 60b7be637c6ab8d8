// What keeps the memory of a heap alive beside the heap: for runtimes.
#pragma once

#include <memory>

namespace grosr {
class heap;
}

namespace grosr::alloc {

/// The heap's memory stays as long as a copy of this. Throws error(misuse) for a heap that was
/// moved from.
std::shared_ptr<const void> lifetime_of(const heap& h);

}  // namespace grosr::alloc
