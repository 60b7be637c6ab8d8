#include <time.h>

#include <vector>

#include "cases/await_work.hpp"
#include "grosr/await/awaited.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/sys/server.hpp"
#include "work/hosted.hpp"

namespace grosr::tool {
namespace {

template <class Caller>
GROSR_DEVICE auto call_once(const Caller& c, std::uint32_t sleep_us) {
  const timespec span{0, static_cast<long>(sleep_us) * 1000};
  return sys::nanosleep(c, &span);
}

/// Makes its calls one after the other; no worker waits for them.
struct awaits {
  static constexpr unsigned number = 0;
  using result = void;
  sys::server_ref sys;
  std::uint32_t* ended;
  std::uint32_t calls, sleep_us;
  long code;

  GROSR_DEVICE int operator()(auto& context) const {
    if (code != 0) return static_cast<int>(code);
    if (calls == 0) {
      simt::atomic_ref<std::uint32_t>(*ended).fetch_add(1, simt::relaxed);
      return 0;
    }
    auto& next = context.join(awaits{sys, ended, calls - 1, sleep_us, 0});
    const auto c = context.await(sys, &next.code);
    if (sleep_us == 0)
      sys::nothing(c);
    else
      call_once(c, sleep_us);
    return 0;
  }
};

/// The same, waiting where it is.
struct waits {
  static constexpr unsigned number = 1;
  sys::server_ref sys;
  std::uint32_t* ended;
  std::uint32_t calls, sleep_us;

  GROSR_DEVICE int operator()(auto&) const {
    for (std::uint32_t i = 0; i < calls; ++i) {
      const long code = sleep_us == 0 ? sys::nothing(sys) : call_once(sys, sleep_us);
      if (code != 0) return static_cast<int>(code);
    }
    simt::atomic_ref<std::uint32_t>(*ended).fetch_add(1, simt::relaxed);
    return 0;
  }
};

struct completion_task : awaited {
  static constexpr unsigned number = 2;
  using shown_as = awaited;
};

sys::options options_for(std::uint32_t most) {
  sys::options o;
  o.awaited_calls = 2 * most;  // else those that come last look for the last that are free
  // Of 256 bytes, since a sleep brings its time; awaited calls may hold three quarters of them.
  o.chunks[0] = o.awaited_calls / 3 * 4 + 128;
  return o;
}

}  // namespace

struct waiting_tasks::inside {
  sys::server server;
  simt::buffer<std::uint32_t> ended;
  hosted<awaits, waits, completion_task> tasks;

  inside(const device& d, std::uint32_t most, const runtime_options& options)
      : server(d, options_for(most)), ended(d, simt::space::device, 1), tasks(d, options) {}
};

waiting_tasks::waiting_tasks(const device& d, std::uint32_t most, const runtime_options& options)
    : inside_(std::make_unique<inside>(d, most, options)) {}
waiting_tasks::~waiting_tasks() = default;

void waiting_tasks::start(how h, std::uint32_t count, std::uint32_t calls, std::uint32_t sleep_us) {
  const sys::server_ref sys = inside_->server.ref();
  inside_->ended.copy_from(std::vector<std::uint32_t>(1));
  if (h == how::awaited)
    inside_->tasks.submit(
        std::vector<awaits>(count, awaits{sys, inside_->ended.data(), calls, sleep_us, 0}));
  else
    inside_->tasks.submit(
        std::vector<waits>(count, waits{sys, inside_->ended.data(), calls, sleep_us}));
}

std::uint32_t waiting_tasks::ended() {
  std::vector<std::uint32_t> n(1);
  inside_->ended.copy_to(n);
  return n[0];
}

any_runtime& waiting_tasks::runtime() { return inside_->tasks; }

}  // namespace grosr::tool
