#include "cases/messages_work.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cli/progress.hpp"
#include "grosr/net/world.hpp"
#include "grosr/simt/buffer.hpp"
#include "measure/samples.hpp"

namespace grosr::tool {
namespace {

/// Counters and elements of each rank, a power of two.
constexpr std::uint32_t places = 4096;

/// A pointer in two words, so that a task of 12 bytes has room for it. All ranks are on one device.
template <class T>
struct packed_pointer {
  std::uint32_t low, high;
  explicit packed_pointer(T* p)
      : low(static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(p))),
        high(static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(p) >> 32)) {}
  GROSR_DEVICE T* get() const {
    return reinterpret_cast<T*>(static_cast<std::uintptr_t>(high) << 32 | low);
  }
};

/// What a chain leaves behind: its result, and when it had how many rounds to go.
using marks = packed_pointer<std::uint64_t>;
GROSR_DEVICE inline void stamp(marks m, std::uint32_t left) {
  m.get()[1 + left] = simt::clock_ns();
}

// ---- chains ----

struct echo {
  using result = std::uint64_t;
  std::uint64_t value;
  GROSR_DEVICE void operator()(auto& context) const { context.give(value + 1); }
};

/// A round of calls, which is also the continuation of the round before.
struct call_round {
  using result = void;
  marks at;
  std::uint64_t value;
  std::uint32_t left, to;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    stamp(at, left);
    if (left == 0) {
      at.get()[0] = value;
      return 0;
    }
    auto& next = context.join(call_round{at, 0, left - 1, to});
    net::world_of(context).call(to, echo{value}, &next.value);
    return 0;
  }
};

struct get_round {
  using result = void;
  net::array_ref<std::uint64_t> numbers;
  marks at;
  std::uint64_t value, sum;
  std::uint32_t left, first;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    stamp(at, left);
    if (left == 0) {
      at.get()[0] = sum + value;
      return 0;
    }
    auto& next = context.join(get_round{numbers, at, 0, sum + value, left - 1, first});
    net::world_of(context).get(numbers, std::uint64_t{first} + left % places, &next.value);
    return 0;
  }
};

/// Goes to rank 1 and back.
struct ball {
  marks at;
  std::uint32_t left;
  GROSR_DEVICE void operator()(auto& context) const {
    auto world = net::world_of(context);
    if (world.rank() != 0) return world.send(0, ball{at, left - 1});
    stamp(at, left);
    simt::atomic_ref<std::uint64_t>(at.get()[0]).fetch_add(1, simt::relaxed);
    if (left != 0) world.send(1, *this);
  }
};
static_assert(sizeof(ball) == 12);

// ---- floods ----

/// Adds 1 to a counter if it has come whole.
template <unsigned Words>
struct counted {
  packed_pointer<std::uint32_t> counters;
  std::uint32_t content[3 * Words - 2];  ///< which counter; the rest follows from that
  GROSR_DEVICE counted(packed_pointer<std::uint32_t> c, std::uint32_t index) : counters(c) {
    for (std::uint32_t k = 0; k < 3 * Words - 2; ++k) content[k] = index + k;
  }
  GROSR_DEVICE void operator()(auto&) const {
    bool whole = true;
    for (std::uint32_t k = 1; k < 3 * Words - 2; ++k) whole = whole && content[k] == content[0] + k;
    if (whole)
      simt::atomic_ref<std::uint32_t>(counters.get()[content[0]]).fetch_add(1, simt::relaxed);
  }
};
static_assert(sizeof(counted<1>) == 12 && sizeof(counted<4>) == 48);

struct send_many {
  packed_pointer<std::uint32_t> counters;
  std::uint32_t first, count, words;
  std::uint32_t to, destinations;  ///< so many ranks from `to` on
  GROSR_DEVICE void operator()(auto& context) const {
    auto world = net::world_of(context);
    const auto all = [&]<unsigned Words>() {
      GROSR_NO_UNROLL
      for (std::uint32_t i = first; i < first + count; ++i) {
        const std::uint32_t rank = (to + i % destinations) % world.size();
        world.send(rank, counted<Words>(counters, rank * places + i % places));
      }
    };
    switch (words) {
      case 1:
        return all.template operator()<1>();
      case 2:
        return all.template operator()<2>();
      case 3:
        return all.template operator()<3>();
      default:
        return all.template operator()<4>();
    }
  }
};

