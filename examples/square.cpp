// Hands a thousand tasks to the device; each starts another one while its number is small.
#include <cstdio>
#include <vector>

#include <grosr/grosr.hpp>

struct square {
  float* x;
  std::uint32_t i;
  GROSR_DEVICE void operator()(auto& context) const {
    x[i] *= x[i];
    if (x[i] < 1000) context.spawn(square{x, i});  // tasks start tasks
  }
};

int main() {
  grosr::device device = grosr::device::best();  // a GPU, or the CPU when there is none
  grosr::simt::buffer<float> x(device, grosr::simt::space::pinned, 1024);
  std::vector<square> tasks;
  for (std::uint32_t i = 0; i < 1024; ++i) {
    x[i] = 2 + i % 8;
    tasks.push_back({x.data(), i});
  }
  grosr::runtime<square> runtime{device};
  runtime.submit(tasks);
  runtime.wait_all();
  std::printf("%g %g %g\n", x[0], x[1], x[7]);
  return x[0] == 65536 && x[7] == 6561 ? 0 : 1;
}
