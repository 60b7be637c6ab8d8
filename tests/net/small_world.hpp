// Worlds of few workers on one device.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <exception>
#include <string>
#include <vector>

#include "grosr/net/world.hpp"

namespace grosr::net::tested {

/// `n` ranks on `d`, with a small share of it each.
inline std::vector<rank_options> small_ranks(const device& d, std::uint32_t n) {
  rank_options r{.where = d};
  if (d.is_cuda()) r.runtime.sms = 2;
  r.runtime.blocks_per_sm = 1;
  r.runtime.memory_limit = std::size_t{16} << 20;
  r.runtime.slots = 1024;
  r.runtime.staging_buffers = 64;
  return std::vector<rank_options>(n, r);
}

/// As wait_all(), for a minute at most. Where that throws, or is not enough, it says what each rank
/// was at.
void finish(auto& world) {
  std::string why = "a minute has passed, and something is under way";
  try {
    if (world.wait_all_for(std::chrono::minutes(1))) return;
  } catch (const std::exception& e) {
    why = e.what();
  }
  const std::vector<rank_stats> stats = world.stats();
  for (std::uint32_t r = 0; r < world.size(); ++r) {
    const runtime_stats tasks = world.scheduler_stats(r);
    why += "\n  rank " + std::to_string(r) + ": words sent " + std::to_string(stats[r].words_sent) +
           ", received " + std::to_string(stats[r].words_received) + "; deferred " +
           std::to_string(stats[r].deferred) + "; tasks run " + std::to_string(tasks.tasks) +
           ", spawned " + std::to_string(tasks.spawned);
  }
  ADD_FAILURE() << why;
}

}  // namespace grosr::net::tested
