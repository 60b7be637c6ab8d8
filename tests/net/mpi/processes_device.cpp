// Worlds of several processes by MPI: tests/CMakeLists.txt has it run by mpirun, and without.
#include "grosr/net/mpi.hpp"
#include "net/processes.hpp"

namespace grosr::net {
namespace {

using namespace tested;

const device host("host:0");

TEST(processes_by_mpi, get_every_addition_once) {
  for (const ranks_of ranks : {one_each, one_or_three}) add_between_processes(mpi(), host, ranks);
}

TEST(processes_by_mpi, read_elements_of_each_other) { read_between_processes(mpi(), host); }

TEST(processes_by_mpi, bring_results_and_errors_back) { call_between_processes(mpi(), host); }

TEST(processes_by_mpi, lose_nothing_when_links_are_full) {
  fill_links_between_processes(mpi(), host);
}

TEST(processes_by_mpi, have_several_worlds_at_a_time) {
  processes_world a(small_ranks(host, 1), options_with(mpi())),
      b(small_ranks(host, 1), options_with(mpi()));
  array<std::uint64_t> in_a(a, a.size()), in_b(b, b.size());
  a.submit(a.first_rank(), spread{in_a.ref(), 1});
  b.submit(b.first_rank(), spread{in_b.ref(), 0});
  a.wait_all();
  b.wait_all();
  std::uint64_t sum = 0;
  for (const std::uint64_t n : all_of(in_a)) sum += n;
  EXPECT_EQ(sum, 4 * a.size());
  EXPECT_EQ(all_of(in_b), std::vector<std::uint64_t>(b.size(), 1));
}

TEST(processes_by_mpi, end_in_time_whatever_is_under_way) { stop_between_processes(mpi(), host); }

TEST(processes_by_mpi, refuse_what_they_do_differently) {
  refuse_between_processes(mpi(), host);
  if (mpi().processes() > 1) refuse_other_types(mpi(), host);
}

TEST(processes_by_mpi, are_named_when_they_do_not_come) {
  if (mpi().processes() > 1) name_who_does_not_come(mpi(), host);
}

}  // namespace
}  // namespace grosr::net
