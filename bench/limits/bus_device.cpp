// What crosses the bus between the CPU and the device, and how fast.
#include <thread>

#include "cli/interrupt.hpp"
#include "grosr/simt/atomic.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/launch.hpp"
#include "grosr/simt/wait.hpp"
#include "limits/limits.hpp"

namespace grosr::tool::limits {
namespace {

using word = simt::atomic_ref<std::uint32_t, simt::scope::system>;

constexpr std::uint32_t give_up = 0xffffffffu;  // ends the device's side early
constexpr std::size_t line = 32;                // words; two that are polled lie this far apart

/// One lane answers: waits for `call` to become i, writes i to `answer`, for i = 1 to n.
struct answer_calls {
  std::uint32_t *call, *answer, n;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    for (std::uint32_t i = 1; i <= n; ++i) {
      std::uint32_t seen;
      for (unsigned turn = 0; (seen = word(*call).load(simt::relaxed)) != i; ++turn) {
        if (seen == give_up) return;
        simt::pause_if_host(turn, "the CPU's call");
      }
      word(*answer).store(i, simt::relaxed);
    }
  }
};

/// One lane calls: the other way round, and notes when each answer was there.
struct call_host {
  std::uint32_t *call, *answer, n;
  std::uint64_t* stamps;  // n + 1
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    stamps[0] = simt::clock_ns();
    for (std::uint32_t i = 1; i <= n; ++i) {
      word(*call).store(i, simt::relaxed);
      std::uint32_t seen;
      for (unsigned turn = 0; (seen = word(*answer).load(simt::relaxed)) != i; ++turn) {
        if (seen == give_up) return;
        simt::pause_if_host(turn, "the CPU's answer");
      }
      stamps[i] = simt::clock_ns();
    }
  }
};

// The CPU's side of a wait. False after two seconds: the device does not answer. The host backend's
// lanes may need the processor that this thread spins on.
bool spin(const device& d, std::uint32_t& at, std::uint32_t value) {
  clock::time_point began;
  for (std::uint64_t turn = 1; word(at).load(simt::relaxed) != value; ++turn) {
    if (!d.is_cuda() && turn % 256 == 0) std::this_thread::yield();
    if (turn % 4096 != 0) continue;
    if (turn == 4096) began = clock::now();
    if (clock::now() - began > std::chrono::seconds(2)) return false;
  }
  return true;
}

struct load_kernel {
  const simt::bus_word* from;
  std::uint64_t pieces;
  std::uint64_t* sum;
  GROSR_DEVICE void operator()() const {
    const std::uint64_t step = std::uint64_t{simt::grid_size()} * simt::block_size();
    std::uint64_t mine = 0;
    std::uint64_t i = std::uint64_t{simt::block_id()} * simt::block_size() + simt::thread_id();
    for (; i + 3 * step < pieces; i += 4 * step) {
      simt::bus_word v[4];
      for (unsigned k = 0; k < 4; ++k) v[k] = simt::bus_load(from + i + k * step);
      for (unsigned k = 0; k < 4; ++k) mine += v[k].w[0];
    }
    for (; i < pieces; i += step) mine += simt::bus_load(from + i).w[0];
    simt::atomic_ref<std::uint64_t>(*sum).fetch_add(mine, simt::relaxed);
  }
};

struct store_kernel {
  simt::bus_word* to;
  std::uint64_t pieces;
  GROSR_DEVICE void operator()() const {
    const std::uint64_t step = std::uint64_t{simt::grid_size()} * simt::block_size();
    for (std::uint64_t i = std::uint64_t{simt::block_id()} * simt::block_size() + simt::thread_id();
         i < pieces; i += step)
      simt::bus_store(to + i, {{static_cast<std::uint32_t>(i), 0, 0, 1}});
  }
};

simt::shape wide(const device& d) {
  return d.is_cuda() ? simt::shape{d.properties().sms * 4, 256}
                     : simt::shape{d.properties().sms, 32};
}

double best_gb_per_s(std::size_t bytes, unsigned repeats, auto&& once) {
  once();
  double best = timed(once);
  for (unsigned i = 1; i < repeats; ++i) best = std::min(best, timed(once));
  return static_cast<double>(bytes) / best / 1e3;
}

constexpr unsigned copies = 5;

}  // namespace

