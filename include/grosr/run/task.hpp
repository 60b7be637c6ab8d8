// What a task is: any trivially copyable struct of at most 64 bytes that can be called with a
// context.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "grosr/simt/config.hpp"

namespace grosr {

/// How many threads run one task together.
enum class width : std::uint8_t { lane, warp, block };

/// Levels, from the least to the most urgent.
enum class priority : std::uint8_t { low, normal, high, urgent };
inline constexpr unsigned priority_levels = 4;

namespace run {

inline constexpr unsigned max_task_bytes = 64;
inline constexpr unsigned max_task_types = 16;
inline constexpr unsigned warps_per_block = 4;
inline constexpr unsigned block_threads = warps_per_block * simt::warp_size;

/// Block-shared bytes of a warp that packets are staged in between tasks. A function of a graph may
/// use them while it runs.
inline constexpr std::uint32_t stage_bytes = 2048;

/// For static_assert in a branch that is not taken.
template <class>
inline constexpr bool always_false = false;

template <class T>
constexpr width width_of() {
  if constexpr (requires { requires std::is_same_v<decltype(T::width), const width>; })
    return T::width;
  else
    return width::lane;
}

/// Holds a task that is loaded from its bytes, also one that only a constructor of its own can
/// make.
template <class T>
struct loaded {
  T task{};
};
template <class T>
requires(!std::is_default_constructible_v<T>) struct loaded<T> {
  union {
    T task;
  };
  GROSR_DEVICE loaded() {}
};

/// Bytes a task takes in a batch.
template <class T>
inline constexpr std::uint32_t stride_of = (sizeof(T) + 15) / 16 * 16;

/// Whether a task brings a result: it names the type, `using result = R;`, which may be void.
template <class T>
concept brings_result = requires {
  typename T::result;
};

/// The record of a task that brings a result: the task, and where that goes. What it does when it
/// is called is in join.hpp.
template <class T>
struct forked {
  static constexpr grosr::width width = width_of<T>();
  using shown_as = T;
  T task;
  std::uint64_t destination;
  GROSR_DEVICE int operator()(auto& context) const;
};

template <class T>
inline constexpr bool is_forked = false;
template <class T>
inline constexpr bool is_forked<forked<T>> = true;

/// Whether a record is that of a completion, which a continuation waits for: it says `static
/// constexpr bool completes = true`, and is a queue::completion. One type of a runtime may be.
template <class T>
inline constexpr bool completes = requires {
  requires T::completes;
};

/// Whether tasks of T bring others' results to joins: `static constexpr bool delivers = true`. Each
/// thread's task_end is seen to, as that of a task that was forked.
template <class T>
inline constexpr bool delivers = requires {
  requires T::delivers;
};

namespace detail {
template <class T>
struct record_of {
  using type = T;
};
template <brings_result T>
struct record_of<T> {
  using type = forked<T>;
};
}  // namespace detail
template <class T>
using record_of = typename detail::record_of<T>::type;

/// Bytes that a continuation takes in a frame; at least one piece.
template <class Record>
inline constexpr std::uint32_t stride_of_task = 16;
template <class T>
inline constexpr std::uint32_t stride_of_task<forked<T>> = stride_of<T>;

/// A task as its record.
template <class T>
GROSR_DEVICE constexpr auto as_record(const T& task, std::uint64_t destination = 0) {
  if constexpr (brings_result<T>)
    return forked<T>{task, destination};
  else
    return task;
}

/// Bytes of a result: what fits where the host waits for one.
inline constexpr std::uint32_t max_result_bytes = 48;

template <class Result>
constexpr bool check_result() {
  if constexpr (!std::is_void_v<Result>) {
    static_assert(std::is_trivially_copyable_v<Result> && sizeof(Result) <= max_result_bytes,
                  "grosr: a result is trivially copyable and has at most 48 bytes: put larger data "
                  "behind a pointer");
    static_assert(alignof(Result) <= 16, "grosr: a result is aligned to at most 16 bytes");
  }
  return true;
}

/// Whether a type is that of a lambda, by how compilers spell it.
template <class T>
constexpr bool is_lambda() {
  const std::string_view s = __PRETTY_FUNCTION__;
  return s.find("<lambda") != s.npos || s.find("(lambda at") != s.npos ||
         s.find("[lambda") != s.npos;
}

template <class T>
constexpr bool check_task() {
  static_assert(!is_lambda<T>(),
                "grosr: a task is a struct with a name, with GROSR_DEVICE void (or int) "
                "operator()(auto& context) const: a lambda cannot be compiled for every device");
  static_assert(
      std::is_trivially_copyable_v<T>,
      "grosr: a task must be trivially copyable: no virtual functions, no owning members");
  static_assert(sizeof(T) <= max_task_bytes,
                "grosr: a task has at most 64 bytes: put larger data behind a pointer");
  static_assert(alignof(T) <= 16, "grosr: a task is aligned to at most 16 bytes");
  if constexpr (brings_result<T>) {
    static_assert(sizeof(forked<T>) <= max_task_bytes,
                  "grosr: a task that brings a result has at most 56 bytes, 48 if it is aligned to "
                  "16: put larger data behind a pointer");
    return check_result<typename T::result>();
  }
  return true;
}

template <class... Tasks>
struct type_list {
  static_assert(sizeof...(Tasks) >= 1, "grosr: a runtime needs at least one task type");
  static_assert(sizeof...(Tasks) <= max_task_types, "grosr: a runtime has at most 16 task types");
  static constexpr bool checked = (check_task<Tasks>() && ...);
  static constexpr unsigned size = sizeof...(Tasks);

