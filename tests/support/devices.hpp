// Suites that run on every backend: a fixture whose parameter is a device's name.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "grosr/simt/buffer.hpp"
#include "grosr/simt/device.hpp"
#include "grosr/simt/launch.hpp"

namespace grosr::testing {

/// A test here runs on host:0, and on cuda:0 where there is one: skipped there, not absent.
class device_test : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    for (const device& d : device::list()) {
      if (d.name() == GetParam()) {
        where_ = d;
        return;
      }
    }
    GTEST_SKIP() << "no " << GetParam() << ": " << device::cuda_status();
  }

  device where() const { return where_; }

  /// Runs `kernel` and waits.
  template <class Kernel>
  void run(unsigned blocks, unsigned threads, const Kernel& kernel) {
    simt::run(where_, {blocks, threads}, kernel);
  }

  template <class T>
  simt::buffer<T> make(std::size_t count, simt::space s = simt::space::device) {
    return simt::buffer<T>(where_, s, count);
  }

  template <class T>
  static std::vector<T> contents(const simt::buffer<T>& b) {
    std::vector<T> all(b.size());
    b.copy_to(all);
    return all;
  }

 private:
  device where_;
};

inline std::string device_test_name(const ::testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  return name.substr(0, name.find(':'));
}

}  // namespace grosr::testing

/// Declares `suite` as a device_test and instantiates it for each backend.
#define GROSR_DEVICE_SUITE(suite)                                            \
  class suite : public ::grosr::testing::device_test {};                     \
  INSTANTIATE_TEST_SUITE_P(on, suite, ::testing::Values("host:0", "cuda:0"), \
                           ::grosr::testing::device_test_name)
