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

  completion_port* find(std::uint32_t port) const { return port < places ? at[port] : nullptr; }
};
open_ports& ports() {
  static open_ports& all = *new open_ports;
  return all;
}

thread_local completion_batch* kept_by = nullptr;  // of this thread; the outermost

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

void expect(completion_target to, std::uint32_t count) {
  std::shared_lock lock(ports().lock);
  if (completion_port* const port = ports().find(to.port())) port->expect(count);
}

void complete(completion_target to, completion c) {
  if (kept_by != nullptr) return kept_by->add(to, c);
  completion_batch one;
  one.add(to, c);
}

bool is_open(completion_target to) {
  std::shared_lock lock(ports().lock);
  const completion_port* const port = ports().find(to.port());
  return port != nullptr && port->takes();
}

void hand_over_kept() {
  if (kept_by != nullptr) kept_by->flush();
}

completion_batch::completion_batch() : inner_(kept_by != nullptr) {
  if (!inner_) kept_by = this;
}

completion_batch::~completion_batch() {
  if (inner_) return;
  flush();
  kept_by = nullptr;
}

void completion_batch::add(completion_target to, const completion& c) {
  port_[count_] = to.port();
  kept_[count_] = c;
  kept_[count_].waiter = to.waiter();
  if (++count_ == most) flush();
}

void completion_batch::flush() {
  if (inner_ || count_ == 0) return;
  std::shared_lock lock(ports().lock);
  for (std::uint32_t first = 0, end; first < count_; first = end) {
    for (end = first + 1; end < count_ && port_[end] == port_[first];) ++end;
    if (completion_port* const port = ports().find(port_[first]); port != nullptr && port->takes())
      port->complete(kept_ + first, end - first);
  }
  count_ = 0;
}

}  // namespace grosr::queue
