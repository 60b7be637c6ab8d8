#include "grosr/simt/process.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <new>

namespace grosr::simt {

namespace {

std::atomic<unsigned> forks{0};
const int counts_forks =
    ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

unsigned forks_so_far() noexcept {
  (void)counts_forks;
  return forks.load(std::memory_order_relaxed);
}

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
