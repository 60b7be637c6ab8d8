#include "grosr/simt/asymmetric_fence.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace grosr::simt {
namespace {

bool membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

// ThreadSanitizer knows of no other thread's fences.
bool enter() {
#if defined(__SANITIZE_THREAD__)
  return false;
#else
  return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
#endif
}

}  // namespace

const bool others_can_be_fenced = enter();

void heavy_fence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (!others_can_be_fenced || membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  // Short of memory, or forbidden since: no store stays in a processor for so long.
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace grosr::simt
