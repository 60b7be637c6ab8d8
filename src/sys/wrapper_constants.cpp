// What the wrappers of calls say themselves, so that their headers include none of Linux's.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <type_traits>

#include "grosr/sys/detail/copy.hpp"
#include "grosr/sys/network.hpp"

namespace grosr::sys {

static_assert(detail::first_folder == AT_FDCWD && detail::pollfd_bytes == sizeof(pollfd));
static_assert(std::is_same_v<sys::socklen_t, ::socklen_t> && std::is_same_v<sys::nfds_t, ::nfds_t>);
static_assert(sizeof(memory_piece) == sizeof(iovec) && alignof(memory_piece) == alignof(iovec) &&
              offsetof(memory_piece, base) == offsetof(iovec, iov_base) &&
              offsetof(memory_piece, bytes) == offsetof(iovec, iov_len));

}  // namespace grosr::sys
