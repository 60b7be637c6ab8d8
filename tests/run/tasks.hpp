// The tasks that the suites of run/ are made of, and one runtime for all of them: its kernel is
// compiled once, in tasks_device.cpp.
#pragma once

#include <memory>
#include <vector>

#include "grosr/run/runtime.hpp"
#include "grosr/simt/atomic.hpp"
#include "support/devices.hpp"
#include "support/errors.hpp"

namespace grosr::testing {

GROSR_DEVICE inline void add_one(std::uint32_t* cell) {
  simt::atomic_ref(*cell).fetch_add(1, simt::relaxed);
}

/// Adds 1 to a cell, if its bytes arrived. `Bytes` is its size, from 16 to 64.
template <std::uint32_t Bytes>
struct mark {
  std::uint32_t* cells;
  std::uint32_t index;
  std::uint32_t check[(Bytes - 12) / 4];

  static mark make(std::uint32_t* cells, std::uint32_t index) {
    mark m{cells, index, {}};
    for (std::uint32_t k = 0; k < (Bytes - 12) / 4; ++k) m.check[k] = index * 31 + k;
    return m;
  }
  GROSR_DEVICE bool whole() const {
    for (std::uint32_t k = 0; k < (Bytes - 12) / 4; ++k)
      if (check[k] != index * 31 + k) return false;
    return true;
  }
  GROSR_DEVICE int operator()(auto&) const {
    if (!whole()) return -1;
    add_one(cells + index);
    return 0;
  }
};
static_assert(sizeof(mark<16>) == 16 && sizeof(mark<24>) == 24 && sizeof(mark<64>) == 64);

/// Each of a warp's lanes adds 1 to a cell.
struct warp_mark {
  static constexpr grosr::width width = grosr::width::warp;
  std::uint32_t* cells;
  std::uint32_t index;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.size() != 32 || context.rank() != simt::lane_id()) return -1;
    add_one(cells + index);
    context.sync();
    return simt::atomic_ref(cells[index]).load(simt::relaxed) % 32 == 0 ? 0 : -2;
  }
};

/// Each of a block's threads adds 1 to a cell.
struct block_mark {
  static constexpr grosr::width width = grosr::width::block;
  std::uint32_t* cells;
  std::uint32_t index;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.size() != run::block_threads || context.rank() != simt::thread_id()) return -1;
    add_one(cells + index);
    context.sync();
    return simt::atomic_ref(cells[index]).load(simt::relaxed) % run::block_threads == 0 ? 0 : -2;
  }
};

/// Too small for a pointer: what arrived can be seen in the errors kept.
template <class Word>
struct tell {
  Word word;
  GROSR_DEVICE int operator()(auto&) const { return -1 - static_cast<int>(word); }
};

/// A binary tree of 2^depth leaves; each leaf adds 1.
struct tree {
  std::uint32_t* leaves;
  std::uint32_t depth;
  GROSR_DEVICE void operator()(auto& context) const {
    if (depth == 0) return add_one(leaves);
    context.spawn(tree{leaves, depth - 1});
    context.spawn(tree{leaves, depth - 1});
  }
};

/// The same, with tasks of 64 bytes.
struct large_tree {
  std::uint32_t* leaves;
  std::uint32_t depth;
  std::uint32_t load[13];
  GROSR_DEVICE void operator()(auto& context) const {
    if (depth == 0) return add_one(leaves);
    large_tree child = *this;
    --child.depth;
    for (auto& word : child.load) ++word;
    context.spawn(child);
    context.spawn(child);
  }
};
static_assert(sizeof(large_tree) == 64);

/// Trees whose nodes are a warp, or a block, of which one thread spawns.
template <grosr::width Width>
struct wide_tree {
  static constexpr grosr::width width = Width;
  std::uint32_t* leaves;
  std::uint32_t depth;
  GROSR_DEVICE void operator()(auto& context) const {
    context.sync();
    if (context.rank() != 0) return;
    if (depth == 0) return add_one(leaves);
    context.spawn(wide_tree{leaves, depth - 1});
    context.spawn(wide_tree{leaves, depth - 1});
  }
};
using warp_tree = wide_tree<grosr::width::warp>;
using block_tree = wide_tree<grosr::width::block>;

