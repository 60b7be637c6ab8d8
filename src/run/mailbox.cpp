// The host's side of mailboxes. docs/internals/team.md, "Mailbox", has the protocol.
#include <algorithm>
#include <bit>
#include <thread>

#include "grosr/run/detail/mail_host.hpp"
#include "grosr/simt/relax.hpp"
#include "run/deadline.hpp"

namespace grosr::run {
namespace {

using clock = std::chrono::steady_clock;
using host_word = simt::atomic_ref<std::uint32_t, simt::scope::system>;

/// A server that ended and left a request unanswered has handed it on: another one is brought after
/// a while, which gets longer.
constexpr std::chrono::milliseconds least_pause{1}, most_pause{100};
constexpr std::chrono::milliseconds time_to_spin{2}, time_to_look{1};
constexpr std::chrono::milliseconds most_patience{25};  // half of the shortest watchdog

}  // namespace

void throw_request_failed(int status) {
  throw error(errc::task_failed, "get: the handler of a mailbox answered a request with " +
                                     std::to_string(status) + " (" +
                                     std::generic_category().message(-status) + ")");
}

mail_host::mail_host(device where, const mailbox_options& o, mail_runtime r)
    : where_(where), runtime_(std::move(r)), capacity_(o.capacity), takes_posts_(o.posts != 0) {
  if (!std::has_single_bit(o.capacity) || o.capacity > 65536)
    throw error(errc::invalid_option, "mailbox: a capacity of " + std::to_string(o.capacity) +
                                          " was asked for; it is a power of two from 1 to 65536");
  if (takes_posts_) queue::check_capacity(o.posts, "mailbox: posts");
  if (takes_posts_) posts_ = queue::ring<mail_post>(where, o.posts);
  state_ = simt::buffer<mail_state>(where, simt::space::device, 1);
  requests_ = simt::buffer<simt::bus_word>(where, simt::space::pinned, capacity_);
  answers_ = simt::buffer<simt::bus_word>(where, simt::space::pinned, capacity_);
  leaving_ = simt::buffer<std::uint32_t>(where, simt::space::pinned, 1);
  slots_.resize(capacity_);
  leaving_[0] = 1;  // no server is there
  mail_state s{};
  s.next = 1;
  s.given.requests = requests_.data();
  s.given.answers = answers_.data();
  s.given.leaving = leaving_.data();
  s.given.slot_mask = capacity_ - 1;
  s.given.takes_posts = takes_posts_ ? 1 : 0;
  const auto patience = std::clamp<std::chrono::nanoseconds>(o.patience, {}, most_patience);
  s.given.patience_ns = static_cast<std::uint64_t>(patience.count());
  if (takes_posts_) s.given.posts = posts_.ref();
  state_.copy_from({&s, 1});
}

mail_host::~mail_host() {
  if (last_ == 0 && !takes_posts_) return;  // no server ever was
  try {
    // Every request is answered before the mailbox closes, for answers come in order.
    for (std::uint32_t s = 0; s < capacity_; ++s)
      if (const auto r = slots_[s]) wait(*r, {});
    std::shared_ptr<mail_request> last;
    {
      const std::lock_guard lock(lock_);
      last = write({{0, 0, 0, 0}}, closing_mark);
    }
    bring_server(last->word);
    wait(*last, {});
    wait_for([&] { return runtime_.done(); }, nullptr, {});
  } catch (...) {  // the runtime has ended, and with it every server
  }
}

std::size_t mail_host::bytes() const {
  return state_.bytes() + (takes_posts_ ? posts_.bytes(posts_.ref().capacity()) : 0);
}

// Under the lock, the slot free: the next request.
std::shared_ptr<mail_request> mail_host::write(simt::bus_word w, std::uint32_t mark) {
  auto r = std::make_shared<mail_request>();
  const std::uint32_t number = number_after(last_);
  r->number = number | mark;
  r->asked = clock::now();
  w.w[3] = r->number;
  r->word = w;
  slots_[number & (capacity_ - 1)] = r;
  simt::bus_store_from_host(requests_.data() + (number & (capacity_ - 1)), w);  // B3: pairs with B4
  last_ = number;
  return r;
}

std::shared_ptr<mail_request> mail_host::ask(simt::bus_word w, deadline until, bool attempt) {
  std::shared_ptr<mail_request> r;
  const auto asked = [&] {
    const std::lock_guard lock(lock_);
    const std::uint32_t slot = number_after(last_) & (capacity_ - 1);
    if (slots_[slot] != nullptr && !collect(slot)) return false;
    r = write(w, 0);
    return true;
  };
  if (!asked() && (attempt || !wait_for(asked, nullptr, until))) return nullptr;
  // L2: the request before the look at `leaving`; pairs with L1 in mail_service::ends().
  simt::fence<simt::scope::system>(simt::seq_cst);
  bring_server(r->word);
  return r;
}

// A server that is about to leave, or has left, may not see this request: submits another one,
// with it. Until that one leaves, `leaving` says that a server is there, or comes.
void mail_host::bring_server(const simt::bus_word& w) {
  const std::lock_guard lock(server_lock_);
  const host_word leaving(leaving_[0]);
  if (leaving.load(simt::relaxed) == 0 && !runtime_.done()) return;
  leaving.store(0, simt::relaxed);
  runtime_.start(w);
  started_ = clock::now();
  pause_ = least_pause;
}

// Whether the answer lies in its slot.
bool mail_host::is_there(const mail_request& r) const {
  // B6: pairs with B5 in mail_service::reply()
  std::uint32_t& word = answers_[r.number & (capacity_ - 1)].w[3];
  return std::atomic_ref(word).load(std::memory_order_acquire) == r.number;
}

// Under the lock: takes the answer out of a slot, which is free then.
bool mail_host::collect(std::uint32_t slot) {
  mail_request& r = *slots_[slot];
  if (!is_there(r)) return false;
  const simt::bus_word w = simt::bus_load_from_host(answers_.data() + slot);
  std::memcpy(r.value, w.w, max_answer_bytes);
  r.status = static_cast<int>(w.w[2]);
  r.answered.store(true, std::memory_order_release);
  slots_[slot] = nullptr;
  return true;
}

bool mail_host::answered(mail_request& r) {
  if (r.answered.load(std::memory_order_acquire)) return true;
  if (!is_there(r)) return false;
  const std::lock_guard lock(lock_);
  // Another thread may have collected it, and the slot hold another request.
  return r.answered.load(std::memory_order_relaxed) || collect(r.number & (capacity_ - 1));
}

bool mail_host::wait(mail_request& r, deadline until) {
  return wait_for([&] { return answered(r); }, &r, until);
}

// Polls: some spinning on GPUs, then sleeps of a sixteenth of the time waited. Brings a server when
// none is there, for the request or, without one, for whatever lies in the slots.
template <class Ready>
bool mail_host::wait_for(const Ready& ready, const mail_request* r, deadline until) {
  const auto began = r != nullptr ? r->asked : clock::now();
  auto looked = clock::now();
  for (unsigned turn = 1;; ++turn) {
    if (ready()) return true;
    if (turn % 64 != 0 && where_.is_cuda()) continue;
    const auto now = clock::now();
    {
      const std::lock_guard lock(server_lock_);
      if (r != nullptr && now - started_ > pause_ && runtime_.done()) {
        if (ready()) return true;
        const bool again = pause_ != std::chrono::nanoseconds(0);
        const auto longer = std::min<std::chrono::nanoseconds>(2 * pause_, most_pause);
        runtime_.start(r->word);
        started_ = now;
        pause_ = again ? longer : least_pause;
      }
      if (now - looked > time_to_look) {
        runtime_.check();
        looked = now;
      }
    }
    if (expired(until)) return ready();
    if (now - began > time_to_spin || !where_.is_cuda())
      std::this_thread::sleep_for(std::clamp<clock::duration>(
          (now - began) / 16, std::chrono::microseconds(20), std::chrono::milliseconds(1)));
  }
}

}  // namespace grosr::run
