// The sockets of a server whose kernels answer: kernels make them.
#pragma once

#include <netinet/in.h>

#include <vector>

#include "grosr/simt/buffer.hpp"
#include "grosr/sys/server.hpp"

namespace grosr::tool {

/// As open_sockets() of socket.hpp, made by a kernel with the server's calls: descriptors for
/// kernels, in device memory. The policy must allow the network.
simt::buffer<int> open_sockets_on(const device& d, const sys::server& s, int type,
                                  sockaddr_in& name, unsigned count);

}  // namespace grosr::tool