/// One task that starts marks [first, first + count), at a priority of their own each when
/// `levels`.
struct fan_out {
  std::uint32_t* cells;
  std::uint32_t first, count, levels;
  GROSR_DEVICE void operator()(auto& context) const {
    for (std::uint32_t i = first; i < first + count; ++i) {
      mark<16> m{cells, i, {i * 31}};
      if (levels)
        context.spawn(m, static_cast<priority>(i % priority_levels));
      else
        context.spawn(m);
    }
  }
};

/// Starts children of every width in turn until `depth` is used up: 3^depth leaves.
struct mixed {
  std::uint32_t* leaves;
  std::uint32_t depth;
  GROSR_DEVICE void operator()(auto& context) const;
};
template <grosr::width Width>
struct wide_mixed {
  static constexpr grosr::width width = Width;
  std::uint32_t* leaves;
  std::uint32_t depth;
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.rank() == context.size() - 1) mixed{leaves, depth}(context);
    context.sync();
  }
};
using warp_mixed = wide_mixed<grosr::width::warp>;
using block_mixed = wide_mixed<grosr::width::block>;

GROSR_DEVICE void mixed::operator()(auto& context) const {
  if (depth == 0) return add_one(leaves);
  context.spawn(mixed{leaves, depth - 1});
  context.spawn(warp_mixed{leaves, depth - 1});
  context.spawn(block_mixed{leaves, depth - 1});
}

/// Runs until the host opens the gate, or the runtime aborts; then adds 1.
struct gated {
  const std::uint32_t* gate;  ///< pinned
  std::uint32_t* passed;
  std::uint32_t* begun = nullptr;  ///< pinned; 1 from then on
  GROSR_DEVICE void operator()(auto& context) const {
    using shared_word = simt::atomic_ref<std::uint32_t, simt::scope::system>;
    if (begun != nullptr) shared_word(*begun).store(1, simt::release);
    shared_word word(const_cast<std::uint32_t&>(*gate));
    simt::wait_until([&] { return word.load(simt::acquire) != 0 || context.aborted(); },
                     simt::forever, nullptr, "the gate");
    add_one(passed);
  }
};

using test_runtime = runtime<mark<16>, mark<24>, mark<64>, warp_mark, block_mark,
                             tell<std::uint8_t>, tell<std::uint32_t>, tree, large_tree, warp_tree,
                             block_tree, fan_out, mixed, warp_mixed, block_mixed, gated>;

/// Memory enough for a small test.
inline runtime_options small_options() {
  runtime_options o;
  o.memory_limit = std::size_t{64} << 20;
  return o;
}

std::unique_ptr<test_runtime> make_runtime(device d, const runtime_options& o = small_options());

/// A device_test with words that tasks count in.
class runtime_test : public device_test {
 protected:
  std::unique_ptr<test_runtime> start(const runtime_options& o = small_options()) {
    return make_runtime(where(), o);
  }

  /// A buffer that outlives every runtime of the test, also when the test ends early.
  template <class T>
  simt::buffer<T>& keep(std::size_t count, simt::space s = simt::space::device) {
    auto b = std::make_shared<simt::buffer<T>>(where(), s, count);
    kept_.push_back(b);
    return *b;
  }

  /// Every cell of `b` holds `value`.
  template <class T>
  static ::testing::AssertionResult all_are(const simt::buffer<T>& b, T value) {
    const auto all = contents(b);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i] != value)
        return ::testing::AssertionFailure()
               << "cell " << i << " of " << all.size() << " is " << all[i] << ", not " << value;
    return ::testing::AssertionSuccess();
  }

 private:
  std::vector<std::shared_ptr<void>> kept_;
};

}  // namespace grosr::testing

/// Declares `suite` as a runtime_test and instantiates it for each backend.
#define GROSR_RUNTIME_SUITE(suite)                                           \
  class suite : public ::grosr::testing::runtime_test {};                    \
  INSTANTIATE_TEST_SUITE_P(on, suite, ::testing::Values("host:0", "cuda:0"), \
                           ::grosr::testing::device_test_name)
