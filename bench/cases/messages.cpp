// `grosr bench messages`: messages between ranks that share a device. Chains, in which each message
// answers the one before, between two ranks that have nothing else to do; then rates of messages
// that all lanes send, by how many receive them, by their size and by how many lanes send together;
// and the memory that a rank has for links.
//
// Times of rounds are from clock to clock of the device, on rank 0; those of rates are the host's,
// from the first submit until nothing is under way.
#include <functional>
#include <numeric>

#include "cases/benches.hpp"
#include "cases/messages_work.hpp"
#include "cli/text.hpp"

namespace grosr::tool {
namespace {

using pattern = flood::pattern;

struct measured {
  samples us;
  std::string wrong;
  double padding = 0, deferred = 0;  ///< share of the words sent; messages
};

class messages_bench {
 public:
  messages_bench(session& s, std::uint32_t rounds) : s_(s), rounds_(rounds) {}

  void run() {
    s_.out.remark(
        "rounds are timed by the device's clock, which ticks once a microsecond on some "
        "GPUs; rates by the host's");
    measured direct;
    guard("gets of another rank, direct", [&] {
      const auto ranks = make_messaging_ranks(s_.where, 2, rounds_, net::path::automatic);
      direct = chains(*ranks, chain_of::gets);
    });
    guard("two ranks", [&] {
      const auto ranks = make_messaging_ranks(s_.where, 2, rounds_, net::path::messages);
      add_chains(*ranks, direct);
      add_groups(*ranks);
      add_sizes(*ranks, 1);
    });
    for (const std::uint32_t destinations : {2u, 4u, 8u})
      guard(grouped(destinations) + " destinations", [&] {
        const auto ranks = make_messaging_ranks(s_.where, destinations + 1, 0, net::path::messages);
        add_sizes(*ranks, destinations);
      });
    guard("one receiver", [&] { add_receiver(); });
    for (const std::uint32_t n : {8u, 64u})
      guard("memory of " + grouped(n) + " ranks", [&] { add_memory(n); });
  }

 private:
  /// What a world throws, where messages were lost or tasks did not end, makes a row invalid; the
  /// other worlds are measured all the same.
  void guard(const std::string& what, const std::function<void()>& measure) {
    try {
      measure();
    } catch (const error& e) {
      s_.out.add(row(what).check(false, e.what()));
    }
  }

  // ---- chains ----

  measured chains(messaging_ranks& ranks, chain_of what) {
    measured m;
    std::vector<double> all;
    ranks.run(what, std::min(rounds_, 20u));
    s_.repeat("messages: chains", {0, 3, 5.0}, [&] {
      const chain_times t = ranks.run(what, rounds_);
      all.insert(all.end(), t.us.begin(), t.us.end());
      if (m.wrong.empty()) m.wrong = t.wrong;
      return std::accumulate(t.us.begin(), t.us.end(), 0.0);
    });
    m.us = samples(std::move(all));
    if (m.wrong.empty()) m.wrong = ranks.wrong();
    return m;
  }

  void add_chains(messaging_ranks& ranks, const measured& direct) {
    const measured forks = chains(ranks, chain_of::forks), sends = chains(ranks, chain_of::sends),
                   calls = chains(ranks, chain_of::calls), gets = chains(ranks, chain_of::gets);
    const std::string by = ", a chain of " + grouped(rounds_);
    const auto latency = [&](const char* name, const measured& m) {
      row r(name + by);
      r.latency(m.us)
          .check(m.wrong.empty(), m.wrong)
          .check(m.us.min() >= 0, "a clock went backwards");
      return r;
    };
    const auto scheduler = [&](row& r) -> row& {
      return r.limit("a fork and a join on one rank", "mean_us", forks.us.mean());
    };
    s_.out.add(latency("a fork and a join on one rank", forks));
    row there_and_back = latency("a task sent to another rank, and one back", sends);
    s_.out.add(scheduler(there_and_back));
    row call = latency("a call of another rank, and its reply", calls);
    scheduler(call).baseline("a task sent there, and one back", "mean_us", sends.us.mean());
    s_.out.add(call);
    row get = latency("a get of another rank's element, by messages", gets);
    scheduler(get);
    if (direct.us.count() != 0) {
      get.baseline("direct", "mean_us", direct.us.mean());
      s_.out.add(latency("a get of another rank's element, direct", direct));
    }
    s_.out.add(get);
  }

  // ---- rates ----

