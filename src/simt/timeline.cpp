#include "grosr/simt/timeline.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "simt/backend.hpp"

namespace grosr::simt {
namespace {

/// Copies of so many bytes take longer than the call that puts them.
constexpr std::size_t worth_a_call = 256 << 10;

/// How far a stream of the host has come. Calls in streams share it, and may outlive the timeline.
struct progress {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t reached = 0;
  std::uint64_t failed_at = ~std::uint64_t{0};  // from here on the stream has run nothing

  void come_to(std::uint64_t number, bool ran) {
    {
      std::lock_guard lock(mutex);
      // A mark stands for all places since the one before it.
      if (!ran && reached < failed_at) failed_at = reached + 1;
      if (number > reached) reached = number;
    }
    changed.notify_all();
  }
  /// False: it has failed before.
  bool wait(std::uint64_t number) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return reached >= number; });
    return number < failed_at;
  }
};

/// Comes to its number when it is destroyed, so behind a failure, too, where a stream drops calls.
struct arrival {
  std::shared_ptr<progress> of;
  std::uint64_t number;
  bool ran = false;

  arrival(std::shared_ptr<progress> p, std::uint64_t n) : of(std::move(p)), number(n) {}
  arrival(const arrival&) = delete;
  ~arrival() { of->come_to(number, ran); }
};

struct host_time final : stream_time::place {
  std::atomic<std::int64_t> at{-1};
  std::optional<std::int64_t> ns() override {
    const std::int64_t known = at.load(std::memory_order_acquire);
    return known < 0 ? std::nullopt : std::optional(known);
  }
};

class host_timeline final : public timeline_backend {
 public:
  explicit host_timeline(stream& s) : stream_(s) {}

  void mark(std::uint64_t number) override {
    stream_.call_host([at = std::make_shared<arrival>(progress_, number)] { at->ran = true; });
  }
  std::uint64_t reached() override {
    std::lock_guard lock(progress_->mutex);
    // What failed is thrown to whoever asks about that, and not about what was before it.
    return progress_->reached < progress_->failed_at ? progress_->reached
                                                     : progress_->failed_at - 1;
  }
  bool failed(std::uint64_t number) override {
    std::lock_guard lock(progress_->mutex);
    return number >= progress_->failed_at;
  }
  void wait(std::uint64_t number) override { progress_->wait(number); }
  /// Behind what failed, the other stream fails, too: as on a GPU, which is lost then.
  void hold(stream& other, std::uint64_t number) override {
    other.call_host([p = progress_, number] {
      if (!p->wait(number))
        throw error(errc::device_lost,
                    "what was put into a stream was to wait for another stream, which has failed; "
                    "see what that threw");
    });
  }

  std::shared_ptr<stream_time::place> time() override {
    auto place = std::make_shared<host_time>();
    stream_.call_host([place] {
      place->at.store(
          std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1),
          std::memory_order_release);
    });
    return place;
  }

 private:
  stream& stream_;
  std::shared_ptr<progress> progress_ = std::make_shared<progress>();
};

}  // namespace

class timeline_state {
 public:
  explicit timeline_state(device d)
      : where(d),
        queue(d),
        backend_(d.is_cuda() ? cuda_backend::make_timeline(queue)
                             : std::make_unique<host_timeline>(queue)) {
    if (!d.is_cuda()) return;
    copies_.reserve(most_copies);
    load_copies(d);
  }
  /// Waits for all that was put into it.
  ~timeline_state() {
    try {
      with_copies();
    } catch (...) {
    }
    try {
      queue.wait();
    } catch (...) {  // whoever waited has seen what failed
    }
  }

  std::uint64_t next() { return put_.fetch_add(1) + 1; }

  void copy(void* to, const void* from, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    if (not_put_) std::rethrow_exception(not_put_);
    if (copies_.hold_up(to, from, bytes)) put_copies();
    if (copies_.empty()) before_copies_ = put_.load();
    copies_.add(to, from, bytes);
    has_copies_.store(true, std::memory_order_relaxed);
    if (copies_.bytes.size() == most_copies || copies_.all_bytes >= most_bytes) put_copies();
  }

  /// For the thread that copies: others take from what is to be put, and add nothing.
  stream& with_copies(std::size_t of_bytes = 0) {
    if (has_copies_.load(std::memory_order_acquire)) {
      std::lock_guard lock(mutex_);
      if (not_put_ || copies_.all_bytes >= of_bytes) put_copies();
    }
    return queue;
  }

  stream_time time() {
    try {
      std::lock_guard lock(mutex_);
      put_copies();
      return stream_time(backend_->time());
    } catch (...) {  // whoever uses the stream next is told
      return {};
    }
  }