  template <class T>
  static constexpr unsigned index_of() {
    static_assert(!is_lambda<T>(),
                  "grosr: a task is a struct with a name, with GROSR_DEVICE void (or int) "
                  "operator()(auto& context) const: a lambda cannot be compiled for every device");
    static_assert((std::is_same_v<T, Tasks> || ...),
                  "grosr: this task type is not among the runtime's: add it to runtime<...>");
    unsigned i = 0;
    (void)((std::is_same_v<T, Tasks> ? false : (++i, true)) && ...);
    return i;
  }
};

/// What tasks collect somewhere until others take it, in the form in which a kernel gets it: flow/
/// knows what lies there. Device memory.
struct collection {
  void* items = nullptr;
  std::uint32_t count = 0;
};

/// Whether tasks of T mostly run long, so that a chain of them gains nothing from being near:
/// `static constexpr bool runs_long = true`. Their code is compiled once then.
template <class T>
inline constexpr bool runs_long = requires {
  requires T::runs_long;
};

/// Whether tasks of T have something of their own in the stage of their warp while they run:
/// `static constexpr bool uses_stage = true`.
template <class T>
inline constexpr bool uses_stage = requires {
  requires T::uses_stage;
};

/// What a collector did with what had been collected.
enum class collected : std::uint8_t {
  nothing,  ///< there was none
  taken,    ///< all of it is somebody's work now
  left,     ///< not all of it: who takes it must have caught up first
};

/// The collector of a runtime: what the first task type names that has one, as `template <class
/// Spawner> using collector = ...`; else void. Workers ask it before they rest, so that what was
/// collected counts as work:
///   static collected collect(shared*, bool all)   whole warp: has it taken; without `all`, what
///                                                 waits for too long
///   static bool overdue(shared*)                  one lane: whether something does
///   static bool rung(shared*)                     one lane, if there is such a function: whether
///                                                 there is something new for collect(); workers
///                                                 that wait ask at each turn
template <class Spawner, class... Tasks>
struct collector_of {
  using type = void;
};
template <class Spawner, class T, class... Rest>
struct collector_of<Spawner, T, Rest...> : collector_of<Spawner, Rest...> {};
template <class Spawner, class T, class... Rest>
requires requires { typename T::template collector<Spawner>; }
struct collector_of<Spawner, T, Rest...> {
  using type = typename T::template collector<Spawner>;
};

/// Block-shared memory that the tasks of a runtime have for themselves: what the first task type
/// names that has some, as `using block_memory = ...`, a trivial type, zero when a kernel begins;
/// else none. It is block_local::of_tasks.
struct no_block_memory {};
template <class... Tasks>
struct block_memory_of {
  using type = no_block_memory;
};
template <class T, class... Rest>
struct block_memory_of<T, Rest...> : block_memory_of<Rest...> {};
template <class T, class... Rest>
requires requires { typename T::block_memory; }
struct block_memory_of<T, Rest...> {
  using type = typename T::block_memory;
};
template <class... Tasks>
inline constexpr bool has_block_memory =
    !std::is_same_v<typename block_memory_of<Tasks...>::type, no_block_memory>;

/// The largest of some numbers.
template <std::uint32_t... N>
inline constexpr std::uint32_t largest_of = [] {
  std::uint32_t most = 0;
  ((most = N > most ? N : most), ...);
  return most;
}();

/// A type's name as the compiler spells it.
template <class T>
constexpr std::string_view type_name() {
  std::string_view s = __PRETTY_FUNCTION__;
  auto from = s.find("T = ");
  if (from == std::string_view::npos) return s;
  from += 4;
  return s.substr(from, s.find_first_of(";]", from) - from);
}

/// The name of a type as users are shown it: without unnamed namespaces, however compilers spell
/// them, and the name of `T::shown_as` where there is that.
template <class T>
struct task_name {
  static constexpr auto chars = [] {
    constexpr std::string_view full = type_name<T>();
    std::array<char, full.size() + 1> out{};
    std::size_t n = 0;
    for (std::size_t i = 0; i < full.size();) {
      std::size_t skip = 0;
      for (std::string_view unnamed :
           {"{anonymous}::", "(anonymous namespace)::", "<unnamed>::", "_NV_ANON_NAMESPACE::"})
        if (full.substr(i, unnamed.size()) == unnamed) skip = unnamed.size();
      constexpr std::string_view of_nvcc = "_GLOBAL__N__";
      if (full.substr(i, of_nvcc.size()) == of_nvcc) {
        const auto end = full.find("::", i);
        if (end != full.npos) skip = end + 2 - i;
      }
      if (skip == 0) out[n++] = full[i++];
      i += skip;
    }
    return out;
  }();
  static constexpr const char* text() { return chars.data(); }
};
template <class T>
requires requires { typename T::shown_as; }
struct task_name<T> : task_name<typename T::shown_as> {};

}  // namespace run
}  // namespace grosr
