// A fault of a task on the host names the task before the program ends by it, and breaks no handler
// of the program's own.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "grosr/run/runtime.hpp"

namespace grosr::testing {
namespace {

/// An address that no sanitizer knows before the processor does.
volatile std::uintptr_t nowhere = 0x10;
std::uint32_t* behind_null() { return reinterpret_cast<std::uint32_t*>(nowhere); }

struct null_writer {
  volatile std::uint32_t* at;
  void operator()(auto&) const { *at = 1; }
};
struct null_result {
  using result = std::uint32_t;
  volatile std::uint32_t* at;
  void operator()(auto& context) const {
    const std::uint32_t value = *at;
    context.give(value);
  }
};
struct deep {
  std::uint32_t depth;
  std::uint32_t down(std::uint32_t n) const {
    volatile char some[4096] = {};
    some[n % sizeof some] = static_cast<char>(n);
    return n == 0 ? 0 : down(n - 1) + static_cast<std::uint32_t>(some[n % sizeof some]);
  }
  void operator()(auto&) const {
    volatile std::uint32_t kept = down(depth);
    (void)kept;
  }
};

bool ended_by_the_fault(int status) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return status != 0;  // which the sanitizer's own handler ends by
#else
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
#endif
}

class fault : public ::testing::Test {
 protected:
  fault() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

template <class Task>
void run(Task task) {
  runtime<Task> rt(device("host:0"));
  rt.submit(task).wait();
}

TEST_F(fault, names_the_task_and_the_address) {
  EXPECT_EXIT(run(null_writer{behind_null()}), ended_by_the_fault,
              "grosr: a task of type grosr::testing::null_writer on the host backend met an "
              "illegal address: 0x10 .block [0-9]+, warp [0-9]+, lane 0.");
  EXPECT_EXIT(run(null_result{behind_null()}), ended_by_the_fault,
              "a task of type grosr::testing::null_result on the host backend");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(fault, of_a_full_stack_is_told_too) {
  EXPECT_EXIT(run(deep{1000}), ended_by_the_fault,
              "a task of type grosr::testing::deep .*its stack is full: GROSR_HOST_STACK");
}

TEST_F(fault, comes_to_the_handler_of_the_program) {
  EXPECT_EXIT(
      {
        struct sigaction own {};
        own.sa_handler = [](int) {
          const char text[] = "the program's own\n";
          const ssize_t n = ::write(STDERR_FILENO, text, sizeof text - 1);
          (void)n;
          ::_exit(7);
        };
        ::sigaction(SIGSEGV, &own, nullptr);
        run(null_writer{behind_null()});
      },
      ::testing::ExitedWithCode(7), "null_writer.*\n.*the program's own");
}
#endif

TEST_F(fault, is_left_to_others_without_a_runtime) {
  struct sigaction before {
  }, during{}, after{};
  ::sigaction(SIGSEGV, nullptr, &before);
  {
    runtime<deep> first(device("host:0"));
    {
      runtime<deep> second(device("host:0"));
      ::sigaction(SIGSEGV, nullptr, &during);
    }
    EXPECT_NE(std::memcmp(&before.sa_handler, &during.sa_handler, sizeof before.sa_handler), 0);
  }
  ::sigaction(SIGSEGV, nullptr, &after);
  EXPECT_EQ(std::memcmp(&before.sa_handler, &after.sa_handler, sizeof before.sa_handler), 0);
  // One that came over GROSR's stays.
  {
    runtime<deep> rt(device("host:0"));
    struct sigaction own {};
    own.sa_handler = SIG_IGN;
    ::sigaction(SIGSEGV, &own, nullptr);
  }
  ::sigaction(SIGSEGV, nullptr, &after);
  EXPECT_EQ(after.sa_handler, SIG_IGN);
  ::sigaction(SIGSEGV, &before, nullptr);
}

// A fault outside of kernels is none of GROSR's.
TEST_F(fault, of_the_program_says_nothing_of_grosr) {
  EXPECT_EXIT(
      {
        runtime<deep> rt(device("host:0"));
        rt.submit(deep{1}).wait();
        null_writer{behind_null()}(rt);
      },
      [](int status) { return ended_by_the_fault(status); }, "^[^g]*$|^$|Sanitizer");
}

}  // namespace
}  // namespace grosr::testing

namespace _GLOBAL__N__5d9cd1b1_9_x_cpp_abcdef {  // as nvcc spells an unnamed namespace
struct named {};
}  // namespace _GLOBAL__N__5d9cd1b1_9_x_cpp_abcdef
namespace grosr::testing {
namespace {
struct shown {};
template <class T>
struct holds {};
struct served {
  using shown_as = shown;
};
TEST(task_name, is_without_unnamed_namespaces) {
  EXPECT_STREQ(run::task_name<shown>::text(), "grosr::testing::shown");
  EXPECT_STREQ(run::task_name<_GLOBAL__N__5d9cd1b1_9_x_cpp_abcdef::named>::text(), "named");
  EXPECT_STREQ(run::task_name<holds<shown>>::text(),
               "grosr::testing::holds<grosr::testing::shown>");
  EXPECT_STREQ(run::task_name<served>::text(), "grosr::testing::shown");
}
}  // namespace
}  // namespace grosr::testing
