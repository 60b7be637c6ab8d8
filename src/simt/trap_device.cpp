// The kernel that ends every kernel of its context.
#include "grosr/simt/launch.hpp"

namespace grosr::simt {

struct trap_kernel {
  GROSR_DEVICE void operator()() const { trap(); }
};

void launch_trap(stream& s) { launch<32, 1>(s, {1, 32}, trap_kernel{}); }
void load_trap(const device& d) { fit<32, 1, trap_kernel>(d, 32); }

}  // namespace grosr::simt
