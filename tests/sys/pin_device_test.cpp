// Threads of a server run where the process may, and its own threads where they did.
#include <dirent.h>
#include <sched.h>

#include <cstdlib>
#include <thread>

#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(pin);

cpu_set_t may_run_on(int thread) {
  cpu_set_t s;
  CPU_ZERO(&s);
  EXPECT_EQ(sched_getaffinity(thread, sizeof s, &s), 0);
  return s;
}

std::vector<int> threads_named(const std::string& begin) {
  std::vector<int> all;
  DIR* tasks = ::opendir("/proc/self/task");
  while (const dirent* t = ::readdir(tasks)) {
    std::string name;
    std::getline(std::ifstream("/proc/self/task/" + std::string(t->d_name) + "/comm"), name);
    if (name.rfind(begin, 0) == 0) all.push_back(std::atoi(t->d_name));
  }
  ::closedir(tasks);
  return all;
}

TEST_P(pin, never_leaves_what_the_process_may_use) {
  const cpu_set_t before = may_run_on(0);
  cpu_set_t first;  // one of them
  CPU_ZERO(&first);
  for (int p = 0; CPU_COUNT(&first) == 0; ++p)
    if (CPU_ISSET(p, &before)) CPU_SET(p, &first);
  for (const cpu_set_t& may : {before, first})
    for (bool pinned : {true, false}) {
      std::thread([&] {  // the server's threads begin with what this one may use
        ASSERT_EQ(sched_setaffinity(0, sizeof may, &may), 0);
        own_folder f;
        options o = options_for(f);
        o.pin = pinned;
        server s(where(), o);
        std::vector<int> threads;  // they take their names when they begin
        for (int i = 0; i < 10000 && threads.size() < o.threads; ++i) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          threads = threads_named("grosr sys");
        }
        EXPECT_EQ(threads.size(), o.threads);
        for (int t : threads) {
          const cpu_set_t its = may_run_on(t);
          cpu_set_t both;
          CPU_AND(&both, &its, &may);
          EXPECT_TRUE(CPU_EQUAL(&both, &its));
          EXPECT_GE(CPU_COUNT(&its), 1);
          const bool same = CPU_EQUAL(&its, &may);
          EXPECT_TRUE(pinned || same);
        }
        const cpu_set_t now = may_run_on(0);
        EXPECT_TRUE(CPU_EQUAL(&now, &may));
      })
          .join();
    }
  const cpu_set_t after = may_run_on(0);
  EXPECT_TRUE(CPU_EQUAL(&after, &before));
}

}  // namespace
}  // namespace grosr::sys
