// An object that has threads belongs to the process that made it.
#pragma once

namespace grosr::simt {

/// Names this process: a fork has another number.
long this_process() noexcept;

/// How many forks lead to this process: an object that was made before one of them has another
/// number. Cheap.
unsigned forks_so_far() noexcept;

/// Keeps what is there for good, where leak checkers see it.
void leave(void* what) noexcept;

/// A deleter, for std::unique_ptr and owner. In a forked child, which has none of the threads and
/// locks that others may have held, nothing is destroyed: who would join the threads or wait for
/// the others would wait for ever.
struct not_in_a_fork {
  long made_in = this_process();
  template <class T>
  void operator()(T* what) const {
    if (this_process() == made_in)
      delete what;
    else
      leave(what);
  }
};

}  // namespace grosr::simt
