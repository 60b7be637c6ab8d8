// Resident nodes: functions that stay on a device between blocks, and feed each other there.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <tuple>
#include <utility>
#include <vector>

#include "grosr/flow/node.hpp"
#include "grosr/simt/atomic.hpp"
#include "grosr/simt/launch.hpp"
#include "grosr/simt/shared.hpp"
#include "grosr/simt/wait.hpp"

namespace grosr::flow {

struct resident_options {
  /// Thread blocks of 256 threads that stay on the device, and share the points of each run.
  unsigned thread_blocks = 1;
  /// How long they stay without a run, up to an hour; the next one launches them again. Until they
  /// leave, calls that wait for the whole device wait for them: cudaFree, cudaDeviceSynchronize,
  /// the end of another graph.
  std::chrono::microseconds idle_timeout{20'000};
};

namespace detail {

/// A count on the device, and what one run adds to it.
struct resident_counter {
  std::uint64_t* count = nullptr;
  std::uint64_t each_run = 1;
};

/// What a resident node shares with the host and with other nodes. Runs have numbers from 1.
/// docs/internals/dataflow.md has the protocol.
struct resident_links {
  /// An address takes 48 bits of its word; the others have the last 16 of the run's number.
  static constexpr unsigned address_bits = 48;

  std::uint64_t* addresses = nullptr;   ///< pinned: a word for each port of the stretch
  std::uint32_t* stops = nullptr;       ///< pinned: the last launch that is to leave
  std::uint32_t* left = nullptr;        ///< pinned: the launch of which a thread block has left
  std::uint64_t* told = nullptr;        ///< pinned: the last run that is done; null: others follow
  resident_counter* after = nullptr;    ///< on the device: of nodes that feed this one
  std::uint32_t nodes_before = 0;       ///< of these
  resident_counter done;                ///< on the device: this node's own
  std::uint64_t* block_runs = nullptr;  ///< on the device: runs of each thread block
  std::uint32_t launch = 0;             ///< from 1
  std::uint64_t idle_ns = 0;
};

/// Where a resident node finds what is at one of its ports.
struct resident_place {
  int outside = -1;         ///< the port of the stretch that it is at, or -1
  void* address = nullptr;  ///< else
};

/// A resident node's function without its types.
struct resident_function {
  std::function<simt::kernel_fit(const device&)> fit;
  std::function<void(simt::stream&, unsigned threads, const resident_links&,
                     const std::vector<resident_place>&, const std::vector<block_template>&)>
      launch;
  resident_options options;

  explicit operator bool() const { return static_cast<bool>(launch); }
};

inline constexpr unsigned resident_threads = 256;  // of a block, on a GPU

template <std::size_t Ports>
struct resident_shared {
  std::uint64_t addresses[Ports];
  std::uint32_t goes;
};

/// The kernel of a resident node.
template <class F, class... Views>
struct resident_points {
  static constexpr std::size_t ports = sizeof...(Views);
  static constexpr std::uint32_t whole_warp = ~0u;

  over_points<F, Views...> points;  // with the addresses that never change
  std::array<int, ports> outside;   // as resident_place::outside
  resident_links links;

  GROSR_DEVICE void operator()() const {
    auto& shared = simt::block_shared<resident_shared<ports>>();
    for (std::uint64_t run = links.block_runs[simt::block_id()] + 1;; ++run) {
      if (simt::warp_id() == 0) {
        const bool goes = wait_for(run, shared);
        if (simt::lane_id() == 0) shared.goes = goes;
      }
      simt::sync_block();
      if (shared.goes == 0) break;
      over_points<F, Views...> now = points;
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        (set(std::get<I>(now.views), shared.addresses[I], outside[I]), ...);
      }
      (std::index_sequence_for<Views...>());
      now();
      simt::sync_block();
      if (simt::thread_id() == 0) say_done(run);
    }
    if (simt::thread_id() == 0)
      simt::atomic_ref<std::uint32_t, simt::scope::system>(*links.left)
          .store(links.launch, simt::release);
  }

  template <class View>
  GROSR_DEVICE static void set(View& v, std::uint64_t address, int at) {
    if (at >= 0) v.data = reinterpret_cast<decltype(v.data)>(address);
  }

