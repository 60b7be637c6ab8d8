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

/// What the host has given: where all of it lies.
struct mail_view {
  const simt::bus_word* requests;  ///< pinned, as are
  simt::bus_word* answers;
  std::uint32_t* leaving;  ///< 1: the server is about to look for the last time
  std::uint32_t slot_mask;
  std::uint32_t takes_posts;
  std::uint64_t patience_ns;  ///< 0: patience_ns()
  queue::ring_ref<mail_post> posts;
};

/// Device memory. `arrivals` is everybody's; `next` and the posts' end are the server's.
struct mail_state {
  alignas(128) std::uint64_t arrivals;
  alignas(128) std::uint32_t next;  ///< number of the next request of the host
  mail_view given;
};

/// A server's state, in block-shared memory, so that the handler has the registers. `found`, the
/// request and its status are for all threads; the rest is the first thread's.
struct mail_store {
  std::uint32_t w[3];
  std::uint32_t found;
  std::int32_t status;
  std::uint32_t next;
  alignas(16) unsigned char server[max_task_bytes];  ///< the task
  mail_state* state;
  alignas(8) unsigned char view[sizeof(mail_view)];
  std::uint64_t seen;    ///< arrivals, before the last look at the posts
  std::uint64_t looked;  ///< when it last asked whether its worker is wanted
  mail_cell* cell;       ///< of the request, if it is a post
  bool more, was_host;   ///< there may be another post; the last request was the host's
};
template <width W>
struct mail_stores {
  mail_store of[W == width::warp ? warps_per_block : 1];
};

template <class T>
GROSR_DEVICE T from_words(const std::uint32_t* w) {
  T value;
  __builtin_memcpy(&value, w, sizeof(T));
  return value;
}

/// The task `Server`, as it serves. All of its methods are called by all of the task's threads,
/// unless they say otherwise.
template <class Server, class Context>
class mail_service {
  using handler_type = typename Server::handler_type;
  using request_type = typename handler_type::request;
  using answer_type = typename Server::answer_type;

 public:
  GROSR_DEVICE explicit mail_service(Context& context) : context_(context) {}

  /// False: another server is there, which looks again before it leaves.
  GROSR_DEVICE bool arrive(const Server& server) {
    auto& store = mine();
    context_.sync();
    if (context_.rank() == 0) {
      __builtin_memcpy(store.server, &server, sizeof server);
      store.state = server.state;
      store.found = none;
      // B1: pairs with B2. A server without a number was spawned by the one that arrived for it.
      if (server.number == 0 || arrivals().fetch_add(1, simt::acq_rel) == 0) begin(server);
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
    if (context_.rank() == 0) find_first();
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
      if (context_.rank() == 0) finish(answer);
      context_.sync();
    }
  }

 private:
  enum : std::uint32_t { none, host, post };  // mail_store::found

  GROSR_DEVICE static mail_store& mine() {
    return simt::block_shared<mail_stores<Server::width>>()
        .of[Server::width == width::warp ? simt::warp_id() : 0];
  }
  GROSR_DEVICE static const mail_view& v() {
    return *reinterpret_cast<const mail_view*>(mine().view);
  }
  GROSR_DEVICE static simt::atomic_ref<std::uint64_t> arrivals() {
    return simt::atomic_ref<std::uint64_t>(mine().state->arrivals);
  }
  GROSR_DEVICE static simt::atomic_ref<std::uint32_t, simt::scope::system> leaving() {
    return simt::atomic_ref<std::uint32_t, simt::scope::system>(*v().leaving);
  }
  GROSR_DEVICE static Server& server() { return *reinterpret_cast<Server*>(mine().server); }

  // ---- the first thread ----

  GROSR_DEVICE static void begin(const Server& server) {
    auto& store = mine();
    __builtin_memcpy(store.view, &server.state->given, sizeof(mail_view));
    store.next = server.state->next;
    store.seen = 1;
    store.looked = simt::clock_ns();
    store.cell = nullptr;
    store.more = true;
    store.was_host = false;
    store.status = 0;
    leaving().store(0, simt::relaxed);
    store.found = host;
  }

  /// The request that the server was brought for, if it is the next one; else whatever comes.
  GROSR_DEVICE void find_first() {
    auto& store = mine();
    const Server& s = server();
    if (s.number != 0 && s.number == store.next)
      take(s.request, host);
    else
      store.found = next_request();
  }

  GROSR_DEVICE static void take(const std::uint32_t* words, std::uint32_t from) {
    auto& store = mine();
    for (unsigned i = 0; i < 3; ++i) store.w[i] = words[i];
    store.found = from;
  }

