// Nodes of a dataflow graph: what runs when a block is at each of its inputs.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "grosr/flow/block_template.hpp"
#include "grosr/flow/port_view.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/timeline.hpp"

namespace grosr::flow {

/// What happens when a block comes to a channel that is full.
enum class when_full : std::uint8_t {
  block,        ///< push() waits; a node keeps the block until there is room
  drop_oldest,  ///< the one that has waited longest is let go, and counted
  latest,       ///< all that wait are let go, and counted: only the newest block matters
};

/// A port as it is named when its node is made. Its direction and element type are those of the
/// function's parameter.
struct port {
  std::string name;
  block_template shape;
  /// An input that keeps its block until another one comes.
  bool sticky = false;
  /// How long an input may lack a block while another input that is not sticky has one; then that
  /// is reported (graph::events). None: as long as it takes.
  std::optional<std::chrono::nanoseconds> deadline = {};
  /// For an output of variable records or bytes, of which only the function knows how many there
  /// are when it runs, on a device, too: the name of another output of the node, one std::uint32_t,
  /// which is 0 when the function begins and says the number when it is over. Outputs of such a
  /// node go on when the device has come to its end. Each of its blocks has room for the whole
  /// template; heap_out.hpp has outputs that allocate what they need.
  std::string count_port = {};
};

/// Whether a node's function reads the block at a port, writes a new one, or changes one.
enum class direction : std::uint8_t { in, out, inout };

namespace detail {

/// What a function takes at a port.
struct parameter {
  direction way;
  element_type element;
  bool from_heap;  ///< an output that the function allocates

  friend bool operator==(const parameter&, const parameter&) = default;
};

struct port_description {
  std::string name;
  direction way;
  bool from_heap;
  block_template shape;
  element_type element;  ///< that the function takes
  bool sticky;
  std::optional<std::chrono::nanoseconds> deadline;
  std::string count_port;
};

/// What a node's function is called with.
struct invocation {
  struct at_port {
    void* data = nullptr;
    std::size_t count = 0;
    const block_template* shape = nullptr;
    const void* heap = nullptr;  ///< a heap_ref: `data` is a heap_descriptor; null: of no heap
  };
  std::vector<at_port> ports;
  simt::stream* stream = nullptr;  ///< null: on the host
  std::uint64_t number = 0;        ///< of the node's runs on the device
  /// Instead of a run: kernels that the function is known to launch are loaded on that device.
  const device* loads = nullptr;
};

/// An implementation of a node: it runs on a thread of the host, or puts work into a stream of a
/// device.
using function = std::function<void(invocation&)>;

// ---- from the parameters of functions ----

template <class T>
inline constexpr bool is_view = false;
template <class T>
inline constexpr bool is_view<in<T>> = true;
template <class T>
inline constexpr bool is_view<out<T>> = true;
template <class T>
inline constexpr bool is_view<inout<T>> = true;

template <class T>
inline constexpr bool is_view<heap_out<T>> = true;
template <class View>
inline constexpr bool is_heap_out = false;
template <class T>
inline constexpr bool is_heap_out<heap_out<T>> = true;

template <class View>
constexpr direction way_of() {
  using T = typename View::element;
  return std::is_same_v<View, in<T>>      ? direction::in
         : std::is_same_v<View, inout<T>> ? direction::inout
                                          : direction::out;
}

template <class View>
View view_of(invocation::at_port& p, bool in_kernel) {
  if constexpr (is_heap_out<View>) {
    return View(p.heap, p.data, p.shape->count());
  } else {
    View v;
    v.data = static_cast<decltype(v.data)>(p.data);
    v.count = p.count;
    for (int i = 0; i < 3; ++i) v.extent[i] = static_cast<std::uint32_t>(p.shape->extents()[i]);
    if constexpr (way_of<View>() == direction::out)
      if (!in_kernel) v.written = &p.count;
    return v;
  }
}

/// A kernel would write more elements than a block has room for.
[[noreturn]] void throw_too_many(std::size_t points, const block_template& shape);

/// The kernel of a node that runs over points.
template <class F, class... Views>
struct over_points {
  F f;
  std::array<std::uint32_t, 3> extent;
  std::tuple<Views...> views;

  GROSR_DEVICE point point_of(std::size_t i, std::size_t all) const {
    if (extent[1] == 1 && extent[2] == 1) return {static_cast<std::uint32_t>(i), 0, 0, i};
    // Divisions of 64 bits take several times as long.
    if (all <= 0xffffffffu) return at(static_cast<std::uint32_t>(i), i);
    return at<std::size_t>(i, i);
  }
  template <class Number>
  GROSR_DEVICE point at(Number i, std::size_t index) const {
    const Number row = i / extent[0];
    return {static_cast<std::uint32_t>(i % extent[0]), static_cast<std::uint32_t>(row % extent[1]),
            static_cast<std::uint32_t>(row / extent[1]), index};
  }

  GROSR_DEVICE void operator()() const {
    const std::size_t all = std::size_t{extent[0]} * extent[1] * extent[2];
    const std::size_t threads = std::size_t{simt::grid_size()} * simt::block_size();
    for (std::size_t i = std::size_t{simt::block_id()} * simt::block_size() + simt::thread_id();
         i < all; i += threads) {
      const point p = point_of(i, all);
      std::apply([&](const Views&... v) { f(p, v...); }, views);
    }
  }
};

template <class... Views>
struct views {
  static constexpr std::size_t count = sizeof...(Views);
  static constexpr bool any_from_heap = (is_heap_out<Views> || ...);

