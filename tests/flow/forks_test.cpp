// A forked child has copies of executors, graphs and ports without their threads: their ends do
// nothing there, in time, and the parent's go on.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "flow/functions.hpp"
#include "grosr/flow/remote_port.hpp"
#include "grosr/flow/shared_port.hpp"

namespace grosr::flow {
namespace {

using namespace tested;

/// A graph of one node.
struct served {
  explicit served(unsigned threads)
      : work({.threads = threads}),
        g(work),
        add(g.host("add", [](in<word> a, out<word> b) { b[0] = a[0] + 1; },
                   {{"a", one()}, {"b", one()}})),
        to(g.source<word>(add["a"])),
        from(g.sink<word>(add["b"])) {
    g.compile();
  }
  static block_template one() { return block_template::of<word>(1); }
  executor work;
  graph g;
  node add;
  source<word> to;
  sink<word> from;
};

[[noreturn]] void fork_and_end(unsigned threads, bool shares) {
  auto all = std::make_unique<served>(threads);
  const std::string name = "grosr.forks." + std::to_string(::getpid());
  std::unique_ptr<shared_port> port;
  if (shares) port = std::make_unique<shared_port>(all->to, name);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    port.reset();
    all.reset();
    std::_Exit(3);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFEXITED(status)) std::_Exit(1);
  // The parent's are as they were.
  if (shares) {
    const remote_source<word> there(name);
    auto block = there.write();
    block[0] = 41;
    block.push();
  } else {
    all->to.push(std::vector<word>{41});
    while (threads == 0 && all->work.step()) {
    }
  }
  if (all->from.pull_elements()[0] != 42) std::_Exit(2);
  port.reset();
  all.reset();
  std::_Exit(WEXITSTATUS(status));
}

TEST(forks, leave_what_the_parent_has_alone) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers do not outlive a fork";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(fork_and_end(2, true), ::testing::ExitedWithCode(3), "");
  EXPECT_EXIT(fork_and_end(2, false), ::testing::ExitedWithCode(3), "");
  EXPECT_EXIT(fork_and_end(0, false), ::testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace grosr::flow
