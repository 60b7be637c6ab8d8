// A task that waits for a message gives its worker to others: it starts the call, keeps the token
// in memory, and spawns the rest of itself at low priority.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>

#include <grosr/grosr.hpp>

using receiving = decltype(grosr::sys::recv(grosr::sys::server_ref().start(), 0, nullptr, 0, 0));

struct message {
  receiving call;  // the token
  char text[8];
  long result;
};

struct receive_rest {
  grosr::sys::server_ref sys;
  message* to;  // device memory
  GROSR_DEVICE void operator()(auto& context) const {
    const auto caller = sys.start();
    if (!grosr::sys::test(caller, to->call)) return context.spawn(*this, grosr::priority::low);
    to->result = grosr::sys::wait(caller, to->call);
  }
};

struct receive {
  grosr::sys::server_ref sys;
  int peer;
  message* to;
  GROSR_DEVICE void operator()(auto& context) const {
    to->call = grosr::sys::recv(sys.start(), peer, &to->text, 8, 0);
    context.spawn(receive_rest{sys, to}, grosr::priority::low);
  }
};

int main() {
  const grosr::device device = grosr::device::best();
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return 1;
  grosr::simt::buffer<message> messages(device, grosr::simt::space::device, 1);
  message got;
  {
    grosr::sys::options options;
    options.policy.network = true;
    grosr::sys::server server(device, options);
    server.grant(ends[0]);  // a descriptor of the program, for kernels to use
    grosr::runtime<receive, receive_rest> runtime{device};
    runtime.submit(receive{server.ref(), ends[0], messages.data()});
    if (::send(ends[1], "a letter", 8, 0) != 8) return 1;
    runtime.wait_all();
    messages.copy_to({&got, 1});
  }
  ::close(ends[0]);
  ::close(ends[1]);
  std::printf("%ld bytes: %.8s\n", got.result, got.text);
  return got.result == 8 ? 0 : 1;
}
