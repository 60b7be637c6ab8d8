// A mailbox: a long-lived task that takes requests from the host and from tasks, one after the
// other, and answers them. A request that comes soon after the last one costs no task: the server
// waits a moment for it where it is, with what it has in registers and in block-shared memory.
//
//   struct lookup {
//     static constexpr grosr::width width = grosr::width::block;  // or warp: the server's
//     using request = std::uint32_t;
//     using answer = std::uint64_t;
//     const std::uint64_t* table;
//     GROSR_DEVICE int operator()(auto& context, request key, answer& a) const {
//       if (context.rank() == 0) a = table[key];
//       return 0;
//     }
//   };
//   grosr::runtime<grosr::mail_server<lookup>> runtime;
//   grosr::mailbox<lookup> box(runtime, lookup{table});
//   std::uint64_t value = box.ask(7).get();
//
// Requests of the host are served in the order in which they were made. docs/guide/teams.md says
// when a mailbox is worth its worker, docs/internals/team.md how it works.
#pragma once

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "grosr/run/detail/mail_host.hpp"
#include "grosr/run/ticket.hpp"

namespace grosr {

namespace run {

struct no_answer {};
template <class Handler>
struct answer_of {
  using type = no_answer;
};
template <class Handler>
requires requires { typename Handler::answer; }
struct answer_of<Handler> {
  using type = typename Handler::answer;
};

}  // namespace run

/// The task that serves a mailbox: a runtime with a mailbox for `Handler` has this type among its
/// tasks. A handler is a trivially copyable struct of at most 32 bytes with
///   width                  of the server: warp or block
///   request                trivially copyable, at most 12 bytes
///   answer                 the same, at most 8 bytes; none: only a status comes back
///   operator()(context, request, answer&)   or without the answer: serves a request, by all
///                          threads of the server. It returns 0, or a negative errno, of any
///                          thread; the answer is that of the thread whose rank() is 0.
///   begin(context)         optional: returns what is called in the handler's place as long as one
///                          server stays; for what is worth keeping between requests
template <class Handler>
struct mail_server {
  using handler_type = Handler;
  using request_type = typename Handler::request;
  using answer_type = typename run::answer_of<Handler>::type;
  static constexpr grosr::width width = Handler::width;
  static constexpr bool runs_long = true;  // it stays for the next request
  static_assert(width != grosr::width::lane, "grosr: a mailbox's server is a warp or a block");
  static_assert(std::is_trivially_copyable_v<Handler> && sizeof(Handler) <= 32,
                "grosr: a mailbox's handler is trivially copyable and has at most 32 bytes: put "
                "larger data behind a pointer");
  static_assert(std::is_trivially_copyable_v<request_type> &&
                    sizeof(request_type) <= run::max_request_bytes,
                "grosr: a request is trivially copyable and has at most 12 bytes: put larger data "
                "behind a pointer");
  static_assert(std::is_trivially_copyable_v<answer_type> &&
                    sizeof(answer_type) <= run::max_answer_bytes,
                "grosr: an answer is trivially copyable and has at most 8 bytes: put larger data "
                "behind a pointer");

  Handler handler;
  run::mail_state* state;
  std::uint32_t number;  ///< of the request that this server was brought for; 0: of none
  std::uint32_t request[3];

  GROSR_DEVICE void operator()(auto& context) const {
    run::mail_service<mail_server, std::remove_reference_t<decltype(context)>> service(context);
    if (!service.arrive(*this)) return;
    if constexpr (requires { handler.begin(context); }) {
      auto session = handler.begin(context);
      service.serve(session);
    } else {
      service.serve(handler);
    }
  }
};

/// Where a task finds the answer to its request: in device memory, one for a request at a time.
using mail_cell = run::mail_cell;

/// A mailbox as tasks have it: to be copied freely, 8 bytes more than the handler.
template <class Handler>
struct mailbox_ref {
  using request_type = typename Handler::request;
  using answer_type = typename run::answer_of<Handler>::type;

  Handler handler;
  run::mail_state* state;

  /// Any lane of a task: leaves a request. Nobody waits for the answer: an error of the handler is
  /// among the runtime's errors(). 0; -EAGAIN: `posts` requests wait already; -ENOSPC: there was no
  /// task memory for a server, and the request waits until somebody else brings one.
  template <class Context>
  GROSR_DEVICE int post(Context& context, const request_type& request) const {
    return leave(context, request, nullptr);
  }

  /// The same, with a cell for the answer, which stays where it is until that has come. A task that
  /// can go on without the answer does better than to wait for it: let the handler start the task
  /// that needs it.
  template <class Context>
  GROSR_DEVICE int ask(Context& context, const request_type& request, mail_cell* cell) const {
    simt::atomic_ref<std::uint32_t>(cell->state).store(0, simt::relaxed);
    return leave(context, request, cell);
  }

  /// Whether the answer has come.
  GROSR_DEVICE static bool answered(const mail_cell& cell) {
    // B8: pairs with B7 in mail_service::reply()
    return simt::atomic_ref<std::uint32_t>(const_cast<mail_cell&>(cell).state)
               .load(simt::acquire) != 0;
  }
  /// Once it has: what it is.
  GROSR_DEVICE static answer_type answer(const mail_cell& cell) {
    answer_type a;
    __builtin_memcpy(&a, cell.value, sizeof a);
    return a;
  }

