#include "run/interop.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "grosr/simt/relax.hpp"
#include "run/host_word.hpp"

namespace grosr::run {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// The thread looks without a pause for so long after something came; then it sleeps in between.
constexpr std::chrono::microseconds spins_for = 500us, least_sleep = 20us;
constexpr std::chrono::microseconds most_sleep = 100us;        // while a stream's word is awaited
constexpr std::chrono::microseconds most_sleep_of_done = 1ms;  // while only tickets are

}  // namespace

struct interop::signal {
  signal(std::shared_ptr<interop> t, std::uint32_t p) : to(std::move(t)), place(p) {}
  signal(const signal&) = delete;
  ~signal() {
    if (!called) to->tell(place, dropped);
  }
  void call() {
    called = true;
    to->tell(place, happened);
  }

  std::shared_ptr<interop> to;
  std::uint32_t place;
  bool called = false;
};

void interop::gate::wait() {
  std::unique_lock l(lock);
  opened.wait(l, [this] { return open; });
}

void interop::gate::let() {
  {
    std::lock_guard l(lock);
    open = true;
  }
  opened.notify_all();
}

interop::interop(device d, owner o)
    : device_(d),
      owner_(std::move(o)),
      words_(d, simt::space::pinned, most_deferred),
      places_(most_deferred) {}

interop::~interop() { close(); }

