// What other processes do in tests of ports with slots on a device: tested::peer starts this
// program once more.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "flow/ports_in_device_memory.hpp"
#include "support/scale.hpp"

namespace grosr::flow {
namespace {

using namespace tested;

void push_and_pull(const remote_port_options& o) {
  const remote_source_on_device<word> from("in", o);
  const remote_sink_on_device<word> to("out", o);
  simt::stream stream(from.where());
  unsigned right = 0;
  const word blocks = grosr::testing::scaled(100);
  for (word i = 0; i < blocks; ++i) {
    push_numbers(from, stream, i, from.shape().count());
    auto r = to.pull();
    right += holds(to, r, i * 3, 3);
    r.release(stream);
  }
  peer::say(std::to_string(right) + " of " + std::to_string(blocks));
}

void hold_slots(const remote_port_options& o) {
  const remote_source_on_device<word> from("in", o);
  const remote_sink_on_device<word> to("out", o);
  simt::stream stream(from.where());
  const std::size_t n = from.shape().count();
  const auto a = from.write(), b = from.write();
  push_numbers(from, stream, 1, n);
  const auto r = to.pull();
  push_numbers(from, stream, 2, n);
  peer::say("holds");
  pause();
}

void push_for_ever(const remote_port_options& o) {
  const remote_source_on_device<word> from("in", o);
  simt::stream stream(from.where());
  for (word i = 0;; ++i) {
    push_numbers(from, stream, 1000 * i, from.shape().count());
    if (i == 3) peer::say("pushes");
  }
}

void pull_for_ever(const remote_port_options& o) {
  const remote_sink_on_device<word> to("out", o);
  std::vector<remote_device_read<word>> held(2);
  for (word i = 0;; ++i) {
    held[i % 2] = to.pull();
    if (i == 3) peer::say("pulls");
  }
}

void pull_one(const remote_port_options& o) {
  const remote_sink_on_device<word> to("out", o);
  peer::say("pulls");
  to.pull();
  pause();
}

// Tells what it is told where it has not the device of the port.
void be_without(const remote_port_options& o) {
  peer::say(testing::error_of([&] { remote_source_on_device<word>("in", o); }).what());
}

TEST(shared_port_peer, plays_its_part) {
  peer::play({{"double", push_and_pull},
              {"hold", hold_slots},
              {"push", push_for_ever},
              {"pull", pull_for_ever},
              {"pull one", pull_one},
              {"without", be_without}});
}

}  // namespace
}  // namespace grosr::flow
