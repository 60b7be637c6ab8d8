// Worlds of several processes, which are threads here: all that holds within a process holds
// between them, and what they do differently is refused in each. tests/net/mpi/ has the same by
// MPI.
#include "net/in_memory.hpp"
#include "net/processes.hpp"
#include "support/devices.hpp"

namespace grosr::net {
namespace {

using namespace tested;

GROSR_DEVICE_SUITE(processes);

TEST_P(processes, get_every_addition_once) {
  in_processes(1, [&](transport& t) { add_between_processes(t, where(), two_each); });
  in_processes(2, [&](transport& t) { add_between_processes(t, where(), one_each); });
  in_processes(3, [&](transport& t) { add_between_processes(t, where(), one_or_three); });
}

TEST_P(processes, read_elements_of_each_other) {
  in_processes(3, [&](transport& t) { read_between_processes(t, where()); });
}

TEST_P(processes, bring_results_and_errors_back) {
  in_processes(2, [&](transport& t) { call_between_processes(t, where()); });
}

TEST_P(processes, lose_nothing_when_links_are_full) {
  in_processes(3, [&](transport& t) { fill_links_between_processes(t, where()); });
}

TEST_P(processes, end_in_time_whatever_is_under_way) {
  in_processes(3, [&](transport& t) { stop_between_processes(t, where()); });
}

TEST_P(processes, refuse_what_they_do_differently) {
  in_processes(2, [&](transport& t) { refuse_between_processes(t, where()); });
  in_processes(2, [&](transport& t) { refuse_other_types(t, where()); });
}

TEST_P(processes, are_named_when_they_do_not_come) {
  in_processes(3, [&](transport& t) { name_who_does_not_come(t, where()); });
}

// The answer never comes: the wait ends all the same.
TEST_P(processes, say_that_they_cannot_be_reached) {
  std::atomic<int> ready{0};
  in_processes(2, [&](memory_transport& t) {
    processes_world w(small_ranks(where(), 1), options_with(t));
    array<std::uint64_t> good(w, 1);
    ++ready;
    if (t.process() == 0) {
      while (ready != 2) std::this_thread::yield();
      t.cut();
      w.submit(0, asks{0, 1, good.ref()});
    }
    expect_error(errc::stopped, {"nobody can be reached"}, [&] { w.wait_all(); });
  });
}

}  // namespace
}  // namespace grosr::net
