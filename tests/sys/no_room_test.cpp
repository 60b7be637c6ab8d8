// What the process has no room for, the constructors of GROSR say as their own errors.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>

#include "grosr/run/runtime.hpp"
#include "grosr/sys/server.hpp"
#include "support/errors.hpp"
#include "support/no_threads.hpp"

namespace grosr {
namespace {

struct nothing_to_do {
  GROSR_DEVICE void operator()(auto&) const {}
};

/// While it lives the process opens no further descriptor.
struct no_descriptors {
  no_descriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before);
    const rlimit none{3, before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~no_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before); }
  rlimit before;
};

template <class Limit, class Make>
std::string refusal(Make&& make) {
  device("host:0").properties();  // what is looked up once
  const error e = testing::error_of([&] {
    const Limit now;
    make();
  });
  EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
  return e.what();
}

TEST(no_room, for_a_server_without_descriptors) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "UndefinedBehaviorSanitizer opens a pipe to look at an object's type";
#endif
  const std::string text = refusal<no_descriptors>([] { sys::server s(device("host:0")); });
  EXPECT_NE(text.find("a server of system calls was asked for"), std::string::npos) << text;
  EXPECT_NE(text.find("ulimit -n"), std::string::npos) << text;
}

TEST(no_room, for_a_server_without_threads) {
  refusal<testing::no_threads>([] { sys::server s(device("host:0")); });
}

TEST(no_room, for_a_runtime_without_threads) {
  const std::string text = refusal<testing::no_threads>(
      [] { runtime<nothing_to_do> r(device("host:0"), {.memory_limit = std::size_t{16} << 20}); });
  EXPECT_NE(text.find("a runtime on host:0 was asked for"), std::string::npos) << text;
  EXPECT_NE(text.find("ulimit -u"), std::string::npos) << text;
}

}  // namespace
}  // namespace grosr