  static std::vector<port_description> describe(const std::vector<port>& ports) {
    std::vector<port_description> all;
    std::size_t i = 0;
    (all.push_back({ports[i].name, way_of<Views>(), is_heap_out<Views>, ports[i].shape,
                    element_type::of<typename Views::element>(), ports[i].sticky, ports[i].deadline,
                    ports[i].count_port}),
     ...);
    for (i = 0; i < all.size(); ++i) {
      all[i].name = ports[i].name;
      all[i].shape = ports[i].shape;
      all[i].sticky = ports[i].sticky;
      all[i].deadline = ports[i].deadline;
      all[i].count_port = ports[i].count_port;
    }
    return all;
  }

  static std::vector<parameter> parameters() {
    return {{way_of<Views>(), element_type::of<typename Views::element>(), is_heap_out<Views>}...};
  }

  static bool varies(const block_template& t) {
    return t.layout() != block_template::records::fixed;
  }

  /// The port whose template says over how many points a kernel runs: the first that is written,
  /// and has its block already.
  static constexpr std::size_t main() {
    constexpr bool counts[] = {(way_of<Views>() != direction::in && !is_heap_out<Views>)...};
    for (std::size_t i = 0; i < count; ++i)
      if (counts[i]) return i;
    return 0;
  }
  static constexpr bool begins_with_heap_out() {
    constexpr bool all[] = {is_heap_out<Views>...};
    return all[0];
  }

  /// So that its first launch does not wait for a resident kernel.
  template <class F>
  static void load(const device& d) {
    simt::fit<256, 1, over_points<F, Views...>>(d, 256);
  }

  template <class F>
  static void launch(const F& f, invocation& v) {
    static_assert(!begins_with_heap_out(),
                  "grosr: a kernel runs over the points of another port than a heap_out<T>; let "
                  "its first parameter be an in<T>, or an out<T>");
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      const block_template& shape = *v.ports[main()].shape;
      auto e = shape.extents();
      if (varies(shape)) {
        constexpr direction ways[] = {way_of<Views>()...};
        e[0] = v.ports[ways[main()] == direction::out ? 0 : main()].count;
        if (e[0] > shape.count()) throw_too_many(e[0], shape);
        ((ways[I] == direction::out && !is_heap_out<Views> && varies(*v.ports[I].shape)
              ? void(v.ports[I].count = e[0])
              : void()),
         ...);
      }
      const over_points<F, Views...> k{
          f,
          {static_cast<std::uint32_t>(e[0]), static_cast<std::uint32_t>(e[1]),
           static_cast<std::uint32_t>(e[2])},
          {view_of<Views>(v.ports[I], true)...}};
      const std::size_t points = e[0] * e[1] * e[2], blocks = (points + 255) / 256;
      if (points == 0) return;
      simt::launch<256>(*v.stream, {static_cast<unsigned>(blocks < 65'535 ? blocks : 65'535), 256},
                        k);
    }
    (std::index_sequence_for<Views...>());
  }

  template <class F, class... First>
  static void call(F& f, invocation& v, First&&... first) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      f(std::forward<First>(first)..., view_of<Views>(v.ports[I], false)...);
    }
    (std::index_sequence_for<Views...>());
  }
};

/// Of the parameters of a function, of which the first may be a point or a stream.
template <class... P>
inline constexpr bool others_are_views = false;
template <class First, class... Rest>
inline constexpr bool others_are_views<First, Rest...> = (is_view<Rest> && ...);

/// The views that a function takes, and what it takes before them.
template <class F>
struct parameters {
  static_assert(sizeof(F*) == 0,
                "grosr: a node's function has one call operator, and says the types of its "
                "parameters, as in<float>; auto is none");
};
template <class F>
requires requires { &F::operator(); }
struct parameters<F> : parameters<decltype(&F::operator())> {};
template <class R, class... P>
struct parameters<R (*)(P...)> {
  static_assert(others_are_views<std::remove_cvref_t<P>...>,
                "grosr: a node's function takes an in<T>, out<T>, inout<T> or heap_out<T> for each "
                "of its ports, behind the point of a kernel or the stream of on_stream(); a "
                "pointer is none of these");
  template <class Before, class AtPorts>
  struct parts {
    using before = Before;
    using at_ports = AtPorts;
  };
  template <class First, class... Rest>
  static auto split(std::tuple<First, Rest...>*) {
    if constexpr (is_view<First>)
      return parts<std::tuple<>, views<First, Rest...>>();
    else
      return parts<std::tuple<First>, views<Rest...>>();
  }
  using both = decltype(split(static_cast<std::tuple<std::remove_cvref_t<P>...>*>(nullptr)));
  using before = typename both::before;
  using at_ports = typename both::at_ports;
};
template <class R, class... P>
struct parameters<R (*)(P...) noexcept> : parameters<R (*)(P...)> {};
template <class R, class F, class... P>
struct parameters<R (F::*)(P...)> : parameters<R (*)(P...)> {};
template <class R, class F, class... P>
struct parameters<R (F::*)(P...) const> : parameters<R (*)(P...)> {};
template <class R, class F, class... P>
struct parameters<R (F::*)(P...) noexcept> : parameters<R (*)(P...)> {};
template <class R, class F, class... P>
struct parameters<R (F::*)(P...) const noexcept> : parameters<R (*)(P...)> {};

}  // namespace detail
}  // namespace grosr::flow