  /// The first warp: until all is there that the run needs. False: it is to leave.
  GROSR_DEVICE bool wait_for(std::uint64_t run, resident_shared<ports>& shared) const {
    const std::uint32_t all = links.nodes_before + static_cast<std::uint32_t>(ports);
    std::uint32_t next = simt::lane_id();  // that this lane waits for: nodes, then ports
    std::uint64_t since = 0;
    for (unsigned turn = 0;; ++turn) {
      while (next < all && is_there(next, run, shared)) next += simt::warp_size;
      if (simt::all(whole_warp, next >= all)) return true;
      if (turn % 64 == 63) {
        bool leaves = false;
        if (simt::lane_id() == 0) {
          const std::uint64_t t = simt::clock_ns();
          if (since == 0) since = t;
          leaves = t - since > links.idle_ns ||
                   simt::atomic_ref<std::uint32_t, simt::scope::system>(*links.stops)
                           .load(simt::relaxed) >= links.launch;
        }
        if (simt::any(whole_warp, leaves)) return false;
      }
      simt::pause_if_host(turn, "a block for a resident node");
    }
  }

  GROSR_DEVICE bool is_there(std::uint32_t i, std::uint64_t run,
                             resident_shared<ports>& shared) const {
    if (i < links.nodes_before) {
      const resident_counter& c = links.after[i];
      // A1: pairs with R1 of that node.
      return simt::atomic_ref<std::uint64_t>(*c.count).load(simt::acquire) >= run * c.each_run;
    }
    const std::uint32_t port = i - links.nodes_before;
    if (outside[port] < 0) return true;
    // A2: pairs with R2 in resident_stretch::run().
    const std::uint64_t word =
        simt::atomic_ref<std::uint64_t, simt::scope::system>(links.addresses[outside[port]])
            .load(simt::acquire);
    if (word >> resident_links::address_bits != (run & 0xffff)) return false;
    shared.addresses[port] = word & ((std::uint64_t{1} << resident_links::address_bits) - 1);
    return true;
  }

  GROSR_DEVICE void say_done(std::uint64_t run) const {
    std::uint64_t now = run;
    // R1: what the run wrote, before the count. Also of the thread blocks that came before this one.
    if (links.done.each_run == 1)
      simt::atomic_ref<std::uint64_t>(*links.done.count).store(run, simt::release);
    else
      now = simt::atomic_ref<std::uint64_t>(*links.done.count).fetch_add(1, simt::acq_rel) + 1;
    // R3: pairs with A3 in resident_stretch::run().
    if (links.told != nullptr && now == run * links.done.each_run)
      simt::atomic_ref<std::uint64_t, simt::scope::system>(*links.told).store(run, simt::release);
    links.block_runs[simt::block_id()] = run;  // for a later launch: nobody is to wait for it
  }
};

template <class Views>
struct resident_of;
template <class... Views>
struct resident_of<views<Views...>> {
  template <class F>
  static resident_function make(const F& f, const resident_options& options) {
    using kernel = resident_points<F, Views...>;
    const auto fit = [](const device& d) {
      return simt::fit<resident_threads, 1, kernel>(d, resident_threads);
    };
    const auto launch = [f, thread_blocks = options.thread_blocks](
                            simt::stream& s, unsigned threads, const resident_links& links,
                            const std::vector<resident_place>& places,
                            const std::vector<block_template>& shapes) {
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        const auto e = shapes[views<Views...>::main()].extents();
        invocation::at_port at[] = {{places[I].address, shapes[I].count(), &shapes[I]}...};
        const kernel k{{f,
                        {static_cast<std::uint32_t>(e[0]), static_cast<std::uint32_t>(e[1]),
                         static_cast<std::uint32_t>(e[2])},
                        {view_of<Views>(at[I], true)...}},
                       {places[I].outside...},
                       links};
        simt::launch<resident_threads>(s, {thread_blocks, threads}, k);
      }
      (std::index_sequence_for<Views...>());
    };
    return {fit, launch, options};
  }
};

}  // namespace detail
}  // namespace grosr::flow
