// Tasks start tasks: a binary tree of a quarter of a million, counted in device memory.
#include <cstdio>
#include <grosr/grosr.hpp>

struct node {
  unsigned* leaves;
  unsigned depth;

  GROSR_DEVICE void operator()(auto& context) const {
    if (depth == 0) {
      grosr::simt::atomic_ref<unsigned>(*leaves).fetch_add(1, grosr::simt::relaxed);
      return;
    }
    context.spawn(node{leaves, depth - 1});
    context.spawn(node{leaves, depth - 1});
  }
};

int main() {
  constexpr unsigned depth = 17;
  grosr::device device = grosr::device::best();
  grosr::simt::buffer<unsigned> leaves(device, grosr::simt::space::device, 1);

  grosr::runtime<node> runtime(device);
  runtime.submit(node{leaves.data(), depth});
  runtime.wait_all();  // a ticket would wait for the root alone

  unsigned count = 0;
  leaves.copy_to({&count, 1});
  grosr::runtime_stats stats = runtime.stats();
  std::printf("%u leaves on %s, by %u workers in %llu batches\n", count, device.name().c_str(),
              stats.workers, static_cast<unsigned long long>(stats.batches));
  return count == 1u << depth ? 0 : 1;
}
