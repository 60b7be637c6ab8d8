// Tasks that await system calls: thousands wait for messages, and none of them holds a worker.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <vector>

#include <grosr/grosr.hpp>

struct received {  // runs when the message is there
  using result = long;
  long bytes;          // what recv returned
  std::uint64_t text;  // what it received
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    if (bytes < 0) return static_cast<int>(bytes);
    context.give(static_cast<long>(text));
    return 0;
  }
};
struct receive {
  using result = long;
  grosr::sys::server_ref sys;
  int peer;
  GROSR_DEVICE void operator()(auto& context) const {
    auto& next = context.join(received{});
    grosr::sys::recv(context.await(sys, &next.bytes), peer, &next.text, 8, 0);
  }
};

int main() {
  const grosr::device device = grosr::device::best();
  constexpr unsigned count = 200;
  std::vector<std::array<int, 2>> peers(count);
  grosr::sys::options options;
  options.policy.network = true;
  grosr::sys::server server(device, options);
  for (auto& p : peers) {
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p.data()) != 0) return 1;
    server.grant(p[0]);  // a descriptor of the program, for kernels to use
  }
  grosr::runtime<receive, received, grosr::awaited> runtime(device);
  std::vector<grosr::future<long>> all;
  for (auto& p : peers) all.push_back(runtime.fork(receive{server.ref(), p[0]}));
  long sent = 0, got = 0;
  for (unsigned i = count; i-- > 0; sent += i) {  // the last one first
    const std::uint64_t text = i;
    if (::send(peers[i][1], &text, 8, 0) != 8) return 1;
  }
  for (auto& f : all) got += f.get();
  std::printf("%u messages; the sum of them is %ld\n", count, got);
  return got == sent ? 0 : 1;
}