struct add_together {
  static constexpr grosr::width width = grosr::width::warp;
  net::array_ref<std::uint32_t> bins;
  std::uint32_t first, count, lanes;
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.rank() >= lanes) return;
    auto world = net::world_of(context);
    const std::uint32_t other = 1 - world.rank();
    GROSR_NO_UNROLL
    for (std::uint32_t i = first; i < first + count; ++i)
      world.add(bins, other * places + (i * lanes + context.rank()) % places, 1u);
  }
};

class ranks_of_a_device final : public messaging_ranks {
 public:
  ranks_of_a_device(const device& where, std::uint32_t ranks, std::uint32_t rounds, net::path path)
      : marks_(where, simt::space::device, rounds + 2),
        counters_(where, simt::space::device, std::size_t{ranks} * places),
        world_(shares_of(where, ranks), {.path = path}),
        bins_(world_, std::uint64_t{ranks} * places),
        numbers_(world_, std::uint64_t{ranks} * places) {
    std::vector<std::uint64_t> all(numbers_.size());
    for (std::uint64_t i = 0; i < all.size(); ++i) all[i] = number(i);
    numbers_.copy_from(all);
  }

  chain_times run(chain_of what, std::uint32_t rounds) override {
    const marks at(marks_.data());
    switch (what) {
      case chain_of::forks:
        world_.submit(0, call_round{at, 0, rounds, 0});
        break;
      case chain_of::calls:
        world_.submit(0, call_round{at, 0, rounds, 1});
        break;
      case chain_of::sends:
        world_.submit(0, ball{at, rounds});
        break;
      case chain_of::gets:
        world_.submit(0, get_round{numbers_.ref(), at, 0, 0, rounds, places});
        break;
    }
    wait();
    std::vector<std::uint64_t> found(marks_.size());
    marks_.copy_to(found);
    marks_.copy_from(std::vector<std::uint64_t>(marks_.size()));
    return times_of(found, what, rounds);
  }

  double run(const flood& f) override {
    std::vector<std::vector<send_many>> all(world_.size());
    // Tasks side by side begin with different ranks.
    for (std::uint32_t r = 0; r < world_.size(); ++r)
      for (std::uint32_t i = 0; sends(f, r) && i < f.tasks; ++i)
        all[r].push_back({packed_pointer<std::uint32_t>(counters_.data()), i * (f.each + 1), f.each,
                          f.words, f.how == flood::pattern::to_each ? (r + 1) % world_.size() : 0,
                          f.how == flood::pattern::to_each ? f.destinations : 1});
    sent_ += messages(f);
    return submit_all(all);
  }
  double run(const group_flood& f) override {
    std::vector<std::vector<add_together>> all(2);
    for (auto& mine : all)
      for (std::uint32_t i = 0; i < f.tasks; ++i)
        mine.push_back({bins_.ref(), i * f.each, f.each, f.lanes});
    added_ += messages(f);
    return submit_all(all);
  }

  std::uint64_t messages(const flood& f) const override {
    std::uint64_t senders = 0;
    for (std::uint32_t r = 0; r < world_.size(); ++r) senders += sends(f, r) ? 1 : 0;
    return senders * f.tasks * f.each;
  }
  std::uint64_t messages(const group_flood& f) const override {
    return std::uint64_t{2} * f.tasks * f.each * f.lanes;
  }

  std::string wrong() override {
    std::vector<std::uint32_t> run(counters_.size()), added(bins_.size());
    counters_.copy_to(run);
    bins_.copy_to(added);
    const std::uint64_t have_run = sum(run), were_added = sum(added);
    // What is missed here is not missed again.
    const std::uint64_t should_have_run = std::exchange(sent_, have_run);
    const std::uint64_t should_have_been_added = std::exchange(added_, were_added);
    if (have_run != should_have_run)
      return of("tasks that were sent ran", have_run, should_have_run);
    if (were_added != should_have_been_added)
      return of("additions were made", were_added, should_have_been_added);
    std::uint64_t sent = 0, received = 0;
    for (const net::rank_stats& s : world_.stats()) {
      sent += s.words_sent;
      received += s.words_received;
    }
    if (sent != received) return of("words that were sent were received", received, sent);
    for (std::uint32_t r = 0; r < world_.size(); ++r)
      if (const auto errors = world_.errors(r); !errors.empty()) return errors.front().text();
    return "";
  }

