// The tasks of `pairs` and `throughput`: the smallest useful ones, 16 bytes each.
#pragma once

#include <cstdint>
#include <memory>

#include "work/any_runtime.hpp"

namespace grosr::tool {

/// `throughput`: results[index] = 2 * value.
struct store {
  static constexpr unsigned number = 0;
  std::uint32_t* results;
  std::uint32_t index, value;
  GROSR_DEVICE void operator()(auto&) const { results[index] = 2 * value; }
};

/// `pairs`, second stage: data[index] += 1.
struct second_stage {
  static constexpr unsigned number = 1;
  std::uint32_t* data;
  std::uint32_t index, reserved;
  GROSR_DEVICE void operator()(auto&) const { data[index] += 1; }
};

/// `pairs`, first stage: data[index] = 2 * index, then starts the second.
struct first_stage {
  static constexpr unsigned number = 2;
  std::uint32_t* data;
  std::uint32_t index, reserved;
  GROSR_DEVICE void operator()(auto& context) const {
    data[index] = 2 * index;
    context.spawn(second_stage{data, index, 0});
  }
};

static_assert(sizeof(store) == 16 && sizeof(first_stage) == 16 && sizeof(second_stage) == 16);

/// A runtime for those three.
std::unique_ptr<any_runtime> make_basic_runtime(const device& d, const runtime_options& options);

/// A runtime for `store` alone, which spawns nothing.
std::unique_ptr<any_runtime> make_store_runtime(const device& d, const runtime_options& options);

/// The first runtime, and what a program does that calls runtime.submit(task) in a loop.
class single_tasks {
 public:
  single_tasks(const device& d, const runtime_options& options);
  ~single_tasks();

  any_runtime& runtime() const;

  /// Submits store{results, i, i} for from <= i < to, one by one, and keeps no ticket. Any thread.
  void submit(std::uint32_t* results, std::uint32_t from, std::uint32_t to) const;

  /// The same for 0 <= i < n with so many in flight: waits for the oldest ticket before each other
  /// one, and for all at the end.
  void keep_in_flight(std::uint32_t* results, std::uint32_t n, std::uint32_t tickets) const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace grosr::tool
