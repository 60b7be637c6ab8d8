// The other ends of what kernels connect to and listen for: they answer, close, reset and keep
// silent at random.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace grosr::tool {

class fuzz_peers {
 public:
  explicit fuzz_peers(std::uint64_t seed);
  ~fuzz_peers();
  fuzz_peers(const fuzz_peers&) = delete;

  std::uint16_t tcp_port() const { return tcp_port_; }
  std::uint16_t udp_port() const { return udp_port_; }

 private:
  void run(std::uint64_t seed);
  int tcp_ = -1, udp_ = -1;
  std::uint16_t tcp_port_ = 0, udp_port_ = 0;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace grosr::tool
