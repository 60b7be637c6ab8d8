// A process that has no room for another thread.
#pragma once

#include <pthread.h>

#include <cstddef>

namespace grosr::testing {

/// While it lives no thread can be started: none gets a stack so large.
struct no_threads {
  no_threads() {
    pthread_getattr_default_np(&before);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 50);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  ~no_threads() { pthread_setattr_default_np(&before); }
  pthread_attr_t before;
};

}  // namespace grosr::testing
