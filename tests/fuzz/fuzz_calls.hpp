// Making a call that was drawn, by any caller. Device code.
#pragma once

#include "fuzz/fuzz_draw.hpp"

namespace grosr::tool::fuzz {

/// The result of a call, started or not.
template <class Caller, class T>
GROSR_DEVICE long end(const Caller& c, T t, const drawn& d) {
  if constexpr (!Caller::started) {
    return t;
  } else {
    if (d.how == fate::drop) return sys::drop(c, t);
    if (d.how == fate::test)
      for (unsigned turn = 0; turn < 40 && !sys::test(c, t); ++turn)
        simt::pause(turn, "a started call");
    return sys::wait(c, t);
  }
}

/// Which calls a caller makes: all, or one of each kind, because compiling takes long.
template <class Caller>
inline constexpr bool makes_all =
    !Caller::attempts && !Caller::started &&
    (Caller::group == sys::granularity::lane || Caller::group == sys::granularity::warp);

GROSR_DEVICE inline bool is_of_few(op o) {
  return o == op::nothing || o == op::add || o == op::raw || o == op::openat || o == op::pread ||
         o == op::pwrite || o == op::recvfrom || o == op::poll;
}

template <class Caller>
GROSR_DEVICE long printed(const Caller& c, const drawn& d) {
  if (d.marked) {
    if (d.offset == 0)
      return sys::print(c, "\1 lane {:>3} of {}: {:#x} {} {:.2f}\n", d.fd, "text", d.bytes, true,
                        0.5);
    return sys::print(c, "\1 {}\n", d.path);
  }
  switch (d.offset) {
    case is_forged: {
      const auto starter = c.start();
      auto t = sys::invoke(starter, sys::detail::make<0>(sys::call_print, d.a[0], d.a[1], d.a[2],
                                                         d.a[3], d.a[4], d.a[5]));
      return sys::drop(starter, t);
    }
    case 0:
      return sys::print(c, d.path, d.fd);
    case 1:
      return sys::print(c, "{:{}}", 7, d.fd);
    case 2:
      return sys::print(c, "{} {} {}", "two", d.other);
    case 3:
      return sys::print(c, "{:q} {} }{", 1.5, static_cast<const void*>(&d), 'x');
    case 4:
      return sys::print(c, "{:100000}", 1);
    default:
      return sys::print(c, "");
  }
}

/// One kind of call; a function of its own, which keeps what ptxas sees at a time small.
template <op O, class Caller>
GROSR_DEVICE GROSR_NOINLINE long make_one(const Caller& c, const drawn& d) {
  [[maybe_unused]] lane_memory& m = *d.memory;
  [[maybe_unused]] const auto length = static_cast<socklen_t>(d.number);
  if constexpr (O == op::throws)
    return end(c, sys::call<throwing_handler>(c, 0), d);
  else if constexpr (O == op::throws_other)
    return end(c, sys::call<throwing_handler>(c, 1), d);
  else if constexpr (O == op::missing)
    return end(c, sys::call<missing_handler>(c, 1, 2), d);
  else if constexpr (O == op::open)
    return end(c, sys::open(c, d.path, d.flags, d.mode), d);
  else if constexpr (O == op::lseek)
    return end(c, sys::lseek(c, d.fd, d.offset, d.flags), d);
  else if constexpr (O == op::ftruncate)
    return end(c, sys::ftruncate(c, d.fd, d.offset), d);
  else if constexpr (O == op::fsync)
    return end(c, sys::fsync(c, d.fd), d);
  else if constexpr (O == op::fallocate)
    return end(c, sys::fallocate(c, d.fd, d.flags, d.offset, static_cast<long>(d.bytes)), d);
  else if constexpr (O == op::unlink)
    return end(c, sys::unlink(c, d.path, d.flags), d);
  else if constexpr (O == op::mkdir)
    return end(c, sys::mkdir(c, d.path, d.mode), d);
  else if constexpr (O == op::getdents)
    return end(c, sys::getdents(c, d.fd, d.buffer, d.bytes), d);
  else if constexpr (O == op::socket)
    return end(c, sys::socket(c, d.fd, d.flags, static_cast<int>(d.number)), d);
  else if constexpr (O == op::bind)
    return end(c, sys::bind(c, d.fd, &m.name, length), d);
  else if constexpr (O == op::listen)
    return end(c, sys::listen(c, d.fd, static_cast<int>(d.bytes)), d);
  else if constexpr (O == op::connect)
    return end(c, sys::connect(c, d.fd, &m.name, length), d);
  else if constexpr (O == op::accept)
    return end(c, sys::accept(c, d.fd, d.mode % 2 ? &m.name : nullptr, &m.length, d.flags), d);
  else if constexpr (O == op::send)
    return end(c, sys::send(c, d.fd, d.buffer, d.bytes, d.flags), d);
  else if constexpr (O == op::recv)
    return end(c, sys::recv(c, d.fd, d.buffer, d.bytes, d.flags), d);
  else if constexpr (O == op::shutdown)
    return end(c, sys::shutdown(c, d.fd, d.flags % 4), d);
  else if constexpr (O == op::getsockopt)
    return end(
        c,
        sys::getsockopt(c, d.fd, d.flags, static_cast<int>(d.number), m.option, &m.option_length),
        d);
  else if constexpr (O == op::getsockname)
    return end(c, sys::getsockname(c, d.fd, &m.name, &m.length), d);
  else if constexpr (O == op::getpeername)
    return end(c, sys::getpeername(c, d.fd, &m.name, &m.length), d);
  else if constexpr (O == op::mmap)
    return end(c,
               sys::mmap(c, reinterpret_cast<void*>(d.a[0]), d.bytes, static_cast<int>(d.mode),
                         d.flags, d.fd, d.offset),
               d);
  else if constexpr (O == op::munmap)
    return end(c, sys::munmap(c, reinterpret_cast<void*>(d.a[0]), d.bytes), d);
  else if constexpr (O == op::madvise)
    return end(c, sys::madvise(c, reinterpret_cast<void*>(d.a[0]), d.bytes, d.flags), d);
  else if constexpr (O == op::clock_gettime)
    return end(c, sys::clock_gettime(c, d.flags, &m.now), d);
  else if constexpr (O == op::nanosleep)
    return end(c, sys::nanosleep(c, &m.span), d);
  else if constexpr (O == op::getrusage)
    return end(c, sys::getrusage(c, d.flags, &m.usage), d);
  else if constexpr (O == op::getrandom)
    return end(c, sys::getrandom(c, d.buffer, d.bytes, static_cast<unsigned>(d.flags)), d);
  else if constexpr (O == op::add)
    return end(c, sys::call<add_handler>(c, d.a[0], d.a[1]), d);
  else if constexpr (O == op::raw)
    return end(c, sys::syscall(c, d.number, d.a[0], d.a[1], d.a[2], d.a[3], d.a[4], d.a[5]), d);
  else if constexpr (O == op::openat)
    return end(c, sys::openat(c, d.fd, d.path, d.flags, d.mode), d);
  else if constexpr (O == op::close)
    return end(c, sys::close(c, d.fd), d);
  else if constexpr (O == op::pread)
    return end(c, sys::pread(c, d.fd, d.buffer, d.bytes, d.offset), d);
  else if constexpr (O == op::pwrite)
    return end(c, sys::pwrite(c, d.fd, d.buffer, d.bytes, d.offset), d);
  else if constexpr (O == op::read)
    return end(c, sys::read(c, d.fd, d.buffer, d.bytes), d);
  else if constexpr (O == op::write)
    return end(c, sys::write(c, d.fd, d.buffer, d.bytes), d);
  else if constexpr (O == op::readv)
    return end(c, sys::readv(c, d.fd, d.vectors(), d.flags), d);
  else if constexpr (O == op::writev)
    return end(c, sys::writev(c, d.fd, d.vectors(), d.flags), d);
  else if constexpr (O == op::fstat)
    return end(c, sys::fstat(c, d.fd, &m.status), d);
  else if constexpr (O == op::rename)
    return end(c, sys::rename(c, d.path, d.other), d);
  else if constexpr (O == op::sendto)
    return end(c, sys::sendto(c, d.fd, d.buffer, d.bytes, d.flags, &m.name, length), d);
  else if constexpr (O == op::recvfrom)
    return end(c, sys::recvfrom(c, d.fd, d.buffer, d.bytes, d.flags, &m.name, &m.length), d);
  else if constexpr (O == op::setsockopt)
    return end(
        c, sys::setsockopt(c, d.fd, d.flags, static_cast<int>(d.number), m.option, m.option_length),
        d);
  else if constexpr (O == op::poll)
    return end(c, sys::poll(c, m.polled, d.bytes, d.flags), d);
  else if constexpr (O == op::print)
    return printed(c, d);
  else
    return end(c, sys::nothing(c), d);
}

template <class Caller>
GROSR_DEVICE long make(const Caller& c, const drawn& d) {
  switch (d.what) {
    case op::add:
      return make_one<op::add>(c, d);
    case op::raw:
      return make_one<op::raw>(c, d);
    case op::openat:
      return make_one<op::openat>(c, d);
    case op::pread:
      return make_one<op::pread>(c, d);
    case op::pwrite:
      return make_one<op::pwrite>(c, d);
    case op::recvfrom:
      return make_one<op::recvfrom>(c, d);
    case op::poll:
      return make_one<op::poll>(c, d);
    default:
      break;
  }
  if constexpr (makes_all<Caller>) {
    switch (d.what) {
      case op::throws:
        return make_one<op::throws>(c, d);
      case op::throws_other:
        return make_one<op::throws_other>(c, d);
      case op::missing:
        return make_one<op::missing>(c, d);
      case op::open:
        return make_one<op::open>(c, d);
      case op::lseek:
        return make_one<op::lseek>(c, d);
      case op::ftruncate:
        return make_one<op::ftruncate>(c, d);
      case op::fsync:
        return make_one<op::fsync>(c, d);
      case op::fallocate:
        return make_one<op::fallocate>(c, d);
      case op::unlink:
        return make_one<op::unlink>(c, d);
      case op::mkdir:
        return make_one<op::mkdir>(c, d);
      case op::getdents:
        return make_one<op::getdents>(c, d);
      case op::socket:
        return make_one<op::socket>(c, d);
      case op::bind:
        return make_one<op::bind>(c, d);
      case op::listen:
        return make_one<op::listen>(c, d);
      case op::connect:
        return make_one<op::connect>(c, d);
      case op::accept:
        return make_one<op::accept>(c, d);
      case op::send:
        return make_one<op::send>(c, d);
      case op::recv:
        return make_one<op::recv>(c, d);
      case op::shutdown:
        return make_one<op::shutdown>(c, d);
      case op::getsockopt:
        return make_one<op::getsockopt>(c, d);
      case op::getsockname:
        return make_one<op::getsockname>(c, d);
      case op::getpeername:
        return make_one<op::getpeername>(c, d);
      case op::mmap:
        return make_one<op::mmap>(c, d);
      case op::munmap:
        return make_one<op::munmap>(c, d);
      case op::madvise:
        return make_one<op::madvise>(c, d);
      case op::clock_gettime:
        return make_one<op::clock_gettime>(c, d);
      case op::nanosleep:
        return make_one<op::nanosleep>(c, d);
      case op::getrusage:
        return make_one<op::getrusage>(c, d);
      case op::getrandom:
        return make_one<op::getrandom>(c, d);
      case op::close:
        return make_one<op::close>(c, d);
      case op::read:
        return make_one<op::read>(c, d);
      case op::write:
        return make_one<op::write>(c, d);
      case op::readv:
        return make_one<op::readv>(c, d);
      case op::writev:
        return make_one<op::writev>(c, d);
      case op::fstat:
        return make_one<op::fstat>(c, d);
      case op::rename:
        return make_one<op::rename>(c, d);
      case op::sendto:
        return make_one<op::sendto>(c, d);
      case op::setsockopt:
        return make_one<op::setsockopt>(c, d);
      case op::print:
        return make_one<op::print>(c, d);
      default:
        break;
    }
  }
  return make_one<op::nothing>(c, d);
}

}  // namespace grosr::tool::fuzz
