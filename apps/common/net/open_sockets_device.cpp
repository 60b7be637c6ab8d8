#include "net/open_sockets.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include "grosr/simt/launch.hpp"
#include "net/socket.hpp"

namespace grosr::tool {
namespace {

struct opening {
  sockaddr_in name;
  long problem;  ///< a negative errno
};

// A warp opens them all. Lane 0 alone deals with what lies on stacks.
struct open_all {
  sys::server_ref sys;
  int type;
  std::uint32_t count;
  opening* out;
  int* sockets;

  GROSR_DEVICE long open_one(sockaddr_in& name, bool shared) const {
    const auto c = sys.warp();
    const long made = sys::socket(c, AF_INET, type);
    if (made < 0) return made;
    const int s = static_cast<int>(made), on = 1, room = datagram_room;
    const int option = shared ? SO_REUSEPORT : SO_REUSEADDR;
    if (shared || type == SOCK_STREAM) sys::setsockopt(c, s, SOL_SOCKET, option, &on, sizeof on);
    if (type == SOCK_STREAM)
      sys::setsockopt(c, s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    else
      sys::setsockopt(c, s, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    socklen_t bytes = sizeof name;
    long bad = sys::bind(c, s, &name, bytes);
    if (bad == 0) bad = sys::getsockname(c, s, &name, &bytes);
    if (bad == 0 && type == SOCK_STREAM) bad = sys::listen(c, s, 1024);
    if (bad == 0) return s;
    sys::close(c, s);
    return bad;
  }

  GROSR_DEVICE void operator()() const {
    sockaddr_in name = out->name;
    // A program that shares a name would not notice that another one has it, and shares it too.
    long made = open_one(name, false);
    if (count > 1 && made >= 0) sys::close(sys.warp(), static_cast<int>(made));
    for (std::uint32_t i = 0; i < count && made >= 0; ++i) {
      if (count > 1) made = open_one(name, true);
      if (simt::lane_id() == 0) sockets[i] = static_cast<int>(made);
    }
    if (simt::lane_id() == 0) *out = {name, made < 0 ? made : 0};
  }
};

}  // namespace

simt::buffer<int> open_sockets_on(const device& d, const sys::server& s, int type,
                                  sockaddr_in& name, unsigned count) {
  simt::buffer<int> sockets(d, simt::space::device, count);
  simt::buffer<opening> out(d, simt::space::device, 1);
  opening o{name, 0};
  out.copy_from({&o, 1});
  simt::run(d, {1, simt::warp_size}, open_all{s.ref(), type, count, out.data(), sockets.data()});
  out.copy_to({&o, 1});
  if (o.problem != 0) refuse_name(type, name, static_cast<int>(-o.problem));
  name = o.name;
  return sockets;
}

}  // namespace grosr::tool
