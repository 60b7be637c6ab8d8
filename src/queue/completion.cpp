#include "grosr/queue/completion.hpp"

#include <array>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "grosr/simt/error.hpp"

namespace grosr::queue {
namespace {

constexpr std::uint32_t places = 1u << completion_target::port_bits;

/// Of the process; place 0 is nobody's. Never destroyed: ports may outlive what is.
struct open_ports {
  std::shared_mutex lock;
  std::array<completion_port*, places> at{};
  std::array<bool, places> taken{};  ///< open, or closed while something was to be completed for it

  completion_port* find(completion_target to) const {
    return to.port() < places ? at[to.port()] : nullptr;
  }
};
open_ports& ports() {
  static open_ports& all = *new open_ports;
  return all;
}

}  // namespace

completion_port::completion_port() : number_(0) {
  open_ports& all = ports();
  std::unique_lock lock(all.lock);
  for (std::uint32_t n = 1; n < places && number_ == 0; ++n)
    if (!all.taken[n]) number_ = n;
  if (number_ == 0)
    throw error(errc::invalid_option,
                "a runtime whose tasks await calls was asked for; there are " +
                    std::to_string(places - 1) +
                    " in this process already, those counted that were lost while calls were "
                    "awaited; that is as many as there can be");
  all.taken[number_] = true;
  all.at[number_] = this;
}

completion_port::~completion_port() { close(false); }

void completion_port::close(bool all_came) {
  open_ports& all = ports();
  std::unique_lock lock(all.lock);
  if (number_ == 0) return;
  all.at[number_] = nullptr;
  all.taken[number_] = !all_came;
  number_ = 0;
}

bool expect(completion_target to) {
  std::shared_lock lock(ports().lock);
  completion_port* const port = ports().find(to);
  if (port != nullptr) port->expect();
  return port != nullptr;
}

bool complete(completion_target to, completion c) {
  std::shared_lock lock(ports().lock);
  completion_port* const port = ports().find(to);
  if (port == nullptr) return false;
  c.waiter = to.waiter();
  port->complete(c);
  return true;
}

}  // namespace grosr::queue
