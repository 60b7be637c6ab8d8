// What a mailbox keeps where, and what its server does. docs/internals/team.md, "Mailbox", has the
// protocol.
//
//   requests, answers   pinned memory, 16 bytes each: a request of the host with its number, and
//                       its answer with the same number. Number n uses slot n mod capacity.
//   posts               device memory, a ring: requests of tasks
//   arrivals            device memory: how often somebody came: the first one brings the server, and
//                       the server leaves by bringing it back to 0
#pragma once

#include <cerrno>
#include <cstring>

#include "grosr/queue/ring.hpp"
#include "grosr/run/task.hpp"
#include "grosr/run/team.hpp"
#include "grosr/simt/atomic.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/shared.hpp"
#include "grosr/simt/wait.hpp"

namespace grosr::run {

inline constexpr std::uint32_t max_request_bytes = 12, max_answer_bytes = 8;

/// Numbers of requests: 31 bits, not 0. The highest bit marks the word that closes the mailbox.
inline constexpr std::uint32_t closing_mark = 1u << 31;
GROSR_DEVICE constexpr std::uint32_t number_after(std::uint32_t n) {
  return n == closing_mark - 1 ? 1 : n + 1;
}

/// Where a task waits for an answer. Device memory.
struct mail_cell {
  alignas(8) unsigned char value[max_answer_bytes];
  std::int32_t status;
  std::uint32_t state;  ///< 0: asked; 1: answered
};

/// A request of a task.
struct mail_post {
  std::uint32_t w[3];
  mail_cell* cell;  ///< null: nobody waits for the answer
};

/// Device memory. `arrivals` is everybody's; `next` and the posts' end are the server's.
struct mail_state {
  alignas(128) std::uint64_t arrivals;
  alignas(128) std::uint32_t next;  ///< number of the next request of the host
  // Given by the host.
  const simt::bus_word* requests;  ///< pinned, as are
  simt::bus_word* answers;
  std::uint32_t* leaving;  ///< 1: the server is about to look for the last time
  std::uint32_t slot_mask;
  std::uint32_t takes_posts;
  std::uint64_t patience_ns;  ///< 0: patience_ns()
  queue::ring_ref<mail_post> posts;
};

/// What the server's first thread tells the others.
struct mail_store {
  std::uint32_t w[3];
  std::uint32_t found;
  std::int32_t status;
};
struct mail_stores {
  mail_store of[warps_per_block];
};

template <class T>
GROSR_DEVICE T from_words(const std::uint32_t* w) {
  T value;
  __builtin_memcpy(&value, w, sizeof(T));
  return value;
}

/// The task `Server`, as it serves: one object a thread, all of whose methods are called by all of
/// the task's threads, unless they say otherwise.
template <class Server, class Context>
class mail_service {
  using handler_type = typename Server::handler_type;
  using request_type = typename handler_type::request;
  using answer_type = typename Server::answer_type;

 public:
  GROSR_DEVICE mail_service(const Server& server, Context& context)
      : server_(server), s_(*server.state), context_(context) {}

  /// False: another server is there, which looks again before it leaves.
  GROSR_DEVICE bool arrive() {
    auto& store = mine();
    if (context_.rank() == 0) {
      store.found = none;
      store.status = 0;
      bool alone = true;
      // B1: pairs with B2. A server without a number was spawned by the one that arrived for it.
      if (server_.number != 0) alone = arrivals().fetch_add(1, simt::acq_rel) == 0;
      if (alone) {
        seen_ = 1;
        looked_ = simt::clock_ns();
        looks_at_posts_ = s_.takes_posts != 0;
        next_ = s_.next;
        system_word(*s_.leaving).store(0, simt::relaxed);
        store.found = host;
      }
    }
    context_.sync();
    const bool stays = store.found != none;
    context_.sync();
    return stays;
  }

  /// Serves until nothing came for a while, the worker is wanted, or the mailbox closes.
  template <class Session>
  GROSR_DEVICE void serve(Session& session) {
    auto& store = mine();
    if (context_.rank() == 0) {
      if (server_.number != 0 && server_.number == next_)
        take(server_.request, host);
      else
        store.found = look();
    }
    context_.sync();
    while (store.found != none) {
      const auto request = from_words<request_type>(store.w);
      answer_type answer{};
      int status = 0;
      if constexpr (requires { session(context_, request, answer); })
        status = session(context_, request, answer);
      else
        status = session(context_, request);
      if (status != 0) {
        std::int32_t expected = 0;
        simt::atomic_ref<std::int32_t, simt::scope::block>(store.status)
            .compare_exchange(expected, status, simt::relaxed);
      }
      context_.sync();
      if (context_.rank() == 0) {
        // What an abort ended has no answer: whoever waits learns why from the runtime.
        if (store.status != 0 && context_.aborted()) {
          store.found = none;
        } else {
          reply(store.status, answer);
          store.status = 0;
          store.found = look();
        }
      }
      context_.sync();
    }
  }

 private:
  enum : std::uint32_t { none, host, post };  // mail_store::found

