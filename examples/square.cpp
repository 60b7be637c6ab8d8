// Hands a thousand tasks to the device and waits for them.
#include <cstdio>
#include <grosr/grosr.hpp>
#include <vector>

struct square {
  float* x;
  GROSR_DEVICE void operator()(auto&) const { *x *= *x; }
};

int main() {
  grosr::device device = grosr::device::best();
  grosr::simt::buffer<float> x(device, grosr::simt::space::pinned, 1000);
  std::vector<square> tasks;
  for (int i = 0; i < 1000; ++i) {
    x[i] = static_cast<float>(i);
    tasks.push_back({&x[i]});
  }
  grosr::runtime<square> runtime(device);
  runtime.submit(tasks).wait();
  std::printf("999 squared is %.0f\n", x[999]);
  return x[999] == 998001.0f ? 0 : 1;
}
