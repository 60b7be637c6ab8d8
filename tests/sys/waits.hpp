// Calls that wait in a reactor, and tell what became of them.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "support/scale.hpp"
#include "sys/reactor.hpp"

namespace grosr::testing {

using namespace std::chrono_literals;
using sys::wake;
using clock = sys::reactor::clock;

/// Waits for a condition, up to 60 s.
template <class Condition>
bool comes_true(Condition c) {
  for (auto end = clock::now() + 60s; clock::now() < end; std::this_thread::sleep_for(100us))
    if (c()) return true;
  return c();
}

/// Two ends that do not block; whatever is still open is closed at the end.
struct pair_of_ends {
  pair_of_ends(const pair_of_ends&) = delete;
  pair_of_ends& operator=(const pair_of_ends&) = delete;
  ~pair_of_ends() {
    for (int e : ends)
      if (e >= 0) ::close(e);
  }
  int operator[](int i) const { return ends[i]; }
  void put(int i, const char* text = "x") {
    EXPECT_GT(::write(ends[i], text, std::string(text).size()), 0);
  }
  void close(int i) { ::close(std::exchange(ends[i], -1)); }

  int ends[2];

 protected:
  pair_of_ends() = default;
};

/// [0] is read from, [1] is written to.
struct pipe_ends : pair_of_ends {
  pipe_ends() { EXPECT_EQ(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0); }
};

struct socket_ends : pair_of_ends {
  explicit socket_ends(int type = SOCK_STREAM) {
    EXPECT_EQ(socketpair(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  }
};

/// Fills what `descriptor` writes to; how many bytes that took.
inline std::size_t fill(int descriptor) {
  std::vector<char> bytes(4096);
  std::size_t all = 0;
  for (ssize_t n; (n = ::write(descriptor, bytes.data(), bytes.size())) > 0;)
    all += static_cast<std::size_t>(n);
  return all;
}

/// A waiting call; `attempt` is made when it is ready.
struct call : sys::waiter {
  explicit call(std::function<bool()> a = [] { return true; })
      : waiter(act), attempt(std::move(a)) {}

  static bool act(waiter& w, wake cause) {
    auto& c = static_cast<call&>(w);
    ++c.tries;
    if (cause == wake::ready && !c.attempt()) return false;
    if (c.order != nullptr) {
      std::lock_guard guard(*c.order_lock);
      c.order->push_back(c.name);
    }
    if (c.last_act) c.last_act(cause);
    c.cause = cause;
    ++c.times;
    return true;
  }

  bool ended() const { return times != 0; }
  bool ends() const {
    return comes_true([this] { return ended(); });
  }

  std::function<bool()> attempt;
  std::function<void(wake)> last_act;
  int name = 0;
  std::vector<int>* order = nullptr;
  std::mutex* order_lock = nullptr;
  std::atomic<int> tries{0}, times{0};
  std::atomic<wake> cause{};
};

/// One that reads a byte.
inline std::function<bool()> reads(int descriptor) {
  return [descriptor] {
    char c;
    return ::read(descriptor, &c, 1) >= 0;
  };
}

}  // namespace grosr::testing