  GROSR_DEVICE static mail_store& mine() {
    return simt::block_shared<mail_stores>().of[Server::width == width::warp ? simt::warp_id() : 0];
  }
  GROSR_DEVICE simt::atomic_ref<std::uint64_t> arrivals() const {
    return simt::atomic_ref<std::uint64_t>(s_.arrivals);
  }
  GROSR_DEVICE static simt::atomic_ref<std::uint32_t, simt::scope::system> system_word(
      std::uint32_t& word) {
    return simt::atomic_ref<std::uint32_t, simt::scope::system>(word);
  }

  // ---- the first thread ----

  GROSR_DEVICE void take(const std::uint32_t* words, std::uint32_t from) {
    auto& store = mine();
    for (unsigned i = 0; i < 3; ++i) store.w[i] = words[i];
    store.found = from;
  }

  /// Says that the request in the store is done, and what its answer is.
  GROSR_DEVICE void reply(std::int32_t status, const answer_type& answer) {
    simt::bus_word w{};
    __builtin_memcpy(w.w, &answer, sizeof answer);
    w.w[2] = static_cast<std::uint32_t>(status);
    if (mine().found == host) {
      w.w[3] = next_;
      simt::fence<simt::scope::system>(simt::release);  // B5: pairs with B6 in mail_host
      simt::bus_store(s_.answers + (next_ & s_.slot_mask), w);
      next_ = number_after(next_);
      was_host_ = true;
    } else if (cell_ != nullptr) {
      __builtin_memcpy(cell_->value, w.w, max_answer_bytes);
      cell_->status = status;
      // B7: pairs with B8 in mailbox_ref::answered()
      simt::atomic_ref<std::uint32_t>(cell_->state).store(1, simt::release);
    } else if (status != 0) {
      // Nobody waits for it: the runtime's errors tell.
      context_.spawner().note_failure(server_, status);
    }
    context_.spawner().count_request();
    context_.progressed();
  }

  /// The next request into the store: where it came from, or none when the server is to end.
  GROSR_DEVICE std::uint32_t look() {
    const std::uint64_t began = simt::clock_ns();
    // Requests that follow each other closely do not keep the worker from others.
    if (began - looked_ > look_every_ns) {
      looked_ = began;
      if (is_wanted() && ends(true)) return none;
    }
    const std::uint64_t patience = s_.patience_ns != 0 ? s_.patience_ns : patience_ns();
    for (unsigned turn = 0;; ++turn) {
      // After a request of the host's it is the tasks' turn.
      if (was_host_ && take_post()) return post;
      const simt::bus_word w = simt::bus_load(s_.requests + (next_ & s_.slot_mask));  // B4
      if (w.w[3] == next_) {
        take(w.w, host);
        return host;
      }
      if (take_post()) return post;
      if (w.w[3] == (next_ | closing_mark) && ends(false)) return none;
      if ((turn & 15) == 15) {
        const bool wanted = is_wanted();
        if ((wanted || simt::clock_ns() - began > patience) && ends(wanted)) return none;
      }
      simt::pause_if_host(turn, "a request");
    }
  }

  GROSR_DEVICE bool is_wanted() { return context_.yield_to_higher() || context_.aborted(); }

  GROSR_DEVICE bool take_post() {
    if (!looks_at_posts_) return false;
    const std::uint64_t now = arrivals().load(simt::acquire);  // B2: pairs with B3
    if (now == seen_ && !more_) return false;
    seen_ = now;
    mail_post p;
    more_ = s_.posts.try_pop_n(&p, 1) != 0;
    if (!more_) return false;
    cell_ = p.cell;
    was_host_ = false;
    take(p.w, post);
    return true;
  }

  /// Ends this server, unless there is something to do. `wanted`: another server is to do it then.
  GROSR_DEVICE bool ends(bool wanted) {
    if (context_.aborted()) return true;
    s_.next = next_;
    // L1: said before the last look; pairs with L2 in mail_host.
    system_word(*s_.leaving).store(1, simt::relaxed);
    simt::fence<simt::scope::system>(simt::seq_cst);
    for (;;) {
      std::uint64_t now = arrivals().load(simt::acquire);
      const simt::bus_word w = simt::bus_load(s_.requests + (next_ & s_.slot_mask));
      if (w.w[3] == next_ || (looks_at_posts_ && s_.posts.ready() != 0)) break;
      // B2: if somebody came meanwhile, this looks again. The next server has what this one wrote.
      if (!arrivals().compare_exchange(now, 0, simt::acq_rel)) continue;
      if (w.w[3] == (next_ | closing_mark)) simt::bus_store(s_.answers + (next_ & s_.slot_mask), w);
      return true;
    }
    system_word(*s_.leaving).store(0, simt::relaxed);
    more_ = true;
    // The next server has arrived by this one's count.
    if (!wanted || !context_.try_spawn(Server{server_.handler, server_.state, 0, {}})) return false;
    return true;
  }

  static constexpr std::uint64_t look_every_ns = 1'000'000;
  const Server& server_;
  mail_state& s_;
  Context& context_;
  // Of the first thread:
  std::uint32_t next_ = 0;
  std::uint64_t seen_ = 0, looked_ = 0;
  bool looks_at_posts_ = false, more_ = true, was_host_ = false;
  mail_cell* cell_ = nullptr;
};

}  // namespace grosr::run
