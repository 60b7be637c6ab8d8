// `grosr bench allocator`: blocks of memory for device code.
#include <algorithm>

#include "cases/benches.hpp"
#include "cli/text.hpp"
#include "limits/limits.hpp"
#include "work/blocks.hpp"

namespace grosr::tool {
namespace {

constexpr std::size_t mb = 1 << 20;

std::size_t heap_bytes(const session& s) { return s.sized(8192 * mb, 64 * mb); }

// For blocks of all sizes at once, as much for each side.
bool is_roomy(const session& s) { return s.where.properties().memory > 60'000 * mb; }
std::size_t large_heap_bytes(const session& s) {
  return s.sized(is_roomy(s) ? 16'384 * mb : 1024 * mb, 192 * mb);
}

struct load {
  std::uint32_t threads, turns, outstanding;
  block_sizes sizes;
};

struct outcome {
  samples us;
  double got = 0;  // blocks in each run
  double share = 1;
  std::string wrong;
};

std::string sizes_text(block_sizes z) {
  if (z.by_octave) return "1 B to " + grouped(z.most >> 20) + " MB";
  return z.least == z.most ? grouped(z.least) + " B"
                           : grouped(z.least) + " to " + grouped(z.most) + " B";
}

std::string text_of(const load& l) {
  return grouped(l.threads) + " threads x " + grouped(l.turns) + ", " + sizes_text(l.sizes) +
         (l.outstanding == 1 ? ", one at a time" : ", " + grouped(l.outstanding) + " outstanding") +
         (l.sizes.touch == 4 ? "" : ", touching " + grouped(l.sizes.touch) + " B");
}

// A row of the report's, and what it reached; 0: not the report's.
struct report_row {
  load what;
  double report_per_s;
};

double share(const traffic& t) {
  return t.asked == 0 ? 0 : static_cast<double>(t.got) / static_cast<double>(t.asked);
}

// The same of a heap and of the device's malloc, in turn, as often: a warm-up and the repeats.
struct sides {
  template <class Ours, class Theirs>
  sides(const session& s, const std::string& what, Ours&& ours, Theirs&& theirs) {
    std::vector<double> us;
    heap = s.repeat(what, {1, s.sized(5u, 2u), 20.0}, [&] {
      const double mine = ours();
      us.push_back(theirs());
      return mine;
    });
    us.erase(us.begin());
    malloc = samples(std::move(us));
  }
  samples heap, malloc;
};

double malloc_per_s(const sides& both, std::uint64_t got) {
  return both.malloc.median() > 0 ? static_cast<double>(got) * 1e6 / both.malloc.median() : 0;
}

class measurement {
 public:
  explicit measurement(session& s) : s_(s), heap_(s.where, heap_bytes(s)) {
    const limits::figure atomics = limits::spread_atomics(s.where);
    atomics_per_s_ = atomics.number;
    s.out.limit("spread_atomics_per_s", atomics_per_s_);
    s.out.remark("rates are by the device's clock, from the first block's begin to the last's end");
  }

  void cold(std::uint32_t size);
  void pairs(const load& l, double goal);
  void mixed(const load& l, double goal);
  void beside_malloc(const std::vector<report_row>& rows);

 private:
  outcome churn(const load& l);
  row& beside_atomics(row& r, const std::string& key) {
    return r.limit("an atomic a lane over 8 MB", key, atomics_per_s_);
  }

  session& s_;
  heap heap_;
  double atomics_per_s_;
};

// One block a thread from a heap that nobody has used yet, and again from the same one.
void measurement::cold(std::uint32_t size) {
  const std::uint32_t threads = s_.sized(1u << 20, 1024u);
  const block_sizes sizes{size, size};
  const std::string name =
      "one block a thread, " + grouped(threads) + " threads, " + sizes_text(sizes);
  std::vector<double> warm, frees;
  std::uint64_t missing = 0;
  const samples us = s_.repeat(name, {1, s_.sized(7u, 2u), 5.0}, [&] {
    const heap fresh(s_.where, heap_bytes(s_));
    block_traffic t(s_.where, &fresh, threads, 1);
    const traffic first = t.allocate(sizes);
    frees.push_back(t.release(1, 1).us);
    const traffic second = t.allocate(sizes);
    frees.push_back(t.release(1, 1).us);
    warm.push_back(second.us);
    missing += first.asked - first.got + second.asked - second.got;
    return first.us;
  });
  block_traffic t(s_.where, &heap_, threads, 1);
  missing += threads - t.allocate(sizes, true).got;
  const std::uint64_t broken = t.release(1, 1, true).wrong;
  const std::string wrong = trouble(heap_);
  const auto rate = [&](const samples& x) {
    return x.median() > 0 ? threads * 1e6 / x.median() : 0;
  };
  row r(name);
  r.set("cold_allocations_per_s", rate(us))
      .set("warm_allocations_per_s", rate(samples(warm)))
      .set("frees_per_s", rate(samples(frees)))
      .time(us)
      .check(missing == 0, grouped(missing) + " allocations got no memory")
      .check(broken == 0, grouped(broken) + " blocks were overwritten by others")
      .check(wrong.empty(), wrong)
      .at_least("cold_allocations_per_s", 10e9)
      .at_least("frees_per_s", 25e9);
  beside_atomics(r, "cold_allocations_per_s");
  s_.out.add(beside_atomics(r, "frees_per_s"));
}

outcome measurement::churn(const load& l) {
  outcome o;
  block_traffic t(s_.where, &heap_, l.threads, l.outstanding);
  std::uint64_t asked = 0, got = 0, runs = 0;
  o.us = s_.repeat(text_of(l), {1, s_.sized(11u, 3u), s_.sized(5.0, 0.2)}, [&] {
    const traffic once = t.churn(l.sizes, l.turns);
    ++runs;
    asked += once.asked;
    got += once.got;
    return once.us;
  });
  const traffic checked = t.churn(l.sizes, l.turns, true);
  o.got = static_cast<double>(got) / static_cast<double>(runs);
  o.share = static_cast<double>(got) / static_cast<double>(asked);
  if (checked.wrong != 0) o.wrong = grouped(checked.wrong) + " blocks were overwritten by others";
  if (o.wrong.empty()) o.wrong = trouble(heap_);
  return o;
}

void measurement::pairs(const load& l, double goal) {
  const outcome o = churn(l);
  row r(text_of(l));
  r.rate(o.us, "pairs", o.got)
      .check(o.share == 1, "some allocations got no memory")
      .check(o.wrong.empty(), o.wrong)
      .at_least("pairs_per_s", goal);
  s_.out.add(beside_atomics(r, "pairs_per_s"));
}

void measurement::mixed(const load& l, double goal) {
  const outcome o = churn(l);
  row r(text_of(l));
  r.rate(o.us, "allocations", o.got)
      .set("success_share", o.share)
      .check(o.wrong.empty(), o.wrong)
      .at_least("allocations_per_s", goal)
      .at_least("success_share", 1);
  s_.out.add(beside_atomics(r, "allocations_per_s"));
}

// Both sides have equal turns, warm-ups and repeats, one after the other.
void measurement::beside_malloc(const std::vector<report_row>& rows) {
  for (const auto& [l, report_per_s] : rows) {
    block_traffic ours(s_.where, &heap_, l.threads, l.outstanding);
    block_traffic theirs(s_.where, nullptr, l.threads, l.outstanding);
    traffic heap, malloc;
    sides both(
        s_, "heap and malloc, " + text_of(l),
        [&] { return (heap = ours.churn(l.sizes, l.turns)).us; },
        [&] { return (malloc = theirs.churn(l.sizes, l.turns)).us; });
    const std::uint64_t broken = ours.churn(l.sizes, l.turns, true).wrong;
    const std::string wrong = trouble(heap_);
    const double per_s = malloc_per_s(both, malloc.got);
    row r(text_of(l));
    r.rate(both.heap, "pairs", static_cast<double>(heap.got))
        .set("over_device_malloc_x",
             per_s > 0 ? static_cast<double>(heap.got) * 1e6 / both.heap.median() / per_s : 0)
        .set("device_malloc_success_share", share(malloc))
        .check(share(heap) == 1, "some allocations got no memory")
        .check(broken == 0, grouped(broken) + " blocks were overwritten by others")
        .check(wrong.empty(), wrong)
        .baseline("the device's malloc, as often", "pairs_per_s", per_s);
    if (report_per_s > 0)
      r.at_least("pairs_per_s", 20 * report_per_s,
                 "20x the report's " + with_unit("pairs_per_s", report_per_s));
    r.at_least("over_device_malloc_x", 1000);
    s_.out.add(beside_atomics(r, "pairs_per_s"));
  }
}

// Blocks of all sizes at once, one a thread, into an empty heap, and into what malloc has.
void mixed_blocks(session& s) {
  const std::uint32_t threads = s.sized(131'072u, 1024u);
  const block_sizes sizes{1, 1 << 20, 4, true};
  const std::string name = grouped(threads) + " blocks of " + sizes_text(sizes) + " in one launch";
  const heap h(s.where, large_heap_bytes(s));
  block_traffic ours(s.where, &h, threads, 1), theirs(s.where, nullptr, threads, 1);
  traffic mine, malloc;
  std::uint64_t missing = 0;
  std::vector<double> frees;
  std::string wrong;
  sides both(
      s, name,
      [&] {
        mine = ours.allocate(sizes);
        missing += mine.asked - mine.got;
        if (wrong.empty()) wrong = ours.overlap(sizes);
        frees.push_back(ours.release(1, 1).us);
        if (wrong.empty()) wrong = trouble(h);
        return mine.us;
      },
      [&] {
        malloc = theirs.allocate(sizes);
        theirs.release(1, 1);
        return malloc.us;
      });
  row r(name);
  r.rate(both.heap, "blocks", static_cast<double>(mine.got))
      .set("frees_per_s", static_cast<double>(mine.got) * 1e6 / samples(frees).median())
      .set("device_malloc_success_share", share(malloc))
      .check(missing == 0, grouped(missing) + " allocations got no memory")
      .check(wrong.empty(), wrong)
      .baseline("the device's malloc", "blocks_per_s", malloc_per_s(both, malloc.got))
      .at_least("blocks_per_s", 10e6);
  s.out.add(r);
}

// How long it takes to be told that there is no memory, by one thread and by many. The heap is full
// of blocks of `full_of` bytes, then of smaller ones; malloc's memory of the former alone, for it
// takes minutes to find the last bytes, and is asked for as many.
void refused_requests(session& s, std::uint32_t full_of, const std::vector<std::uint32_t>& asked) {
  std::vector<std::uint32_t> fill;
  for (std::uint32_t size = full_of; size >= 16; size /= 4) fill.push_back(size);
  const heap h(s.where, s.sized(1024 * mb, 16 * mb));
  block_traffic hoard(s.where, &h, 32, 1), native_hoard(s.where, nullptr, 32, 1);
  hoard.stuff(fill);
  const bool fills_malloc = s.gpu() && full_of >= mb;
  if (fills_malloc) native_hoard.stuff({full_of});
  std::vector<row> rows;
  for (const std::uint32_t bytes : asked)
    for (const std::uint32_t threads : {1u, s.sized(65'536u, 512u)}) {
      const bool beside = fills_malloc && bytes == full_of;
      const std::uint32_t turns = threads == 1 ? 1000 : s.sized(20u, 5u);
      block_traffic ours(s.where, &h, threads, 1), theirs(s.where, nullptr, threads, 1);
      std::uint64_t got = 0;
      double malloc_share = 0;
      const std::string name = "a refused request of " + grouped(bytes) + " B when full of " +
                               grouped(full_of) + " B, " + grouped(threads) +
                               (threads == 1 ? " thread" : " threads");
      sides both(
          s, name,
          [&] {
            const traffic t = ours.ask_in_vain(bytes, turns);
            got += t.got;
            return t.us / turns;
          },
          [&] {
            if (!beside) return 0.0;
            const traffic t = theirs.ask_in_vain(bytes, turns);
            malloc_share = share(t);
            return t.us / turns;
          });
      row r(name);
      r.time(both.heap).check(got == 0, grouped(got) + " requests of a full heap got memory");
      if (beside)
        r.set("device_malloc_success_share", malloc_share)
            .baseline("the device's malloc", "median_us", both.malloc.median());
      if (threads == 1) r.at_most("median_us", 2);
      rows.push_back(std::move(r));
    }
  hoard.empty();
  if (fills_malloc) native_hoard.empty();
  const std::string wrong = trouble(h);
  for (row& r : rows) s.out.add(r.check(wrong.empty(), wrong));
}

// The row that the arguments describe.
load described(const session& s) {
  const auto number = [&](std::size_t i, std::uint32_t otherwise) {
    return static_cast<std::uint32_t>(s.number(i).value_or(otherwise));
  };
  const std::uint32_t size = number(2, 64), mode = number(3, 0), touch = number(5, 4);
  const std::uint32_t least = mode == 2 ? 64 : size, most = mode == 2 ? 512 : size;
  return {number(0, 0),
          number(1, s.sized(50u, 10u)),
          mode == 0 ? 1 : number(4, 16),
          {least, most, std::min(touch, least)}};
}

}  // namespace

void bench_allocator(session& s) {
  block_traffic::reserve_native(s.where, s.number(0) ? 1024 * mb : large_heap_bytes(s));
  if (s.number(0)) {
    const load l = described(s);
    measurement(s).beside_malloc({{l, 0}});
    return;
  }
  mixed_blocks(s);
  refused_requests(s, 1 << 20, {64, 4096, 1 << 20});
  refused_requests(s, 64, {64, 4096, 131'072});
  measurement m(s);
  for (std::uint32_t size = 16; size <= 4096; size *= 2) m.cold(size);

  const std::uint32_t many = s.sized(65'536u, 512u), turns = s.sized(200u, 20u);
  for (std::uint32_t size = 16; size <= 4096; size *= 2)
    m.pairs({many, turns, 1, {size, size}}, 12e9);
  for (std::uint32_t size : {64u, 256u, 1024u, 4096u})
    m.pairs({s.sized(many, 256u), turns, 16, {size, size}}, 10e9);
  m.mixed({s.sized(many, 256u), turns, 16, {16, 128}}, 2e9);
  m.mixed({s.sized(many, 256u), turns, 16, {16, 4096}}, 1e9);
  m.mixed({s.sized(many, 256u), turns, 16, {64, 512}}, 1e9);

  s.out.remark("from here on: the rows of the report's experiment D");
  const std::uint32_t few = s.sized(16'384u, 256u), fewest = s.sized(2048u, 128u);
  const std::uint32_t short_turns = s.sized(50u, 12u);
  m.beside_malloc({{{many, short_turns, 1, {32, 32}}, 583e6},
                   {{many, short_turns, 1, {64, 64}}, 647e6},
                   {{many, short_turns, 1, {256, 256}}, 648e6},
                   {{many, short_turns, 1, {1024, 1024}}, 565e6},
                   {{few, turns, 1, {64, 64}}, 283e6},
                   {{few, turns, 16, {64, 64}}, 249.6e6},
                   {{few, turns, 16, {64, 512}}, 35.7e6},
                   {{fewest, turns, 16, {256, 256, 4}}, 39.8e6},
                   {{fewest, turns, 16, {256, 256, 64}}, 17.6e6},
                   {{fewest, turns, 16, {256, 256, 256}}, 6.64e6}});
}

}  // namespace grosr::tool
