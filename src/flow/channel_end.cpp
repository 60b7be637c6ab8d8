#include "flow/channel_end.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

#include "flow/graph_core.hpp"

namespace grosr::flow {

void channel_watch::tell() {
  if (armed_.exchange(false)) eventfd_write(event_, 1);
}

const block_template& channel_end::shape() const { return of_->channels[channel_].shape; }

void channel_end::check_served(const std::string& asked) const {
  if (of_->where->options.threads == 0)
    throw error(errc::invalid_option,
                fmt::format("{}: the executor of graph '{}' has no threads, and nothing would run "
                            "when others push; give it at least one",
                            asked, of_->options.name));
  check_running();
}

void channel_end::check_running() const {
  std::lock_guard lock(of_->where->mutex);
  of_->check_running();
}

void channel_end::add(channel_watch& w) const {
  std::lock_guard lock(of_->where->mutex);
  of_->channels[channel_].waiters.watches.push_back(&w);
}

void channel_end::remove(channel_watch& w) const noexcept {
  std::lock_guard lock(of_->where->mutex);
  std::erase(of_->channels[channel_].waiters.watches, &w);
}

void channel_end::put_back(datablock b) const {
  std::lock_guard lock(of_->where->mutex);
  block_channel& c = of_->channels[channel_];
  c.blocks.push_front({std::move(b), {}});
  c.waiters.wake_one();
}

void channel_end::keep_from_host() const {
  std::lock_guard lock(of_->where->mutex);
  of_->channels[channel_].options.prefetch = false;
  of_->find_prefetches();
}

space_number channel_end::space_of(const device& d, const std::string& asked) const {
  const auto& all = of_->where->memory.devices();
  if (std::find(all.begin(), all.end(), d) == all.end())
    throw error(errc::invalid_option,
                fmt::format("{}: slots on {} were asked for, which is no device of the executor of "
                            "graph '{}'; name one of these",
                            asked, d.name(), of_->options.name));
  return of_->where->memory.space_of(d);
}

datablock channel_end::make() const { return of_->where->memory.make(shape()); }

}  // namespace grosr::flow
