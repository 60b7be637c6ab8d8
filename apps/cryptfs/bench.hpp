// The parts of `cryptfs bench`.
#pragma once

#include <string>
#include <vector>

#include "grosr/simt/device.hpp"
#include "measure/report.hpp"

namespace grosr::cryptfs {

struct bench_options {
  device where;
  std::size_t request = 0;     ///< bytes at a time, as the file system has them
  std::size_t bytes = 0;       ///< that are encrypted in all: a multiple of that
  std::size_t file_bytes = 0;  ///< written and read
  unsigned repeats = 5;
  std::string directory = {};            ///< where encrypted directories are made
  std::vector<unsigned> competing = {};  ///< how many processes use the device meanwhile
  double kernel_us = 0;                  ///< of theirs
};

/// AES-XTS alone: in device memory, and in host memory.
void bench_ciphers(tool::report& out, const bench_options& o);
/// Sequential writing and reading by way of the file system, beside others.
void bench_files(tool::report& out, const bench_options& o);
/// The same while other processes keep the device busy, a row for each number of them.
void bench_competing(tool::report& out, const bench_options& o);

}  // namespace grosr::cryptfs
