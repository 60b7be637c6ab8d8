#include "grosr/simt/process.hpp"

#include <unistd.h>

#include <atomic>
#include <new>

namespace grosr::simt {

long this_process() noexcept { return ::getpid(); }

void leave(void* what) noexcept {
  struct node {
    void* what;
    node* next;
  };
  static std::atomic<node*> all{nullptr};
  auto* n = new (std::nothrow) node{what, all.load()};
  if (n == nullptr) return;
  while (!all.compare_exchange_weak(n->next, n)) {
  }
}

}  // namespace grosr::simt
