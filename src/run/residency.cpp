// Coming to the device and leaving it, and the monitor that notices when something is wrong.
#include <algorithm>
#include <map>

#include "run/completions.hpp"
#include "run/engine.hpp"
#include "run/swap.hpp"

namespace grosr::run {
namespace {
using clock = std::chrono::steady_clock;

constexpr std::size_t waits_named = 4;

/// The watchdog lets no more than so many times its time pass, however little of it tasks had.
constexpr int most_starved = 16;

/// What the exception that is being handled says.
std::string reason() {
  try {
    throw;
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "something that is no std::exception was thrown";
  }
}

/// "a (1 worker), b (2 workers)".
std::string listed(const std::map<std::string, unsigned>& counts, const char* one,
                   const char* many) {
  std::string text;
  for (auto& [name, n] : counts)
    text += (text.empty() ? "" : ", ") + name + " (" + std::to_string(n) + " " +
            (n == 1 ? one : many) + ")";
  return text;
}

}  // namespace

bool engine::resident() const {
  std::uint32_t s = host_word(state_[0]).load(simt::acquire);
  std::uint32_t launched = launched_.load();
  return launched != 0 && s != state_word::leaving(launched);
}

// Brings the kernel back if it left, or is about to, while work is there. Cheap when it is not.
void engine::ensure_resident() {
  if (resident() || !outstanding()) return;
  std::lock_guard lock(residency_lock_);
  if (resident() || life_ == life::lost || life_ == life::stopped) return;
  launch_locked();
}

// Has a kernel there that was not asked to leave, or one behind it: for tasks that nobody on the
// host may wait for.
void engine::call_kernel() {
  std::lock_guard lock(residency_lock_);
  call_kernel_locked();
}

void engine::call_kernel_locked() {
  if (life_ == life::lost || life_ == life::stopped) return;
  if (!resident() || parked_by_user_) launch_locked();
}

// The stream keeps kernels in order: a new one starts when the one before has ended.
void engine::launch_locked() {
  view v = view_;
  v.epoch = ++epoch_;
  if (stays_) host_word(state_[control_at + control_word::stay]).store(epoch_, simt::release);
  try {
    program_.launch(*stream_, {blocks_, block_threads}, v);
  } catch (...) {
    fail(errc::device_lost, "launch: " + reason());
    throw_fault();
  }
  launched_.store(epoch_);
  parked_by_user_ = false;
  swap_->wake();
}

// Has the kernel come and stay, or lets it leave when it is idle. A kernel that another one is
// behind leaves all the same.
void engine::stay(bool stays) {
  std::lock_guard lock(residency_lock_);
  stays_ = stays;
  host_word(state_[control_at + control_word::stay]).store(stays ? epoch_ : 0, simt::release);
  if (!stays) return;
  simt::fence<simt::scope::system>(simt::seq_cst);  // P4: pairs with worker::work_waits()
  call_kernel_locked();
}

bool engine::park(deadline until) {
  throw_if_ended();
  std::uint32_t epoch = 0;
  if (const std::size_t n = interop_->unless_recorded([&] { epoch = ask_to_leave(); }); n != 0)
    throw error(errc::misuse, "park: streams wait for " + std::to_string(n) +
                                  " tickets of this runtime, which has to stay for them; wait for "
                                  "those tickets first");
  return wait_until_left(epoch, until);
}

// Which kernel was asked; 0: there was none yet.
std::uint32_t engine::ask_to_leave() {
  std::lock_guard lock(residency_lock_);
  if (epoch_ == 0) return 0;
  parked_by_user_ = true;
  host_word(state_[control_at])
      .store(control_word::of(epoch_, control_request::park), simt::release);
  return epoch_;
}

// False past the deadline: tasks that run hold the kernel.
bool engine::wait_until_left(std::uint32_t epoch, deadline until) {
  if (epoch == 0) return true;
  // Not under the lock: the kernel may take long to end, and submitters may bring the next one.
  auto ended = [&] {
    if (launched_.load() == epoch) return stream_ended();
    return static_cast<std::int32_t>(host_word(state_[state_word::left]).load(simt::acquire) -
                                     epoch) >= 0;
  };
  auto backoff = std::chrono::microseconds(5);
  while (!ended() || (aborting_ && life_ != life::lost)) {
    throw_if_ended();
    if (until && clock::now() >= *until) return false;
    std::this_thread::sleep_for(backoff);
    backoff = std::min(backoff * 2, std::chrono::microseconds(1000));
  }
  throw_if_ended();
  std::lock_guard lock(residency_lock_);
  // The kernel may have ended on its own, without having seen the request.
  if (epoch_ == epoch) host_word(state_[0]).store(state_word::leaving(epoch), simt::release);
  return true;
}

// Whether every kernel launched has ended. A fault ends the runtime.
bool engine::stream_ended() {
  try {
    return stream_->done();
  } catch (...) {  // on host:N also what a task threw
    fail(errc::device_lost,
         device_.name() + " was lost: " + reason() + ". In flight: " + in_flight() +
             (device_.is_cuda() ? ". Nothing more can run on it in this process"
                                : ". This runtime has ended; others, and new ones, run on"));
    return true;
  }
}

void engine::throw_fault() const {
  std::lock_guard lock(fault_lock_);
  throw error(fault_code_, fault_text_);
}

void engine::throw_if_ended() const {
  if (life_ == life::lost) throw_fault();
  if (simt::forks_so_far() != forks_before_)
    throw error(errc::misuse,
                "this runtime belongs to the process that made it, and this is a fork of that, "
                "which has none of its threads; make another one here");
}

// Keeps what is to be said of a fault, the first that was found. From now on no wait succeeds.
void engine::say_fault(errc code, const std::string& text) {
  if (completions_) completions_->refuse();  // its tasks will not see what they await
  std::lock_guard lock(fault_lock_);
  aborting_ = true;
  if (!fault_text_.empty()) return;
  fault_code_ = code;
  fault_text_ = text;
}

void engine::fail(errc code, const std::string& text) {
  say_fault(code, text);
  life_ = life::lost;
  release_streams();
}

// What workers last told the host, and which submissions are not complete. For when the device
// cannot be asked any more.
std::string engine::in_flight() const {
  std::map<std::string, unsigned> workers, submissions;
  for (std::uint32_t s = 0; s < options_.staging_buffers + options_.slots; ++s) {
    std::uint32_t word = host_word(slot_words_[s]).load(simt::acquire);
    if (slot_word::generation(word) != (generations_[s].load() & slot_word::generation_mask))
      ++submissions[program_.types[slot_types_[s].load(std::memory_order_relaxed)].name];
  }
  for (unsigned w = 0; w < view_.sizes.workers; ++w) {
    std::uint32_t type =
        heartbeat_word::type_plus_one(host_word(running_host_[w]).load(simt::relaxed));
    if (type != 0) ++workers[program_.types[type - 1].name];
  }
  std::string text = listed(workers, "worker", "workers");
  std::string more = listed(submissions, "submission in flight", "submissions in flight");
  return text.empty() && more.empty() ? "none"
                                      : text + (text.empty() || more.empty() ? "" : ", ") + more;
}

// After ask_for_abort(): which types run, by number of workers. The poller of ring 0 tells it; if
// there is none, because every worker is at its task, the host copies it.
std::string engine::running_at_abort() const {
  std::map<std::string, unsigned> workers;
  auto give_up = clock::now() + std::chrono::milliseconds(200);
  // N1: pairs with worker::name_running().
  auto told = [&] { return host_word(state_[state_word::named]).load(simt::acquire) != 0; };
  while (!told() && clock::now() < give_up)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::vector<std::uint32_t> running(view_.sizes.workers);
  if (told())
    for (unsigned w = 0; w < view_.sizes.workers; ++w)
      running[w] = heartbeat_word::type_plus_one(host_word(running_host_[w]).load(simt::relaxed));
  else
    running_.copy_to(running);
  for (std::uint32_t type : running)
    if (type != 0) ++workers[program_.types[type - 1].name];
  std::string text = listed(workers, "worker", "workers");
  return text.empty() ? "none" : text;
}

// Asks the workers to leave without finishing. Makes no CUDA call: those wait while another thread
// is inside cudaFree, which waits for the kernel. From now on no wait succeeds.
void engine::ask_for_abort() {
  {
    std::lock_guard lock(residency_lock_);
    aborting_ = true;
    host_word(state_[control_at])
        .store(control_word::of(epoch_, control_request::abort), simt::release);
  }
  release_streams();  // what abort_kernel() asks of the device may be behind them
}

// After ask_for_abort(): if the workers do not leave, ends the context.
void engine::abort_kernel() {
  std::lock_guard lock(residency_lock_);
  if (launched_.load() == 0) return;
  std::uint32_t leave = leave_abort;
  auto give_up = clock::now() + std::chrono::seconds(2);  // workers trap after one
  try {
    simt::copy_bytes(device_, &view_.common.signals->leave, &leave, sizeof leave);
    while (!stream_->done() && clock::now() < give_up)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (stream_->done()) return;
    if (!trap_stream_) return;  // a host lane cannot be ended from outside
    simt::launch_trap(*trap_stream_);
    give_up = clock::now() + std::chrono::seconds(5);
    while (!trap_stream_->done() && clock::now() < give_up)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } catch (...) {  // the context has ended: that was the aim
  }
}

void engine::monitor() {
  std::unique_lock lock(monitor_lock_);
  auto period = std::chrono::milliseconds(50);
  if (options_.watchdog.count() > 0)
    period = std::clamp(options_.watchdog / 8, std::chrono::milliseconds(5), period);
  since_progress_.begin(clock::now());
  while (!monitor_wake_.wait_for(lock, period, [&] { return monitor_stop_; })) {
    if (life_ == life::lost || life_ == life::stopped) continue;
    try {
      // First what needs no CUDA call, which may wait for the very task that does not end.
      if (!outstanding() || !tasks_may_run())
        since_progress_.begin(clock::now());
      else
        check_progress();
      if (life_ == life::lost) continue;
      bool ended = stream_ended();
      if (life_ == life::lost || !ended) continue;
      since_progress_.begin(clock::now());
      // Work is left and nobody is there: a submitter's resume is under way, or is made here.
      if (outstanding() && !parked_by_user_) ensure_resident();
    } catch (...) {
      fail(errc::device_lost, "monitor: " + reason());
    }
  }
}

// Whether a kernel may run tasks: one that was asked to leave does until its last worker has left.
bool engine::has_kernel() const {
  const std::uint32_t launched = launched_.load();
  return launched != 0 && host_word(state_[state_word::left]).load(simt::acquire) != launched;
}

// Whether tasks are to blame when nothing moves: the kernel launched last has begun, or the one
// before has not left. Whatever else a kernel waits for is not their fault.
bool engine::tasks_may_run() const {
  std::uint32_t launched = launched_.load();
  if (launched == 0) return false;
  return state_word::is_of(host_word(state_[0]).load(simt::acquire), launched) ||
         host_word(state_[state_word::left]).load(simt::acquire) != launched - 1;
}

void engine::check_progress() {
  if (options_.watchdog.count() == 0) return;
  std::vector<std::uint32_t> told(view_.sizes.workers + rings_.size() + 1);
  for (unsigned w = 0; w < view_.sizes.workers; ++w)
    told[w] = host_word(running_host_[w]).load(simt::relaxed);
  for (unsigned p = 0; p < rings_.size(); ++p)
    told[view_.sizes.workers + p] = host_word(quiescent_[p]).load(simt::relaxed);
  told.back() = static_cast<std::uint32_t>(swap_->moved());
  if (told != last_heartbeats_) {
    last_heartbeats_ = std::move(told);
    since_progress_.begin(clock::now());
    return;
  }
  // Nothing runs that was told of, and tasks await calls: those may take as long as they like.
  if (completions_ && completions_->outstanding() && in_flight() == "none")
    return since_progress_.begin(clock::now());
  // A machine with much else to do may give the threads of host:N no processor for long.
  const auto now = clock::now();
  const auto had = std::max(since_progress_.until(now, stream_->threads()),
                            since_progress_.until(now, {}) / most_starved);
  if (had < options_.watchdog) return;
  // Before the abort, which ends some waits.
  std::string waits;
  std::size_t more = 0;
  for (const std::string& w : stream_->waits(std::chrono::milliseconds(200)))
    if (more++ < waits_named) waits += (waits.empty() ? ". Waiting: " : ", ") + w;
  if (more > waits_named) waits += ", and " + std::to_string(more - waits_named) + " other waits";
  ask_for_abort();
  std::string text = "watchdog: no task ended for " + std::to_string(options_.watchdog.count()) +
                     " ms while work was outstanding. Running: " + running_at_abort() + waits +
                     ". The runtime is aborted; raise runtime_options::watchdog if tasks are that "
                     "long";
  // First the kernel, then the news: who hears them goes on to cudaFree, which waits for the kernel
  // and keeps every other call of the process waiting.
  say_fault(errc::watchdog, text);
  abort_kernel();
  fail(errc::watchdog, text);
}

}  // namespace grosr::run