  template <class Flood>
  measured rate(messaging_ranks& ranks, const Flood& f) {
    measured m;
    const std::uint64_t words = ranks.words_sent(), deferred = ranks.deferred();
    unsigned runs = 0;
    m.us = s_.repeat("messages: rates", {1, s_.sized(11u, 5u), s_.sized(1.0, 0.2)}, [&] {
      ++runs;
      return ranks.run(f);
    });
    const auto sent = static_cast<double>(ranks.words_sent() - words);
    const double wanted = static_cast<double>(ranks.messages(f)) * words_of(f) * runs;
    m.padding = sent > 0 ? 1 - wanted / sent : 0;
    m.deferred = static_cast<double>(ranks.deferred() - deferred);
    m.wrong = ranks.wrong();
    return m;
  }

  static double words_of(const flood& f) { return f.words; }
  static double words_of(const group_flood&) { return 1; }

  row rate_row(std::string name, const measured& m, const char* noun, std::uint64_t count) {
    row r(std::move(name));
    r.rate(m.us, noun, static_cast<double>(count))
        .set("padding_share", m.padding)
        .set("deferred", m.deferred)
        .check(m.wrong.empty(), m.wrong);
    return r;
  }

  flood lanes_of(std::uint32_t words) const {
    flood f;
    f.words = words;
    f.tasks = s_.sized(16'384u, 64u);
    f.each = s_.sized(64u, 16u);
    return f;
  }

  void add_sizes(messaging_ranks& ranks, std::uint32_t destinations) {
    for (const std::uint32_t words : {1u, 2u, 3u, 4u}) {
      flood f = lanes_of(words);
      f.destinations = destinations;
      const measured m = rate(ranks, f);
      row r = rate_row(grouped(destinations + 1) + " ranks, each sends to " +
                           (destinations == 1 ? "the other" : grouped(destinations)) +
                           ": tasks of " + grouped(words * 12) + " bytes",
                       m, "tasks", ranks.messages(f));
      r.set("content_gb_per_s", r.value("tasks_per_s") * words * 12 / 1e9);
      s_.out.add(r);
    }
  }

  void add_receiver() {
    const std::uint32_t n = s_.sized(8u, 3u);
    const auto ranks = make_messaging_ranks(s_.where, n, 0, net::path::messages);
    flood f = lanes_of(1);
    f.how = pattern::in_place;
    const measured spawned = rate(*ranks, f);
    const double local = static_cast<double>(ranks->messages(f)) * 1e6 / spawned.us.median();
    f.how = pattern::to_first;
    const measured sent = rate(*ranks, f);
    row r = rate_row(grouped(n - 1) + " ranks send to one: tasks of 12 bytes", sent, "tasks",
                     ranks->messages(f));
    r.baseline("spawned on that rank", "tasks_per_s", local)
        .check(spawned.wrong.empty(), spawned.wrong);
    s_.out.add(r);
  }

  void add_groups(messaging_ranks& ranks) {
    const double workers = ranks.workers();
    for (const std::uint32_t lanes : {1u, 2u, 4u, 8u, 16u, 32u}) {
      group_flood f;
      f.lanes = lanes;
      f.tasks = s_.sized(4'096u, 16u);
      f.each = s_.sized(64u, 8u);
      const measured m = rate(ranks, f);
      row r = rate_row("additions by " + grouped(lanes) +
                           (lanes == 1 ? " lane of a warp" : " lanes of a warp together"),
                       m, "additions", ranks.messages(f));
      // Both ranks have as many warps.
      r.set("lane_additions_per_s", r.value("additions_per_s") / (2 * workers * lanes));
      s_.out.add(r);
    }
  }

  // ---- memory ----

  void add_memory(std::uint32_t n) {
    const auto ranks = make_messaging_ranks(s_.where, n, 0, net::path::messages);
    row r("a rank of " + grouped(n) + ": memory of its links");
    const auto bytes = static_cast<double>(ranks->memory());
    r.set("memory_bytes", bytes)
        .limit("the words of two links from each rank", "memory_bytes", 2.0 * n * 64 * 1024)
        .check(bytes > 0, "it has none");
    s_.out.add(r);
  }

  session& s_;
  std::uint32_t rounds_;
};

}  // namespace

void bench_messages(session& s) {
  messages_bench(s, static_cast<std::uint32_t>(s.number(0).value_or(s.sized(2'000u, 200u)))).run();
}

}  // namespace grosr::tool
