// Functions that allocate what they write, and a graph of one, for tests of heap outputs.
#pragma once

#include <optional>
#include <vector>

#include "flow/functions.hpp"
#include "grosr/flow/heap_out.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/launch.hpp"

namespace grosr::flow::tested {

inline constexpr std::size_t slab = 64 << 10, words_a_slab = slab / sizeof(word);
inline constexpr std::size_t most = 1 << 20;  // elements; four times what the heaps here have
inline block_template some() { return block_template::variable<word>(most); }
inline block_template asked() { return block_template::of<word>(2); }

/// Gets the first number, and how many there are to be.
struct count_up {
  unsigned calls = 1;
  GROSR_DEVICE void operator()(point p, in<word> a, heap_out<word> o) const {
    if (p.index != 0) return;
    word* e = nullptr;
    for (unsigned i = 0; i < calls; ++i) {
      word* const got = o.allocate(a[1]);
      if (i == 0) e = got;
    }
    if (e == nullptr) return;
    for (word i = 0; i < a[1]; ++i) e[i] = a[0] + i;
  }
};

struct allocate_numbers {
  in<word> a;
  heap_out<word> o;
  GROSR_DEVICE void operator()() const {
    if (simt::block_id() == 0 && simt::thread_id() == 0) o.allocate(a[1]);
  }
};
struct fill_numbers {
  in<word> a;
  heap_out<word> o;
  GROSR_DEVICE void operator()() const {
    word* const e = o.data();
    if (e == nullptr) return;
    const std::size_t threads = std::size_t{simt::grid_size()} * simt::block_size();
    for (std::size_t i = std::size_t{simt::block_id()} * simt::block_size() + simt::thread_id();
         i < o.count(); i += threads)
      e[i] = a[0] + static_cast<word>(i);
  }
};

inline void count_up_in_stream(simt::stream& s, in<word> a, heap_out<word> o) {
  simt::launch(s, {1, 32}, allocate_numbers{a, o});
  simt::launch(s, {2, 64}, fill_numbers{a, o});
}

/// Takes a while, and writes the last element that it got.
struct spend_time {
  unsigned steps = 1;
  GROSR_DEVICE void operator()(point p, in<word> a, out<word> b) const {
    word x = p.x;
    for (unsigned i = 0; i < steps; ++i) x = x * 1664525 + 1013904223;
    const word nearly_never = x == 0xdeadbeef ? 1 : 0;
    b[p.index] = nearly_never + (a.count == 0 ? 0 : a[a.count - 1]);
  }
};

inline std::vector<port> counting_ports() { return {{"a", asked()}, {"o", some()}}; }

/// What counts up, from a source to a sink.
struct counting_graph {
  executor e;
  std::optional<graph> g;
  std::optional<source<word>> from;
  std::optional<sink<word>> to;

  explicit counting_graph(const device& d, graph_options o = {}, const count_up& f = {},
                          unsigned capacity = 1)
      : e(on(d)) {
    if (o.heap_bytes == 0) o.heap_bytes = 16 * slab;
    o.name = "g";
    g.emplace(e, o);
    const node n = g->kernel("n", f, counting_ports());
    from.emplace(g->source<word>(n["a"], {.capacity = capacity}));
    to.emplace(g->sink<word>(n["o"], {.capacity = capacity}));
    g->compile();
  }
  void push(std::size_t first, std::size_t count) {
    from->push(std::vector<word>{static_cast<word>(first), static_cast<word>(count)});
  }
};

inline std::vector<word> elements_of(const datablock& b) {
  const auto all = b.read<word>();
  return {all.begin(), all.end()};
}

}  // namespace grosr::flow::tested
