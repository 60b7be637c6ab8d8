// What the three ways of counting have in common: what they are given, and what they say.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "automaton.hpp"
#include "files/file_list.hpp"
#include "grosr/simt/device.hpp"

namespace grosr::wordcount {

struct question {
  std::vector<std::string> words;
  tool::file_list list;
};

struct answer {
  std::array<std::uint64_t, most_words> counts{};
  std::uint64_t bytes = 0;
  std::vector<tool::unreadable> failures;  ///< in the order of the list
  double us = 0, cpu_s = 0;                ///< from the list to the counts
};

/// A way to count: made once, with what it needs for it; count() may be called again.
class counter {
 public:
  virtual ~counter() = default;
  virtual answer count() = 0;
  virtual std::string name() const = 0;
};

/// Lanes open, read and count. 0 threads: as many service threads as suit the machine.
std::unique_ptr<counter> count_on_device(const question& q, const device& d, unsigned threads);

/// The same automaton, `threads` OpenMP threads. Throws tool::usage_error when built without.
std::unique_ptr<counter> count_by_openmp(const question& q, unsigned threads);

/// Vectorscan or Hyperscan on so many threads. Throws tool::usage_error when built without.
std::unique_ptr<counter> count_by_vectorscan(const question& q, unsigned threads);

bool has_openmp();
bool has_vectorscan();

}  // namespace grosr::wordcount
