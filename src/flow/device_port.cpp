#include "flow/device_port.hpp"

#include <errno.h>
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "flow/host_view.hpp"

namespace grosr::flow {
namespace {

constexpr const char* asked = "serve an end of a channel to a device";

/// So many calls in a round; then the thread looks whether it is to stop, and whose time is over.
constexpr unsigned calls_a_round = 64;

/// Of the process. A ref that is used with another server finds no port of its key there.
std::uint64_t next_key() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

/// What calls end with after a graph has ended so.
long result_of(errc why) {
  switch (why) {
    case errc::stopped:
      return -EPIPE;
    case errc::out_of_memory:
      return -ENOMEM;
    default:
      return -EIO;
  }
}

}  // namespace

// ---- on the service thread that took the call ----

void device_port::inbox::take(sys::deferred_reply reply, std::span<std::byte> bytes,
                              std::int64_t limit_ns, std::uint64_t key_of_call) {
  if (key_of_call != key) {
    reply.reply(-ENOSYS);
    return;
  }
  const auto now = clock::now();
  const std::chrono::nanoseconds limit(limit_ns);
  request r{std::move(reply), bytes, clock::time_point::max(), limit_ns == 0};
  if (limit_ns >= 0 && limit < clock::time_point::max() - now) r.until = now + limit;
  std::lock_guard lock(mutex);
  if (ended) {
    r.reply.reply(*ended);
    return;
  }
  arrived.push_back(std::move(r));
  if (arrived.size() == 1) wakes->wake();
}

struct device_port::takes_push {
  std::shared_ptr<inbox> to;
  void operator()(sys::deferred_reply reply, std::span<const std::byte> elements,
                  std::int64_t limit_ns, std::uint64_t key) const {
    auto* const at = const_cast<std::byte*>(elements.data());  // who pushes only reads them
    to->take(std::move(reply), {at, elements.size()}, limit_ns, key);
  }
};
struct device_port::takes_pull {
  std::shared_ptr<inbox> to;
  void operator()(sys::deferred_reply reply, std::span<std::byte> room, std::int64_t limit_ns,
                  std::uint64_t key) const {
    to->take(std::move(reply), room, limit_ns, key);
  }
};

// ---- the program ----

device_port::device_port(side s, channel_end end, sys::server& server)
    : side_(s),
      end_(std::move(end)),
      element_bytes_(end_.shape().element().bytes),
      server_(server),
      inbox_(std::make_shared<inbox>(next_key())),
      thread_(end_) {
  if (shape().size_bytes() > most_device_block)
    throw error(errc::invalid_option,
                fmt::format("{}: its blocks are of {}, which is {} bytes; a call of device code "
                            "carries at most {}: serve smaller blocks",
                            asked, shape().text(), shape().size_bytes(), most_device_block));
  end_.check_served(asked);
  inbox_->wakes = &thread_;
  handler_ =
      side_ == side::source ? server_.add(takes_push{inbox_}) : server_.add(takes_pull{inbox_});
  try {
    thread_.start([this] { work(); });
  } catch (...) {
    server_.remove(handler_);
    throw;
  }
}

device_port::~device_port() {
  stop();
  server_.remove(handler_);
}

void device_port::stop() noexcept {
  std::lock_guard lock(stop_mutex_);
  thread_.stop();
}

device_port_name device_port::name() const {
  return {handler_, shape().layout() == block_template::records::fixed,
          static_cast<std::uint32_t>(shape().count()), inbox_->key};
}

template <class F>
void device_port::count(const F& f) {
  std::lock_guard lock(mutex_);
  f(stats_);
}

device_port_stats device_port::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

std::string device_port::why_ended() const {
  std::lock_guard lock(mutex_);
  return why_ended_;
}

// ---- the thread ----

void device_port::work() {
  try {
    for (;;) {
      bool is_more = false;
      {
        queue::completion_batch together;
        thread_.arm();
        end_.check_running();
        is_more = serve_some();
        expire();
        if (waiting_.empty()) put_back();
        std::lock_guard lock(mutex_);
        stats_.waiting = waiting_.size();
      }
      if (!is_more) sleep();
      if (thread_.stops()) return end(-EPIPE, "the program has ended it");
    }
  } catch (const error& e) {
    end(result_of(static_cast<errc>(e.code().value())), e.what());
  } catch (const std::exception& e) {
    end(-ENOMEM, e.what());
  }
}

/// Whether there is more to do at once.
bool device_port::serve_some() {
  bool is_blocked = false;  // the first one goes on waiting
  for (unsigned n = 0; n < calls_a_round; ++n) {
    if (!waiting_.empty() && !is_blocked) {
      is_blocked = !serve(waiting_.front());
      if (!is_blocked) waiting_.pop_front();
      continue;
    }
    if (arrived_.empty() && !take_arrivals()) return false;
    request& r = arrived_.front();
    const bool is_first = waiting_.empty();
    if (is_first && serve(r)) {
    } else if (r.tries) {
      if (is_first && side_ == side::source) hand_ = {};
      r.reply.reply(-EAGAIN);
    } else {
      is_blocked = true;
      next_limit_ = std::min(next_limit_, r.until);
      waiting_.push_back(std::move(r));
    }
    arrived_.pop_front();
  }
  return true;
}

/// Whether there are some.
bool device_port::take_arrivals() {
  std::lock_guard lock(inbox_->mutex);
  arrived_.swap(inbox_->arrived);
  return !arrived_.empty();
}

/// Whether the call has ended.
bool device_port::serve(request& r) { return side_ == side::source ? push(r) : pull(r); }

/// Whether the call has ended; false: the channel is full.
bool device_port::push(request& r) {
  if (!hand_) {
    const std::size_t elements = r.bytes.size() / element_bytes_;
    const bool is_fixed = shape().layout() == block_template::records::fixed;
    if (is_fixed ? elements != shape().count() : elements > shape().count()) {
      r.reply.reply(-EINVAL);
      return true;
    }
    datablock b = end_.make();
    b.set_count(elements);
    const host_view to(b, access::write);
    if (!r.reply.use([&] {
          if (elements != 0) std::memcpy(to.data(), r.bytes.data(), elements * element_bytes_);
        }))
      return true;
    hand_ = b;
  }
  if (!r.reply.use([] {})) {  // it ended while it waited, and says that it did not go
    hand_ = {};
    return true;
  }
  if (!end_.try_push(hand_)) return false;
  hand_ = {};
  count([](auto& s) { ++s.blocks; });  // before the caller can say that it went
  r.reply.reply(0);
  return true;
}

/// Whether the call has ended; false: there is no block.
bool device_port::pull(request& r) {
  if (!r.reply.is_awaited()) {  // the block is for the next one
    r.reply.reply(-ECANCELED);
    return true;
  }
  if (r.bytes.size() != shape().size_bytes()) {  // no device_sink_ref has made this call
    r.reply.reply(-EINVAL);
    return true;
  }
  if (!hand_) hand_ = end_.try_pull();
  if (!hand_) return false;
  const std::size_t elements = hand_.count(), bytes = elements * element_bytes_;
  const auto bring = [&](const void* from) {
    return r.reply.use([&] {
      if (bytes != 0) std::memcpy(r.bytes.data(), from, bytes);
      // All of it travels, and what other calls have left there is not for this one.
      std::fill(r.bytes.begin() + static_cast<std::ptrdiff_t>(bytes), r.bytes.end(), std::byte{0});
    });
  };
  const bool is_there = bytes == 0 ? bring(nullptr) : bring(host_view(hand_, access::read).data());
  count([](auto& s) { ++s.blocks; });
  if (is_there && r.reply.is_awaited() && r.reply.reply(static_cast<long>(elements)))
    hand_ = {};
  else
    count([](auto& s) { --s.blocks; });
  return true;
}

/// A block for which nobody is left who wants it.
void device_port::put_back() {
  if (side_ == side::sink && hand_) end_.put_back(std::exchange(hand_, {}));
}

/// Ends calls whose time is over.
void device_port::expire() {
  const auto now = clock::now();
  if (now < next_limit_) return;
  const auto is_over = [now](const request& r) { return r.until <= now; };
  if (side_ == side::source && !waiting_.empty() && is_over(waiting_.front())) hand_ = {};
  next_limit_ = clock::time_point::max();
  for (request& r : waiting_)
    if (is_over(r))
      r.reply.reply(-ETIMEDOUT);
    else
      next_limit_ = std::min(next_limit_, r.until);
  std::erase_if(waiting_, is_over);
}

/// Until a call, the channel or the program has something, or the next call's time is over.
void device_port::sleep() {
  pollfd event{thread_.event(), POLLIN, 0};
  timespec rest{};
  const bool is_limited = next_limit_ != clock::time_point::max();
  if (is_limited) {
    const auto left = std::max<std::chrono::nanoseconds>(next_limit_ - clock::now(), {});
    rest.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000);
    rest.tv_nsec = static_cast<long>(left.count() % 1'000'000'000);
  }
  ppoll(&event, 1, is_limited ? &rest : nullptr, nullptr);
  thread_.clear_event();
}

void device_port::end(long result, const char* why) noexcept {
  try {
    put_back();
  } catch (const std::exception&) {  // it goes with the graph
  }
  hand_ = {};
  {
    std::lock_guard lock(mutex_);
    stats_.waiting = 0;
    try {
      why_ended_ = why;
    } catch (const std::bad_alloc&) {  // the codes say as much
    }
  }
  queue::completion_batch together;
  const auto end_those = [&](std::deque<request>& all) {
    for (request& r : all) r.reply.reply(result);
    all.clear();
  };
  end_those(waiting_);
  end_those(arrived_);
  {
    std::lock_guard lock(inbox_->mutex);
    inbox_->ended = result;
    arrived_.swap(inbox_->arrived);
  }
  end_those(arrived_);
}

// ---- what the program has of it ----

any_device_end::any_device_end(const any_source& of, sys::server& server) try
    : port_(new device_port(device_port::side::source, channel_end(of), server)) {
} catch (...) {
  rethrow_as_error(asked);
}

any_device_end::any_device_end(const any_sink& of, sys::server& server) try
    : port_(new device_port(device_port::side::sink, channel_end(of), server)) {
} catch (...) {
  rethrow_as_error(asked);
}

any_device_end::~any_device_end() = default;

device_port_stats any_device_end::stats() const { return port_->stats(); }
std::string any_device_end::why_ended() const { return port_->why_ended(); }
device_port_name any_device_end::name() const { return port_->name(); }
void any_device_end::stop() noexcept { port_->stop(); }

}  // namespace grosr::flow
