// Tests of ports with slots on a device: a graph that runs there, and kernels of clients.
#pragma once

#include <optional>
#include <vector>

#include "flow/port_peers.hpp"
#include "grosr/flow/remote_port_on_device.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/launch.hpp"

namespace grosr::flow::tested {

/// Writes first, first + 1, and so on.
struct write_numbers {
  word* to;
  word first;
  std::size_t count;
  GROSR_DEVICE void operator()() const {
    for (std::size_t i = simt::thread_id(); i < count; i += 64)
      to[i] = first + static_cast<word>(i);
  }
};

/// Pushes blocks that a kernel writes.
inline void push_numbers(const remote_source_on_device<word>& into, simt::stream& s, word first,
                         std::size_t count) {
  auto w = into.write();
  simt::launch(s, {1, 64}, write_numbers{w.data(), first, count});
  w.push(s, count);
}

template <class Block>
std::vector<word> words_of(const device& where, const Block& b) {
  std::vector<word> all(b.size());
  simt::copy_bytes(where, all.data(), b.data(), all.size() * sizeof(word));
  return all;
}

/// Whether a block holds first, first + step, and so on.
inline bool holds(const remote_sink_on_device<word>& of, const remote_device_read<word>& b,
                  word first, word step) {
  const std::vector<word> all = words_of(of.where(), b);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] != first + step * static_cast<word>(i)) return false;
  return !all.empty();
}

/// Blocks of words go through a kernel that gives each word times three.
struct tripler {
  tripler(const device& d, const block_template& t, unsigned capacity = 1)
      : e(on(d, 1)),
        g(e),
        n(g.kernel("triple", times{3}, {{"a", t}, {"b", t}})),
        from(g.source<word>(n["a"], {.capacity = capacity})),
        to(g.sink<word>(n["b"], {.capacity = capacity, .prefetch = false})) {
    g.compile();
  }
  executor e;
  graph g;
  node n;
  source<word> from;
  sink<word> to;
};

}  // namespace grosr::flow::tested