  /// In a warp or block task, by one thread while the others of its warp start nothing: waits for
  /// the answer, `limit_ns` at most; its status, or -ETIMEDOUT; -EAGAIN: the worker is wanted, and
  /// what remains of the task should be spawned; -ECANCELED: the runtime aborts. The answer comes
  /// nevertheless, and the cell has to stay. The server needs a worker too: where all workers wait
  /// like this, all of them time out.
  template <class Context>
  GROSR_DEVICE int wait(Context& context, const mail_cell& cell, std::uint64_t limit_ns) const {
    context.publish();
    const std::uint64_t began = context.clock_ns();
    for (unsigned turn = 0; !answered(cell); ++turn) {
      if (context.aborted()) return -ECANCELED;
      if ((turn & 15) == 15 && context.yield_to_higher() && !answered(cell)) return -EAGAIN;
      if (context.clock_ns() - began > limit_ns) return -ETIMEDOUT;
      simt::pause(turn, "an answer of a mailbox");
    }
    return cell.status;
  }

 private:
  template <class Context>
  GROSR_DEVICE int leave(Context& context, const request_type& request, mail_cell* cell) const {
    if (state->given.takes_posts == 0) return -ENOTSUP;
    run::mail_post p{{0, 0, 0}, cell};
    __builtin_memcpy(p.w, &request, sizeof request);
    if (state->given.posts.try_push_n(&p, 1) == 0) return -EAGAIN;
    // B3: pairs with B2 in mail_service
    const simt::atomic_ref<std::uint64_t> arrivals(state->arrivals);
    if (arrivals.fetch_add(1, simt::acq_rel) != 0) return 0;
    const mail_server<Handler> server{handler, state, 0, {}};
    if (context.spawner().spawn(server, static_cast<std::uint32_t>(context.level()),
                                context.depth()))
      return 0;
    arrivals.exchange(0, simt::acq_rel);
    return -ENOSPC;
  }
};

/// What the host waits for an answer with. To be moved, not copied; not thread-safe. It may be
/// dropped: the request is served nevertheless. The mailbox must live while it waits.
template <class Answer>
class mail_reply {
 public:
  mail_reply() = default;
  mail_reply(run::mail_host* box, std::shared_ptr<run::mail_request> r)
      : box_(box), request_(std::move(r)) {}

  /// True when the answer is there. Never blocks.
  bool ready() const { return request_ == nullptr || box_->answered(*request_); }
  /// Waits until ready(). Throws error(device_lost, watchdog or stopped) if that cannot happen.
  void wait() const {
    if (request_) box_->wait(*request_, {});
  }
  /// The same with a time limit: false when it passed first.
  bool wait_for(std::chrono::nanoseconds limit) const {
    return request_ == nullptr || box_->wait(*request_, run::in(limit));
  }
  /// Waits: 0, or what the handler returned.
  int status() const {
    wait();
    return request_ ? request_->status : 0;
  }
  /// Waits: the answer. Throws error(task_failed) when status() is not 0.
  Answer get() const {
    const int s = status();
    if (s != 0) run::throw_request_failed(s);
    Answer a{};
    if (request_) std::memcpy(&a, request_->value, sizeof a);
    return a;
  }

 private:
  run::mail_host* box_ = nullptr;
  std::shared_ptr<run::mail_request> request_;
};

/// A mailbox of a runtime. Thread-safe, all of it, but construction and destruction. The runtime
/// must live as long, and so must what the handler points to.
template <class Handler>
class mailbox {
 public:
  using request_type = typename Handler::request;
  using reply = mail_reply<typename run::answer_of<Handler>::type>;

  /// Throws error(invalid_option, out_of_memory).
  template <class Runtime>
  mailbox(Runtime& runtime, const Handler& handler, const mailbox_options& o = {},
          priority p = priority::normal)
      : handler_(handler),
        host_(
            runtime.where(), o,
            {[this, &runtime, p](const simt::bus_word& w) {
               last_ = runtime.submit(
                   mail_server<Handler>{handler_, host_.state(), w.w[3], {w.w[0], w.w[1], w.w[2]}},
                   p);
               servers_.push_back(last_);
             },
             [this] {
               std::erase_if(servers_, [](const ticket& t) { return t.done(); });
               return servers_.empty();
             },
             [this] { last_.wait_for(std::chrono::nanoseconds(0)); }}) {}
  mailbox(const mailbox&) = delete;
  /// Waits until all requests are answered and the server has ended, or the runtime has. No task
  /// may use the mailbox any more.
  ~mailbox() = default;

  /// Hands over a request. Waits while `capacity` of them are under way. When the runtime has
  /// ended, this or the wait for the answer throws as runtime::submit() does.
  reply ask(const request_type& request) { return {&host_, host_.ask(pack(request), {}, false)}; }

  /// Hands over a request if there is room for it now, else nullopt. Throws as ask().
  std::optional<reply> try_ask(const request_type& request) {
    auto r = host_.ask(pack(request), {}, true);
    if (r == nullptr) return std::nullopt;
    return reply(&host_, std::move(r));
  }

  /// For tasks; mailbox_options::posts says how many of their requests may wait.
  mailbox_ref<Handler> ref() const { return {handler_, host_.state()}; }

  std::size_t bytes() const { return host_.bytes(); }  ///< device memory

 private:
  static simt::bus_word pack(const request_type& request) {
    simt::bus_word w{{0, 0, 0, 0}};
    std::memcpy(w.w, &request, sizeof request);
    return w;
  }

  Handler handler_;
  // mail_host has a lock for them.
  std::vector<ticket> servers_;  // that have not ended, perhaps
  ticket last_;
  run::mail_host host_;
};

}  // namespace grosr
