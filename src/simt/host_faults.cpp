// Says what a host lane did that faults.
//
// The handlers are there while somebody wants faults to be told (tell_faults). A handler runs on
// the thread's alternate stack, and uses nothing but what a signal handler may. It passes the
// signal on to what was there before: a handler of the program, or of a sanitizer, is called; else
// the default action is restored, and the faulting instruction, which runs again, ends the program.
#include "simt/host_faults.hpp"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <mutex>
#include <type_traits>

#include "grosr/simt/faults.hpp"
#include "simt/host_state.hpp"

namespace grosr::simt {
namespace host {
namespace {

constexpr int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr const char* words[] = {"an illegal address", "an address without memory",
                                 "an illegal operation on numbers", "an illegal instruction"};
constexpr std::size_t stack_bytes = 64 * 1024;

struct watch {
  std::mutex mutex;
  unsigned wanted = 0;
  bool installed = false;
  struct sigaction before[std::size(signals)] = {};
};
// There before any thread, and until the very end: handlers may run then.
constinit watch the_watch_memory;
static_assert(std::is_trivially_destructible_v<watch>);
watch& the_watch() { return the_watch_memory; }
watch* watching = nullptr;  // for handlers: no guard of a static

/// A line of text without memory from anywhere.
class line {
 public:
  line& add(const char* text) {
    for (; *text != '\0' && size_ < sizeof text_; ++text) text_[size_++] = *text;
    return *this;
  }
  line& add(std::uint64_t n, unsigned base) {
    char digits[24];
    unsigned count = 0;
    do digits[count++] = "0123456789abcdef"[n % base];
    while ((n /= base) != 0);
    while (count != 0 && size_ < sizeof text_) text_[size_++] = digits[--count];
    return *this;
  }
  void write() {
    if (size_ == sizeof text_) --size_;
    text_[size_++] = '\n';
    const ssize_t n = ::write(STDERR_FILENO, text_, size_);
    (void)n;
  }

 private:
  char text_[512];
  std::size_t size_ = 0;
};

void tell(std::size_t which, const siginfo_t& info) {
  if (self == nullptr || self->active == nullptr) return;  // not of a launch
  const lane& l = *self->active;
  line text;
  text.add("grosr: ");
  if (l.doing != nullptr)
    text.add("a task of type ").add(l.doing);
  else
    text.add("a kernel");
  text.add(" on the host backend met ").add(words[which]);
  text.add(": 0x").add(reinterpret_cast<std::uintptr_t>(info.si_addr), 16);
  text.add(" (block ").add(l.where.block, 10).add(", warp ").add(l.where.warp, 10);
  text.add(", lane ").add(l.where.lane, 10).add(")");
  const auto address = reinterpret_cast<std::uintptr_t>(info.si_addr);
  const auto bottom = reinterpret_cast<std::uintptr_t>(l.fiber.stack);
  if (l.fiber.stack != nullptr && address < bottom && bottom - address <= stack_bytes)
    text.add("; its stack is full: GROSR_HOST_STACK=n gives lanes n KiB");
  text.write();
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  std::size_t which = 0;
  while (signals[which] != signal) ++which;
  const bool sent = info->si_code <= 0;  // by a program, not by an instruction
  if (!sent) tell(which, *info);
  const struct sigaction& before = watching->before[which];
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  } else if (!sent || before.sa_handler == SIG_DFL) {
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    ::sigaction(signal, &usual, nullptr);
    if (sent) ::raise(signal);
  }
  errno = error;
}

void begin() {
  watch& w = the_watch();
  std::lock_guard lock(w.mutex);
  if (w.wanted++ != 0 || w.installed) return;
  watching = &w;
  struct sigaction mine {};
  mine.sa_sigaction = on_fault;
  mine.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (std::size_t i = 0; i < std::size(signals); ++i) ::sigaction(signals[i], &mine, &w.before[i]);
  w.installed = true;
}

// A program that has put its own handler over one of these may pass signals on: then all stay.
void end() {
  watch& w = the_watch();
  std::lock_guard lock(w.mutex);
  if (--w.wanted != 0) return;
  for (int s : signals) {
    struct sigaction now {};
    ::sigaction(s, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) == 0 || now.sa_sigaction != on_fault) return;
  }
  for (std::size_t i = 0; i < std::size(signals); ++i)
    ::sigaction(signals[i], &w.before[i], nullptr);
  w.installed = false;
}

bool wanted() {
  watch& w = the_watch();
  std::lock_guard lock(w.mutex);
  return w.installed;
}

}  // namespace

fault_stack::fault_stack() {
  stack_t now{};
  if (!wanted() || ::sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) return;
  memory_.reset(new (std::nothrow) char[stack_bytes]);
  if (memory_ == nullptr) return;
  stack_t mine{};
  mine.ss_sp = memory_.get();
  mine.ss_size = stack_bytes;
  if (::sigaltstack(&mine, nullptr) != 0) memory_.reset();
}

fault_stack::~fault_stack() {
  if (memory_ == nullptr) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  ::sigaltstack(&none, nullptr);
}

const char* set_doing(const char* text) {
  if (self == nullptr || self->active == nullptr) return nullptr;
  return std::exchange(self->active->doing, text);
}

}  // namespace host

std::shared_ptr<void> tell_faults() {
  host::begin();
  return {nullptr, [](void*) { host::end(); }};
}

}  // namespace grosr::simt
