// Making a call that was drawn, by any caller. Device code.
#pragma once

#include "work/fuzz_draw.hpp"

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

/// Whether the caller makes all calls, or a selection of each kind: compiling takes long.
template <class Caller>
inline constexpr bool makes_all =
    !Caller::attempts && (Caller::group == sys::granularity::lane ||
                          (Caller::group != sys::granularity::grid && !Caller::started &&
                           Caller::order == sys::ordering::strong));

template <class Caller>
GROSR_DEVICE GROSR_NOINLINE long make_rare(const Caller& c, const drawn& d) {
  lane_memory& m = *d.memory;
  const auto length = static_cast<socklen_t>(d.number);
  switch (d.what) {
    case op::throws:
      return end(c, sys::call<throwing_handler>(c, 0), d);
    case op::throws_other:
      return end(c, sys::call<throwing_handler>(c, 1), d);
    case op::missing:
      return end(c, sys::call<missing_handler>(c, 1, 2), d);
    case op::open:
      return end(c, sys::open(c, d.path, d.flags, d.mode), d);
    case op::lseek:
      return end(c, sys::lseek(c, d.fd, d.offset, d.flags), d);
    case op::ftruncate:
      return end(c, sys::ftruncate(c, d.fd, d.offset), d);
    case op::fsync:
      return end(c, sys::fsync(c, d.fd), d);
    case op::fallocate:
      return end(c, sys::fallocate(c, d.fd, d.flags, d.offset, static_cast<long>(d.bytes)), d);
    case op::unlink:
      return end(c, sys::unlink(c, d.path, d.flags), d);
    case op::mkdir:
      return end(c, sys::mkdir(c, d.path, d.mode), d);
    case op::getdents:
      return end(c, sys::getdents(c, d.fd, d.buffer, d.bytes), d);
    case op::socket:
      return end(c, sys::socket(c, d.fd, d.flags, static_cast<int>(d.number)), d);
    case op::bind:
      return end(c, sys::bind(c, d.fd, &m.name, length), d);
    case op::listen:
      return end(c, sys::listen(c, d.fd, static_cast<int>(d.bytes)), d);
    case op::connect:
      return end(c, sys::connect(c, d.fd, &m.name, length), d);
    case op::accept:
      return end(c, sys::accept(c, d.fd, d.mode % 2 ? &m.name : nullptr, &m.length, d.flags), d);
    case op::send:
      return end(c, sys::send(c, d.fd, d.buffer, d.bytes, d.flags), d);
    case op::recv:
      return end(c, sys::recv(c, d.fd, d.buffer, d.bytes, d.flags), d);
    case op::shutdown:
      return end(c, sys::shutdown(c, d.fd, d.flags % 4), d);
    case op::getsockopt:
      return end(
          c,
          sys::getsockopt(c, d.fd, d.flags, static_cast<int>(d.number), m.option, &m.option_length),
          d);
    case op::getsockname:
      return end(c, sys::getsockname(c, d.fd, &m.name, &m.length), d);
    case op::getpeername:
      return end(c, sys::getpeername(c, d.fd, &m.name, &m.length), d);
    case op::mmap:
      return end(c,
                 sys::mmap(c, reinterpret_cast<void*>(d.a[0]), d.bytes, static_cast<int>(d.mode),
                           d.flags, d.fd, d.offset),
                 d);
    case op::munmap:
      return end(c, sys::munmap(c, reinterpret_cast<void*>(d.a[0]), d.bytes), d);
    case op::madvise:
      return end(c, sys::madvise(c, reinterpret_cast<void*>(d.a[0]), d.bytes, d.flags), d);
    case op::clock_gettime:
      return end(c, sys::clock_gettime(c, d.flags, &m.now), d);
    case op::nanosleep:
      return end(c, sys::nanosleep(c, &m.span), d);
    case op::getrusage:
      return end(c, sys::getrusage(c, d.flags, &m.usage), d);
    default:
      return end(c, sys::nothing(c), d);
  }
}

GROSR_DEVICE inline bool is_rare(op o) {
  switch (o) {
    case op::nothing:
    case op::add:
    case op::raw:
    case op::print:
    case op::openat:
    case op::close:
    case op::pread:
    case op::pwrite:
    case op::read:
    case op::write:
    case op::fstat:
    case op::rename:
    case op::sendto:
    case op::recvfrom:
    case op::setsockopt:
    case op::poll:
    case op::getrandom:
      return false;
    default:
      return true;
  }
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

/// What every caller makes, and what some make.
template <class Caller>
GROSR_DEVICE GROSR_NOINLINE long make(const Caller& c, const drawn& d) {
  lane_memory& m = *d.memory;
  if constexpr (makes_all<Caller>)
    if (is_rare(d.what)) return make_rare(c, d);
  switch (d.what) {
    case op::add:
      return end(c, sys::call<add_handler>(c, d.a[0], d.a[1]), d);
    case op::raw:
      return end(c, sys::syscall(c, d.number, d.a[0], d.a[1], d.a[2], d.a[3], d.a[4], d.a[5]), d);
    case op::print:
      if constexpr (!Caller::started) return printed(c, d);
      return end(c, sys::nothing(c), d);
    case op::openat:
      return end(c, sys::openat(c, d.fd, d.path, d.flags, d.mode), d);
    case op::close:
      return end(c, sys::close(c, d.fd), d);
    case op::pread:
      return end(c, sys::pread(c, d.fd, d.buffer, d.bytes, d.offset), d);
    case op::pwrite:
      return end(c, sys::pwrite(c, d.fd, d.buffer, d.bytes, d.offset), d);
    case op::read:
      return end(c, sys::read(c, d.fd, d.buffer, d.bytes), d);
    case op::write:
      return end(c, sys::write(c, d.fd, d.buffer, d.bytes), d);
    case op::fstat:
      return end(c, sys::fstat(c, d.fd, &m.status), d);
    case op::rename:
      return end(c, sys::rename(c, d.path, d.other), d);
    case op::sendto:
      return end(c,
                 sys::sendto(c, d.fd, d.buffer, d.bytes, d.flags, &m.name,
                             static_cast<socklen_t>(d.number)),
                 d);
    case op::recvfrom:
      return end(c, sys::recvfrom(c, d.fd, d.buffer, d.bytes, d.flags, &m.name, &m.length), d);
    case op::setsockopt:
      return end(
          c,
          sys::setsockopt(c, d.fd, d.flags, static_cast<int>(d.number), m.option, m.option_length),
          d);
    case op::poll:
      return end(c, sys::poll(c, m.polled, d.bytes, d.flags), d);
    case op::getrandom:
      return end(c, sys::getrandom(c, d.buffer, d.bytes, static_cast<unsigned>(d.flags)), d);
    default:
      return end(c, sys::nothing(c), d);
  }
}

}  // namespace grosr::tool::fuzz
