// What other processes do in tests of shared ports: tested::peer starts this program once more.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "flow/port_peers.hpp"

namespace grosr::flow {
namespace {

using namespace tested;

void push_and_pull(const remote_port_options& o) {
  const remote_source<word> from("in", o);
  const remote_sink<word> to("out", o);
  unsigned right = 0;
  constexpr word blocks = 200;
  for (word i = 0; i < blocks; ++i) {
    from.push(numbers(i, from.shape().count()));
    const auto r = to.pull();
    bool all = true;
    for (word k = 0; k < r.size(); ++k) all = all && r[k] == 2 * (i + k);
    right += all;
  }
  peer::say(std::to_string(right) + " of " + std::to_string(blocks));
}

void hold_slots(const remote_port_options& o) {
  const remote_source<word> from("in", o);
  const remote_sink<word> to("out", o);
  const auto a = from.write(), b = from.write();
  from.push(std::vector<word>(from.shape().count(), 1));
  const auto r = to.pull();
  from.push(std::vector<word>(from.shape().count(), 2));
  peer::say("holds");
  pause();
}

void push_for_ever(const remote_port_options& o) {
  const remote_source<word> from("in", o);
  for (word i = 0;; ++i) {
    from.push(std::vector<word>(from.shape().count(), i));
    if (i == 3) peer::say("pushes");
  }
}

void pull_for_ever(const remote_port_options& o) {
  const remote_sink<word> to("out", o);
  std::vector<remote_read<word>> held(2);
  for (word i = 0;; ++i) {
    held[i % 2] = to.pull();
    if (i == 3) peer::say("pulls");
  }
}

// Of a port of user 0, by a user that it lets in and then by one that it does not.
void be_others(remote_port_options o) {
  if (setegid(65534) != 0 || seteuid(65534) != 0) std::abort();
  const error e = testing::error_of([&] { remote_source<word>("in", o); });
  peer::say(e.what());
  o.users = {0};
  remote_source<word>("in", o).push(numbers(4, 1));
  if (seteuid(0) != 0 || seteuid(65533) != 0) std::abort();
  peer::say(testing::error_of([&] { remote_source<word>("in", o); }).what());
  // Linux lets nobody look into a process that has changed its user, which leak checkers do.
  if (seteuid(0) != 0 || setegid(0) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0) std::abort();
}

void serve(const remote_port_options& o) {
  const auto one = block_template::of<word>(1);
  doubler full(one), empty(one);
  const shared_port in(full.from, "in", {.folder = o.folder});
  const shared_port out(empty.to, "out", {.folder = o.folder});
  peer::say("serves");
  pause();
}

TEST(shared_port_peer, plays_its_part) {
  peer::play({{"double", push_and_pull},
              {"hold", hold_slots},
              {"push", push_for_ever},
              {"pull", pull_for_ever},
              {"others", be_others},
              {"serve", serve}});
}

}  // namespace
}  // namespace grosr::flow
