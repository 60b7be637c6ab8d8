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
};
open_ports& ports() {
  static open_ports& all = *new open_ports;
  return all;
}

}  // namespace

completion_port::completion_port() : number_(0) {
  std::unique_lock lock(ports().lock);
  for (std::uint32_t n = 1; n < places; ++n)
    if (ports().at[n] == nullptr) {
      ports().at[n] = this;
      number_ = n;
      return;
    }
  throw error(errc::invalid_option, "a runtime whose tasks await calls was asked for; there are " +
                                        std::to_string(places - 1) +
                                        " in this process already, as many as there can be");
}

completion_port::~completion_port() { close(); }

void completion_port::close() {
  std::unique_lock lock(ports().lock);
  if (number_ != 0) ports().at[number_] = nullptr;
  number_ = 0;
}

bool complete(completion_target to, completion c) {
  std::shared_lock lock(ports().lock);
  completion_port* const port = to.port() < places ? ports().at[to.port()] : nullptr;
  if (port == nullptr) return false;
  c.waiter = to.waiter();
  port->complete(c);
  return true;
}

}  // namespace grosr::queue
