// A transport between threads that stand for processes.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "grosr/net/transport.hpp"
#include "grosr/simt/error.hpp"

namespace grosr::net::tested {

/// What all of them share.
struct shared_memory {
  explicit shared_memory(std::uint32_t n) : processes(n) {}
  std::uint32_t processes;
  std::mutex lock;
  /// By world, who sends, who receives.
  using way = std::pair<unsigned, std::pair<std::uint32_t, std::uint32_t>>;
  std::map<way, std::deque<std::string>> packets, gathered;
  std::atomic<bool> cut{false};  ///< nothing can be reached any more
};

class memory_connection : public connection {
 public:
  memory_connection(shared_memory& all, unsigned world, std::uint32_t process)
      : all_(all),
        world_(world),
        process_(process),
        out_(all.processes, std::string(most_packet, 0)) {}

  std::byte* to_fill(std::uint32_t to) override {
    check();
    const std::lock_guard hold(all_.lock);
    return all_.packets[way(process_, to)].empty() ? reinterpret_cast<std::byte*>(out_[to].data())
                                                   : nullptr;
  }
  void send(std::uint32_t to, std::size_t bytes) override {
    const std::lock_guard hold(all_.lock);
    all_.packets[way(process_, to)].push_back(out_[to].substr(0, bytes));
  }
  packet receive() override {
    check();
    const std::lock_guard hold(all_.lock);
    for (std::uint32_t from = 0; from < all_.processes; ++from) {
      auto& queue = all_.packets[way(from, process_)];
      if (queue.empty()) continue;
      came_ = std::move(queue.front());
      queue.pop_front();
      return {from, std::as_bytes(std::span(came_))};
    }
    return {0, {}};
  }

  std::vector<std::string> gather(const std::string& mine, run::deadline until) override {
    std::vector<std::string> all(all_.processes);
    for (std::uint32_t p = 0; p < all_.processes; ++p) {
      const std::lock_guard hold(all_.lock);
      all_.gathered[way(process_, p)].push_back(mine);
    }
    nap pause;
    for (std::uint32_t p = 0; p < all_.processes;) {
      check();
      {
        const std::lock_guard hold(all_.lock);
        auto& queue = all_.gathered[way(p, process_)];
        if (!queue.empty()) {
          all[p++] = std::move(queue.front());
          queue.pop_front();
          continue;
        }
      }
      if (until && std::chrono::steady_clock::now() >= *until) {
        give_up("it waited for process " + std::to_string(p));
        throw error(errc::timed_out, "it waited for process " + std::to_string(p));
      }
      pause.take();
    }
    return all;
  }

  void give_up(const std::string& why) noexcept override {
    const std::lock_guard hold(lock_);
    if (why_.empty()) why_ = why;
  }
  void check() const override {
    if (all_.cut) throw error(errc::stopped, "nobody can be reached");
    const std::lock_guard hold(lock_);
    if (!why_.empty()) throw error(errc::stopped, why_);
  }

 private:
  shared_memory::way way(std::uint32_t from, std::uint32_t to) const {
    return {world_, {from, to}};
  }
  shared_memory& all_;
  unsigned world_;
  std::uint32_t process_;
  std::vector<std::string> out_;
  std::string came_, why_;
  mutable std::mutex lock_;
};

class memory_transport : public transport {
 public:
  memory_transport(shared_memory& all, std::uint32_t process) : all_(all), process_(process) {}
  std::uint32_t process() const override { return process_; }
  std::uint32_t processes() const override { return all_.processes; }
  void cut() { all_.cut = true; }
  simt::owner<connection> connect() override {
    return simt::owner<connection>(new memory_connection(all_, worlds_++, process_));
  }

 private:
  shared_memory& all_;
  std::uint32_t process_;
  unsigned worlds_ = 0;
};

/// Calls a function once for each process, in a thread of its own.
inline void in_processes(std::uint32_t n, const std::function<void(memory_transport&)>& what) {
  shared_memory all(n);
  std::vector<std::thread> threads;
  for (std::uint32_t p = 0; p < n; ++p)
    threads.emplace_back([&, p] {
      memory_transport mine(all, p);
      what(mine);
    });
  for (std::thread& t : threads) t.join();
}

}  // namespace grosr::net::tested