  /// The handler has returned: answers, and finds the next request.
  GROSR_DEVICE void finish(const answer_type& answer) {
    auto& store = mine();
    // What an abort ended has no answer: whoever waits learns why from the runtime.
    if (store.status != 0 && context_.aborted()) {
      store.found = none;
      return;
    }
    reply(store.status, answer);
    store.status = 0;
    store.found = next_request();
  }

  /// Says that the request in the store is done, and what its answer is.
  GROSR_DEVICE void reply(std::int32_t status, const answer_type& answer) {
    auto& store = mine();
    simt::bus_word w{};
    if constexpr (!std::is_empty_v<answer_type>) __builtin_memcpy(w.w, &answer, sizeof answer);
    w.w[2] = static_cast<std::uint32_t>(status);
    if (store.found == host) {
      w.w[3] = store.next;
      simt::fence<simt::scope::system>(simt::release);  // B5: pairs with B6 in mail_host
      simt::bus_store(v().answers + (store.next & v().slot_mask), w);
      store.next = number_after(store.next);
      store.was_host = true;
    } else if (store.cell != nullptr) {
      __builtin_memcpy(store.cell->value, w.w, max_answer_bytes);
      store.cell->status = status;
      // B7: pairs with B8 in mailbox_ref::answered()
      simt::atomic_ref<std::uint32_t>(store.cell->state).store(1, simt::release);
    } else if (status != 0) {
      // Nobody waits for it: the runtime's errors tell.
      context_.spawner().note_failure(server(), status);
    }
    context_.spawner().count_request();
    context_.progressed();
  }

  /// The next request into the store: where it came from, or none when the server is to end.
  GROSR_DEVICE std::uint32_t next_request() {
    auto& store = mine();
    const std::uint64_t began = simt::clock_ns();
    const std::uint32_t next = store.next;
    const simt::bus_word* slot = v().requests + (next & v().slot_mask);
    const bool posts = v().takes_posts != 0;
    for (unsigned turn = 0;; ++turn) {
      bool wanted = false, leaves = false;
      // Also now and then when requests follow each other without a pause.
      if (turn % 16 == 0 && (turn != 0 || began - store.looked > look_every_ns)) {
        store.looked = simt::clock_ns();
        wanted = context_.yield_to_higher() || context_.aborted();
        leaves = wanted || store.looked - began > patience();
      }
      if (!leaves) {
        // After a request of the host's it is the tasks' turn.
        if (posts && store.was_host && take_post()) return post;
        const simt::bus_word w = simt::bus_load(slot);  // B4
        if (w.w[3] == next) {
          take(w.w, host);
          return host;
        }
        if (posts && take_post()) return post;
        leaves = w.w[3] == (next | closing_mark);
      }
      if (leaves && ends(wanted)) return none;
      simt::pause_if_host(turn, "a request");
    }
  }

  GROSR_DEVICE static std::uint64_t patience() {
    return v().patience_ns != 0 ? v().patience_ns : patience_ns();
  }

  GROSR_DEVICE static bool take_post() {
    auto& store = mine();
    const std::uint64_t now = arrivals().load(simt::acquire);  // B2: pairs with B3
    if (now == store.seen && !store.more) return false;
    store.seen = now;
    mail_post p;
    store.more = v().posts.try_pop_n(&p, 1) != 0;
    if (!store.more) return false;
    store.cell = p.cell;
    store.was_host = false;
    take(p.w, post);
    return true;
  }

  /// Ends this server, unless there is something to do. `wanted`: another server is to do it then.
  GROSR_DEVICE bool ends(bool wanted) {
    if (context_.aborted()) return true;
    auto& store = mine();
    const std::uint32_t next = store.next;
    store.state->next = next;
    // L1: said before the last look; pairs with L2 in mail_host.
    leaving().store(1, simt::relaxed);
    simt::fence<simt::scope::system>(simt::seq_cst);
    for (;;) {
      std::uint64_t now = arrivals().load(simt::acquire);
      const simt::bus_word w = simt::bus_load(v().requests + (next & v().slot_mask));
      if (w.w[3] == next || (v().takes_posts != 0 && v().posts.ready() != 0)) break;
      // B2: if somebody came meanwhile, this looks again. The next server has what this one wrote.
      simt::bus_word* closed = v().answers + (next & v().slot_mask);
      if (!arrivals().compare_exchange(now, 0, simt::acq_rel)) continue;
      if (w.w[3] == (next | closing_mark)) simt::bus_store(closed, w);
      return true;
    }
    leaving().store(0, simt::relaxed);
    store.more = true;
    if (!wanted) return false;
    // The next server has arrived by this one's count, and looks for its requests.
    server().number = 0;
    return context_.try_spawn(server());
  }

  static constexpr std::uint64_t look_every_ns = 1'000'000;
  Context& context_;
};

}  // namespace grosr::run