  std::uint64_t words_sent() const override {
    std::uint64_t all = 0;
    for (const net::rank_stats& s : world_.stats()) all += s.words_sent;
    return all;
  }
  std::uint64_t deferred() const override {
    std::uint64_t all = 0;
    for (const net::rank_stats& s : world_.stats()) all += s.deferred;
    return all;
  }
  std::size_t memory() const override {
    std::size_t most = 0;
    for (const net::rank_stats& s : world_.stats()) most = std::max(most, s.memory);
    return most;
  }
  unsigned workers() override { return world_.scheduler_stats(0).workers; }

 private:
  static std::vector<net::rank_options> shares_of(const device& where, std::uint32_t ranks) {
    net::rank_options r{.where = where};
    r.runtime.sms = where.is_cuda() ? std::max(1u, where.properties().sms / ranks) : 1;
    r.runtime.memory_limit = std::size_t{where.is_cuda() ? 64u : 8u} << 20;
    r.runtime.overflow_limit = std::size_t{4} << 20;
    r.runtime.slots = 1024;
    r.runtime.staging_buffers = 64;
    return std::vector<net::rank_options>(ranks, r);
  }

  static std::uint64_t number(std::uint64_t index) { return index * 0x9e3779b97f4a7c15u >> 8; }

  bool sends(const flood& f, std::uint32_t rank) const {
    return f.how == flood::pattern::to_each || (rank == 0) == (f.how == flood::pattern::in_place);
  }

  template <class Task>
  double submit_all(const std::vector<std::vector<Task>>& all) {
    return timed([&] {
      for (std::uint32_t r = 0; r < all.size(); ++r)
        if (!all[r].empty()) world_.submit(r, all[r]);
      wait();
    });
  }

  /// Leaves on Ctrl-C. What takes so long that it will not end throws.
  void wait() {
    const auto began = clock::now();
    while (!world_.wait_all_for(std::chrono::milliseconds(100))) {
      progress::pulse();
      if (microseconds_since(began) > 60e6)
        throw error(errc::timed_out, "messages: a minute has passed, and something is under way");
    }
  }

  static chain_times times_of(const std::vector<std::uint64_t>& found, chain_of what,
                              std::uint32_t rounds) {
    std::uint64_t expected = 0;
    if (what == chain_of::forks || what == chain_of::calls) expected = rounds;
    if (what == chain_of::sends) expected = rounds + 1;  // how often it was on rank 0
    if (what == chain_of::gets)
      for (std::uint32_t left = rounds; left != 0; --left)
        expected += number(places + left % places);
    chain_times t;
    if (found[0] != expected)
      t.wrong =
          "a chain ended with " + std::to_string(found[0]) + ", not " + std::to_string(expected);
    for (std::uint32_t left = rounds; left != 0; --left) {
      if (found[1 + left] == 0 || found[left] == 0) t.wrong = "a round was not made";
      t.us.push_back(static_cast<double>(static_cast<std::int64_t>(found[left] - found[1 + left])) /
                     1e3);
    }
    return t;
  }

  static std::uint64_t sum(const std::vector<std::uint32_t>& all) {
    return std::accumulate(all.begin(), all.end(), std::uint64_t{0});
  }
  static std::string of(const char* what, std::uint64_t found, std::uint64_t expected) {
    return std::to_string(found) + " of " + std::to_string(expected) + " " + what;
  }

  // Before the world and after it: memory comes and goes while no kernel is resident.
  simt::buffer<std::uint64_t> marks_;
  simt::buffer<std::uint32_t> counters_;
  net::world<net::callable<echo>, call_round, get_round, ball, counted<1>, counted<2>, counted<3>,
             counted<4>, send_many, add_together>
      world_;
  net::array<std::uint32_t> bins_;
  net::array<std::uint64_t> numbers_;
  std::uint64_t sent_ = 0, added_ = 0;
};

}  // namespace

std::unique_ptr<messaging_ranks> make_messaging_ranks(const device& where, std::uint32_t ranks,
                                                      std::uint32_t rounds, net::path path) {
  return std::make_unique<ranks_of_a_device>(where, ranks, rounds, path);
}

}  // namespace grosr::tool