times ping_pong(const device& d, unsigned n) {
  constexpr unsigned warm = 20;
  simt::buffer<std::uint32_t> words(d, simt::space::pinned, 2 * line);
  std::uint32_t &call = words[0], &answer = words[line];
  simt::stream s(d);
  simt::launch(s, {1, 32}, answer_calls{&call, &answer, n + warm});
  std::vector<double> all;
  for (std::uint32_t i = 1; i <= n + warm; ++i) {
    bool there = false;
    const double us = timed([&] {
      word(call).store(i, simt::relaxed);
      there = spin(d, answer, i);
    });
    if (!there || interrupt::requested()) {
      word(call).store(give_up, simt::relaxed);
      s.wait();
      interrupt::check();
      return {samples(std::move(all)), "no answer from the device within 2 s"};
    }
    if (i > warm) all.push_back(us);
  }
  s.wait();
  return {samples(std::move(all)), ""};
}

times pong_ping(const device& d, unsigned n) {
  simt::buffer<std::uint32_t> words(d, simt::space::pinned, 2 * line);
  simt::buffer<std::uint64_t> stamps(d, simt::space::device, n + 1);
  std::uint32_t &call = words[0], &answer = words[line];
  simt::stream s(d);
  simt::launch(s, {1, 32}, call_host{&call, &answer, n, stamps.data()});
  for (std::uint32_t i = 1; i <= n; ++i) {
    if (!spin(d, call, i) || interrupt::requested()) {
      word(answer).store(give_up, simt::relaxed);
      s.wait();
      interrupt::check();
      return {{}, "no call from the device within 2 s"};
    }
    word(answer).store(i, simt::relaxed);
  }
  s.wait();
  std::vector<std::uint64_t> at(n + 1);
  stamps.copy_to(at);
  std::vector<double> all;
  for (unsigned i = n / 10; i < n; ++i) all.push_back(static_cast<double>(at[i + 1] - at[i]) / 1e3);
  return {samples(std::move(all)), ""};
}

figure copy_to_device(const device& d, std::size_t bytes) {
  simt::buffer<unsigned char> host(d, simt::space::pinned, bytes);
  simt::buffer<unsigned char> there(d, simt::space::device, bytes);
  return {
      best_gb_per_s(bytes, copies, [&] { simt::copy_bytes(d, there.data(), host.data(), bytes); }),
      ""};
}

figure copy_to_host(const device& d, std::size_t bytes) {
  simt::buffer<unsigned char> host(d, simt::space::pinned, bytes);
  simt::buffer<unsigned char> there(d, simt::space::device, bytes);
  return {
      best_gb_per_s(bytes, copies, [&] { simt::copy_bytes(d, host.data(), there.data(), bytes); }),
      ""};
}

figure lanes_load(const device& d, std::size_t bytes) {
  const std::uint64_t pieces = bytes / sizeof(simt::bus_word);
  simt::buffer<simt::bus_word> host(d, simt::space::pinned, pieces);
  simt::buffer<std::uint64_t> sum(d, simt::space::device, 1);
  for (std::uint64_t i = 0; i < pieces; ++i) host[i].w[0] = static_cast<std::uint32_t>(i & 0xff);
  simt::stream s(d);
  unsigned runs = 0;
  figure f;
  f.number = best_gb_per_s(bytes, copies, [&] {
    simt::launch(s, wide(d), load_kernel{host.data(), pieces, sum.data()});
    s.wait();
    ++runs;
  });
  std::uint64_t expected = 0, got = 0;
  for (std::uint64_t i = 0; i < pieces; ++i) expected += i & 0xff;
  sum.copy_to({&got, 1});
  if (got != expected * runs) f.wrong = "lanes read other bytes than the CPU wrote";
  return f;
}

figure lanes_store(const device& d, std::size_t bytes) {
  const std::uint64_t pieces = bytes / sizeof(simt::bus_word);
  simt::buffer<simt::bus_word> host(d, simt::space::pinned, pieces);
  simt::stream s(d);
  figure f;
  f.number = best_gb_per_s(bytes, copies, [&] {
    simt::launch(s, wide(d), store_kernel{host.data(), pieces});
    s.wait();
  });
  for (std::uint64_t i = 0; i < pieces; ++i)
    if (host[i].w[0] != static_cast<std::uint32_t>(i)) f.wrong = "the CPU reads other bytes";
  return f;
}

}  // namespace grosr::tool::limits
