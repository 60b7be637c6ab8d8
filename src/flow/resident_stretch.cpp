#include "flow/resident_stretch.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "flow/graph_core.hpp"
#include "grosr/simt/relax.hpp"

namespace grosr::flow {
namespace {

using pinned_word = simt::atomic_ref<std::uint32_t, simt::scope::system>;
using pinned_count = simt::atomic_ref<std::uint64_t, simt::scope::system>;
using detail::resident_links;

/// On the host each thread of a block is one that takes turns with others.
unsigned threads_on(const device& d) { return d.is_cuda() ? detail::resident_threads : 32; }

}  // namespace

resident_stretch::resident_stretch(const std::vector<stretch::member>& members,
                                   const std::vector<std::size_t>& buffer_bytes, const device& d,
                                   unsigned outside_ports)
    : where_(d) {
  using simt::space;
  for (const std::size_t n : buffer_bytes) buffers_.emplace_back(d, space::device, n);
  std::size_t words = 0, before = 0;
  std::vector<bool> feeds(members.size(), false);
  for (const stretch::member& m : members) {
    words += 1 + m.resident.options.thread_blocks;
    before += m.after.size();
    for (const unsigned a : m.after) feeds[a] = true;
  }
  counts_ = {d, space::device, words};
  before_ = {d, space::device, before};
  told_ = {d, space::pinned, members.size()};
  addresses_ = {d, space::pinned, outside_ports};
  stops_ = {d, space::pinned, members.size()};
  left_ = {d, space::pinned, members.size()};

  std::vector<detail::resident_counter> done, all_before;
  std::uint64_t* word = counts_.data();
  for (const stretch::member& m : members) {
    done.push_back({word, m.resident.options.thread_blocks});
    word += 1 + m.resident.options.thread_blocks;
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    const stretch::member& m = members[i];
    resident r{&m, simt::stream(d), {}, {}, !feeds[i]};
    resident_links& l = r.links;
    l.addresses = addresses_.data();
    l.stops = stops_.data() + i;
    l.left = left_.data() + i;
    l.told = feeds[i] ? nullptr : told_.data() + i;
    l.after = before_.data() + all_before.size();
    l.nodes_before = static_cast<std::uint32_t>(m.after.size());
    for (const unsigned a : m.after) all_before.push_back(done[a]);
    l.done = done[i];
    l.block_runs = done[i].count + 1;
    l.idle_ns = static_cast<std::uint64_t>(
        std::chrono::nanoseconds(m.resident.options.idle_timeout).count());
    for (const stretch::place& p : m.places)
      r.places.push_back(p.outside ? detail::resident_place{static_cast<int>(p.number), nullptr}
                                   : detail::resident_place{-1, buffers_[p.number].data()});
    residents_.push_back(std::move(r));
  }
  before_.copy_from(all_before);
}

resident_stretch::~resident_stretch() { have_all_leave(); }

void resident_stretch::have_all_leave() noexcept {
  for (resident& r : residents_) pinned_word(*r.links.stops).store(~0u, simt::release);
  for (resident& r : residents_) try {
      r.queue.wait();
    } catch (...) {  // a device that was lost runs nothing
    }
}

/// In the same stream: behind thread blocks of the last launch that are still there, and now leave,
/// too.
void resident_stretch::launch_those_who_left() {
  for (resident& r : residents_) {
    if (pinned_word(*r.links.left).load(simt::acquire) != r.links.launch) continue;
    pinned_word(*r.links.stops).store(r.links.launch, simt::release);
    resident_links next = r.links;
    ++next.launch;
    r.is->resident.launch(r.queue, threads_on(where_), next, r.places, r.is->shapes);
    r.links.launch = next.launch;
  }
}

void resident_stretch::run(const detail::invocation& v) {
  if (failure_) std::rethrow_exception(failure_);
  try {
    run_all(v);
  } catch (...) {
    // Some may have begun: the blocks are the caller's again when they have ended.
    have_all_leave();
    failure_ = std::current_exception();
    throw;
  }
}

void resident_stretch::run_all(const detail::invocation& v) {
  ++run_;
  // R2: the blocks, and what earlier runs left behind, before the addresses.
  for (std::size_t i = 0; i < v.ports.size(); ++i)
    pinned_count(addresses_[i])
        .store(reinterpret_cast<std::uint64_t>(v.ports[i].data) |
                   (run_ & 0xffff) << resident_links::address_bits,
               simt::release);
  launch_those_who_left();
  using clock = std::chrono::steady_clock;
  const auto began = clock::now();
  const auto waits_for = [&](const resident& r) {
    // A3: pairs with R3 in resident_points::say_done().
    return r.tells && pinned_count(*r.links.told).load(simt::acquire) != run_;
  };
  for (const resident& r : residents_)
    for (unsigned turn = 1; waits_for(r); ++turn) {
      simt::relax();
      if (turn % 64 != 0) continue;
      launch_those_who_left();  // some may have left just before the addresses came
      const auto passed = clock::now() - began;
      if (passed < std::chrono::microseconds(where_.is_cuda() ? 50 : 0)) continue;
      for (const resident& other : residents_) other.queue.done();  // throws when it failed
      if (passed < std::chrono::milliseconds(1))
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

void graph_core::check_residency() const {
  const device& d = where->memory.devices().front();
  double multiprocessors = 0;
  unsigned thread_blocks = 0;
  for (const node_core& n : nodes) {
    if (!n.resident) continue;
    const simt::kernel_fit fit = n.resident.fit(d);  // and loads it, before others are resident
    multiprocessors += static_cast<double>(n.resident.options.thread_blocks) / fit.blocks_per_sm;
    thread_blocks += n.resident.options.thread_blocks;
  }
  if (!d.is_cuda() || multiprocessors <= d.properties().sms) return;
  throw error(
      errc::invalid_option,
      fmt::format("graph '{}': its resident nodes have {} thread blocks, which need {:.1f} "
                  "multiprocessors at once, and {} has {}; give them fewer thread blocks",
                  options.name, thread_blocks, multiprocessors, d.name(), d.properties().sms));
}

}  // namespace grosr::flow