  /// Has a mark at a place or behind it.
  void see_to_mark(std::uint64_t number) {
    std::lock_guard lock(mutex_);
    if (marked_ >= number || was_reached(number)) return;
    try {
      put_copies();
    } catch (...) {
      if (was_reached(number)) return;
      throw;
    }
    // What is numbered so far was put before the mark, which may stand for all of it.
    const std::uint64_t all = put_.load();
    backend_->mark(all);
    marked_ = all;
  }

  /// Whether a place is known to have been come to.
  bool was_reached(std::uint64_t number) const { return reached_.load() >= number; }

  bool has_reached(std::uint64_t number) {
    if (was_reached(number)) return true;
    see_to_mark(number);
    if (backend_->failed(number)) throw_failure();
    note_reached(backend_->reached());
    return was_reached(number);
  }

  void wait(std::uint64_t number) {
    if (was_reached(number)) return;
    see_to_mark(number);
    if (was_reached(number)) return;
    backend_->wait(number);
    if (backend_->failed(number)) throw_failure();
    note_reached(number);
  }

  void hold(stream& other, std::uint64_t number) {
    see_to_mark(number);
    if (!was_reached(number)) backend_->hold(other, number);
  }

  const device where;
  stream queue;

 private:
  /// With the lock. Where it fails, the stream is used no more: what was put there before is over,
  /// and what comes behind is never come to.
  void put_copies() {
    if (not_put_) std::rethrow_exception(not_put_);
    if (copies_.empty()) return;
    try {
      cuda_backend::queue_copies(queue, copies_);
    } catch (...) {
      not_put_ = std::current_exception();
      try {
        queue.wait();
        note_reached(before_copies_);
      } catch (...) {
      }
      throw;
    }
    copies_.clear();
    has_copies_.store(false, std::memory_order_release);
  }

  [[noreturn]] void throw_failure() {
    queue.wait();  // throws it
    throw error(errc::device_lost, "a stream has failed");
  }
  void note_reached(std::uint64_t number) {
    std::uint64_t seen = reached_.load();
    while (seen < number && !reached_.compare_exchange_weak(seen, number)) {
    }
  }

  std::unique_ptr<timeline_backend> backend_;
  std::atomic<std::uint64_t> put_{0};
  std::atomic<std::uint64_t> reached_{0};  // at least
  std::mutex mutex_;                       // one mark at a time
  std::uint64_t marked_ = 0;               // places up to here have a mark
  copies copies_;                          // that are still to be put into the stream
  std::uint64_t before_copies_ = 0;        // a place that is before all of them
  std::atomic<bool> has_copies_{false};
  std::exception_ptr not_put_;  // why they could not be: no place behind is come to
};

bool stream_point::has_happened() const {
  return timeline_ == nullptr || timeline_->has_reached(number_);
}
void stream_point::wait() const {
  if (timeline_ != nullptr) timeline_->wait(number_);
}

timeline::timeline(device d) : state_(std::make_shared<timeline_state>(d)) {}

const device& timeline::where() const { return state_->where; }
stream& timeline::queue() { return state_->with_copies(); }
stream_point timeline::here() { return {state_, state_->next()}; }

stream_point timeline::mark() {
  const stream_point p = here();
  state_->see_to_mark(p.number_);
  return p;
}

stream_time timeline::time() { return state_->time(); }

void timeline::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (where().is_cuda())
    state_->copy(to, from, bytes);
  else
    copy_bytes(state_->queue, to, from, bytes);
}

// Small copies that are still to be put there may come behind `p`, too: whoever waits for them puts
// them.
void timeline::wait_for(const stream_point& p) {
  if (p.timeline_ == nullptr || p.timeline_ == state_ || p.timeline_->was_reached(p.number_))
    return;
  const bool other_kind = p.timeline_->where.kind() != state_->where.kind();
  state_->with_copies(other_kind ? 0 : worth_a_call);
  if (other_kind) return p.wait();
  for (const stream_point& before : waited_for_)
    if (before.covers(p)) return;
  p.timeline_->hold(state_->queue, p.number_);
  // Those that have happened are known without, and keep their streams.
  waited_for_.forget([](const stream_point& q) { return q.timeline_->was_reached(q.number_); });
  waited_for_.add(p);
}

void copy_bytes(stream& s, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (s.where().is_cuda())
    cuda_backend::queue_copy(s, to, from, bytes);
  else
    s.call_host([d = s.where(), to, from, bytes] { copy_bytes(d, to, from, bytes); });
}

}  // namespace grosr::simt
