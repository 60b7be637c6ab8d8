// Clients: threads, each with some connections, that set and get values and check what they get.
#pragma once

#include <netinet/in.h>

#include <cstdint>

#include "measure/samples.hpp"

namespace grosr::store {

struct drive_options {
  sockaddr_in server{};
  std::uint32_t bytes = 100;   ///< of a value
  std::uint32_t keys = 10000;  ///< set once before anything is counted
  unsigned clients = 4;        ///< threads
  unsigned connections = 8;    ///< of each
  unsigned pipeline = 1;       ///< requests that a connection has under way
  unsigned set_percent = 10;   ///< the rest are gets
  double seconds = 1;
};

struct driven {
  double seconds = 0;
  std::uint64_t answered = 0;  ///< in these seconds
  std::uint64_t misses = 0;    ///< since the start: gets of keys that are not there
  double client_cpu_s = 0;
  double others_cpu_s = 0;   ///< of the rest of this process
  tool::samples round_trip;  ///< of a pipeline's worth of requests
};

/// Every byte of every answer is checked. Throws std::runtime_error where one is wrong, or the
/// server goes.
driven drive(const drive_options& o);

}  // namespace grosr::store