void interop::close() {
  std::vector<recorded_ticket> left;
  {
    std::lock_guard lock(lock_);
    stop_ = true;
    left = std::exchange(recorded_, {});
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (auto& r : left)
    if (r.at) r.at->let();
}

simt::stream_order& interop::order() {
  std::call_once(ordered_, [this] { order_.emplace(device_); });
  return *order_;
}

std::uint32_t interop::take_place(const std::function<void()>& check) {
  std::lock_guard lock(lock_);
  check();
  const auto free = std::find_if(places_.begin(), places_.end(),
                                 [](const place& p) { return p.at == stage::free; });
  if (free == places_.end())
    throw error(errc::out_of_memory,
                "submit_after: " + std::to_string(most_deferred) +
                    " submissions wait for streams and events, which is the most that can; wait "
                    "for one of their tickets first");
  start();
  free->at = stage::arming;
  free->serial = ++serial_;
  const auto p = static_cast<std::uint32_t>(free - places_.begin());
  host_word(words_[p]).store(not_yet, simt::relaxed);
  return p;
}

void interop::free_place(std::uint32_t p) {
  places_[p].at = stage::free;
  places_[p].what = {};
}

void interop::submit_at(const simt::moment& when, deferred what,
                        const std::function<void()>& check) {
  const std::uint32_t p = take_place(check);
  try {
    if (!device_.is_cuda()) {
      auto s = std::make_shared<signal>(shared_from_this(), p);
      when.in().own()->call_host([s] { s->call(); });
    } else if (!order().store_at(when, &words_[p], happened)) {
      tell(p, happened);
    }
  } catch (...) {
    std::lock_guard lock(lock_);
    free_place(p);
    throw;
  }
  std::lock_guard lock(lock_);
  if (abandoned_) return free_place(p);
  places_[p].what = std::move(what);
  places_[p].at = stage::waiting;
  ++news_;
  wake_.notify_all();
}

std::uint64_t interop::last_serial() {
  std::lock_guard lock(lock_);
  return serial_;
}

bool interop::sent_until(std::uint64_t serial) {
  std::lock_guard lock(lock_);
  return std::none_of(places_.begin(), places_.end(),
                      [&](const place& p) { return p.at != stage::free && p.serial <= serial; });
}

void interop::tell(std::uint32_t p, std::uint32_t what) {
  std::lock_guard lock(lock_);
  host_word(words_[p]).store(what, simt::release);
  ++news_;
  wake_.notify_all();
}

bool interop::record(const simt::any_stream& s, ticket_id t, std::uint32_t* word,
                     std::uint32_t value) {
  recorded_ticket mine{0, t, device_.is_cuda() ? nullptr : std::make_shared<gate>()};
  {
    std::lock_guard staying(stay_lock_);
    {
      std::lock_guard lock(lock_);
      if (abandoned_) return false;
      start();
    }
    // Nobody on the host may wait for the ticket, and the stream's wait may hold up a launch.
    if (device_.is_cuda() && !stays_) {
      owner_.stay(true);
      stays_ = true;
    } else {
      owner_.come();
    }
    std::lock_guard lock(lock_);
    if (abandoned_) return false;
    mine.number = ++records_;
    recorded_.push_back(mine);
    ++news_;
    wake_.notify_all();
  }
  try {
    if (mine.at)
      s.own()->call_host([at = mine.at] { at->wait(); });
    else
      order().wait_for(s, word, value);
  } catch (...) {
    std::lock_guard lock(lock_);
    std::erase_if(recorded_, [&](const recorded_ticket& r) { return r.number == mine.number; });
    throw;
  }
  return true;
}

std::size_t interop::unless_recorded(const std::function<void()>& what) {
  std::lock_guard staying(stay_lock_);
  prune_locked();
  std::size_t left = 0;
  {
    std::lock_guard lock(lock_);
    left = recorded_.size();
  }
  if (left == 0) what();
  return left;
}

// Under the lock: the thread, if it is not there yet.
void interop::start() {
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
}

std::vector<ticket_id> interop::abandon() {
  std::vector<recorded_ticket> left;
  {
    std::lock_guard lock(lock_);
    abandoned_ = true;
    for (std::uint32_t p = 0; p < places_.size(); ++p)
      if (places_[p].at == stage::waiting || places_[p].at == stage::due) free_place(p);
    left = std::exchange(recorded_, {});
    ++news_;
  }
  wake_.notify_all();
  std::vector<ticket_id> tickets;
  for (auto& r : left) {
    if (r.at) r.at->let();
    tickets.push_back(r.ticket);
  }
  return tickets;
}

void interop::work() {
  prctl(PR_SET_TIMERSLACK, 1000UL);  // this thread's sleeps end within a microsecond
  std::unique_lock lock(lock_);
  auto since = clock::now();
  while (!stop_) {
    const std::uint64_t seen = news_;
    bool moved = look(lock);
    const bool some_recorded = !recorded_.empty();
    if (some_recorded) {
      lock.unlock();
      try {
        moved |= prune();
      } catch (const std::bad_alloc&) {  // at the next turn, then
      }
      lock.lock();
    }
    const auto now = clock::now();
    if (moved || news_ != seen) since = now;
    const auto due = [&] { return stop_ || news_ != seen; };
    // A stream of a GPU stores a word; one of the host tells.
    const bool waits = std::any_of(places_.begin(), places_.end(), [&](const place& p) {
      return p.at == stage::due || (p.at == stage::waiting && device_.is_cuda());
    });
    if (!waits && recorded_.empty()) {
      wake_.wait(lock, due);
      since = clock::now();
    } else if (waits && device_.is_cuda() && now - since < spins_for) {
      lock.unlock();
      for (int i = 0; i < 32; ++i) simt::relax();
      lock.lock();
    } else {
      const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(now - since);
      wake_.wait_for(
          lock, std::clamp(waited / 16, least_sleep, waits ? most_sleep : most_sleep_of_done), due);
    }
  }
}

// Sends what is due. Whether anything moved.
bool interop::look(std::unique_lock<std::mutex>& lock) {
  bool moved = false;
  for (std::uint32_t i = 0; i < places_.size() && !stop_; ++i) {
    place& p = places_[i];
    if (p.at != stage::waiting && p.at != stage::due) continue;
    // What came before in the stream, before what the tasks read: the packets follow.
    const std::uint32_t word = host_word(words_[i]).load(simt::acquire);
    if (word == not_yet) continue;
    p.at = stage::sending;
    const std::size_t before = p.what.sent;
    lock.unlock();
    bool over = true;
    try {
      if (word == dropped)
        owner_.fail(p.what.ticket);
      else
        over = owner_.send(p.what);
    } catch (const std::bad_alloc&) {
      over = false;
    }
    lock.lock();
    moved |= over || p.what.sent != before;
    p.at = stage::due;
    if (over || abandoned_) free_place(i);
  }
  return moved;
}

// Forgets tickets that are done. Whether there were some.
bool interop::prune() {
  std::lock_guard staying(stay_lock_);
  return prune_locked();
}

bool interop::prune_locked() {
  std::vector<recorded_ticket> list;
  {
    std::lock_guard lock(lock_);
    list = recorded_;
  }
  std::erase_if(list, [this](const recorded_ticket& r) { return !owner_.done(r.ticket); });
  bool none = false;
  {
    std::lock_guard lock(lock_);
    auto next = list.begin();
    std::erase_if(recorded_, [&](const recorded_ticket& r) {
      while (next != list.end() && next->number < r.number) ++next;
      return next != list.end() && next->number == r.number;
    });
    none = recorded_.empty();
  }
  for (auto& r : list)
    if (r.at) r.at->let();
  if (none && stays_) {
    stays_ = false;
    owner_.stay(false);
  }
  return !list.empty();
}

}  // namespace grosr::run
