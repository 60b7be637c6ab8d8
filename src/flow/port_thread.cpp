#include "flow/port_thread.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace grosr::flow {
namespace {

int made_eventfd() {
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  return fd;
}

}  // namespace

port_thread::port_thread(const channel_end& of)
    : of_(of), event_(made_eventfd()), watch_(event_.get()) {
  of_.add(watch_);
}

port_thread::~port_thread() {
  stop();
  of_.remove(watch_);
}

void port_thread::start(std::function<void()> body) {
  // The program's signals are for its own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread(std::move(body));
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void port_thread::stop() noexcept {
  stops_ = true;
  wake();
  if (thread_.joinable()) thread_.join();
}

void port_thread::wake() noexcept { eventfd_write(event_.get(), 1); }

void port_thread::clear_event() noexcept {
  eventfd_t told;
  eventfd_read(event_.get(), &told);
}

}  // namespace grosr::flow
