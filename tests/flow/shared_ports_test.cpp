// Ports with names: what other processes push comes into the graph, and what they pull is taken out
// of it, whole, in order and once; who waits, and who is let in.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "flow/port_peers.hpp"

namespace grosr::flow {
namespace {

using namespace tested;
using namespace std::chrono_literals;

constexpr std::size_t n = 1000;
const block_template array() { return block_template::of<word>(n); }
const block_template one() { return block_template::of<word>(1); }

class shared_ports : public ::testing::Test {
 protected:
  shared_port_options here(unsigned slots = 4) const {
    return {.slots = slots, .folder = folder_.path()};
  }
  remote_port_options there() const { return {.connect_within = 60s, .folder = folder_.path()}; }
  remote_port_options now() const { return {.connect_within = 1ms, .folder = folder_.path()}; }

  const own_folder folder_;
};

TEST_F(shared_ports, carry_blocks_of_another_process) {
  doubler d(array());
  const shared_port in(d.from, "in", here()), out(d.to, "out", here(1));
  peer p("double", folder_.path());
  EXPECT_EQ(p.hear(), "200 of 200");
  EXPECT_EQ(p.wait(), 0);
  EXPECT_EQ(d.g.nodes()[0].runs, 200u);
  EXPECT_EQ(in.stats().blocks, 200u);
  EXPECT_EQ(out.stats().blocks, 200u);
  EXPECT_EQ(in.why_ended(), "");
}

TEST_F(shared_ports, are_beside_what_the_program_pushes_and_pulls) {
  doubler d(one());
  const shared_port in(d.from, "in", here()), out(d.to, "out", here());
  const remote_source<word> from("in", there());
  const remote_sink<word> to("out", there());
  from.push(numbers(4, 1));
  EXPECT_EQ(d.to.pull_elements()[0], 8u);
  d.from.push(numbers(5, 1));
  EXPECT_EQ(to.pull()[0], 10u);
  EXPECT_EQ(from.shape(), one());
  EXPECT_EQ(from.name(), "in");
}

TEST_F(shared_ports, let_blocks_be_written_and_read_in_place) {
  doubler d(block_template::variable<word>(n));
  const shared_port in(d.from, "in", here(1)), out(d.to, "out", here());
  const remote_source<word> from("in", there());
  const remote_sink<word> to("out", there());
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, n / 2, n}) {
    remote_write<word> w = from.write();
    ASSERT_TRUE(w);
    EXPECT_FALSE(from.try_write());  // there is one slot
    EXPECT_FALSE(from.write_for(1ms));
    ASSERT_EQ(w.size(), n);
    for (word i = 0; i < n; ++i) w[i] = i;
    EXPECT_EQ(testing::error_of([&] { w.push(n + 1); }).code(), errc::invalid_option);
    w.push(count);
    EXPECT_FALSE(w);
    EXPECT_EQ(testing::error_of([&] { w.push(); }).code(), errc::misuse);
    const auto r = to.pull();
    ASSERT_EQ(r.size(), count);
    for (word i = 0; i < count; ++i) ASSERT_EQ(r[i], 2 * i);
  }
  from.write();  // without push(): the slot is free again
  from.push(numbers(1, 3));
  EXPECT_EQ(to.pull().size(), 3u);
}

TEST_F(shared_ports, keep_a_block_that_is_held_after_all_else) {
  remote_read<word> held;
  {
    doubler d(array());
    const shared_port out(d.to, "out", here());
    const remote_sink<word> to("out", there());
    d.from.push(numbers(0, n));
    held = to.pull();
  }
  for (word i = 0; i < n; ++i) ASSERT_EQ(held[i], 2 * i);
}

// Of one block in the function, one at its input, one in the channel and two in slots.
TEST_F(shared_ports, hold_back_who_pushes_into_what_is_full) {
  executor e(on(device(), 1));
  graph g(e);
  std::atomic<bool> open{false};
  const node slow = g.host("slow",
                           [&](in<word> a, out<word> b) {
                             open.wait(false);
                             b[0] = a[0];
                           },
                           {{"a", one()}, {"b", one()}});
  const auto from = g.source<word>(slow["a"]);
  const auto to = g.sink<word>(slow["b"], {.capacity = 10});
  g.compile();
  const shared_port in(from, "in", here(2));
  const remote_source<word> c("in", there());
  for (word i = 0; i < 5; ++i) c.push(numbers(i, 1));
  EXPECT_FALSE(c.try_push(numbers(9, 1)));
  EXPECT_FALSE(c.push_for(numbers(9, 1), 5ms));
  std::thread late([&] { c.push(numbers(5, 1)); });
  open = true;
  open.notify_all();
  late.join();
  for (word i = 0; i < 6; ++i) EXPECT_EQ(to.pull_elements()[0], i);
  while (!c.try_push(numbers(6, 1))) std::this_thread::yield();
  EXPECT_EQ(to.pull_elements()[0], 6u);
}

TEST_F(shared_ports, say_when_there_is_nothing_to_pull) {
  doubler d(one());
  const shared_port out(d.to, "out", here());
  const remote_sink<word> to("out", there());
  EXPECT_FALSE(to.try_pull());
  EXPECT_FALSE(to.pull_for(2ms));
  d.from.push(numbers(3, 1));
  d.g.wait();
  const auto r = to.try_pull();
  ASSERT_TRUE(r);
  EXPECT_EQ(r[0], 6u);
}

TEST_F(shared_ports, lose_nothing_where_a_client_releases_nothing) {
  doubler d(one(), 4);
  const shared_port out(d.to, "out", here(2));
  const remote_sink<word> holder("out", there()), other("out", there());
  for (word i = 0; i < 4; ++i) d.from.push(numbers(i, 1));
  d.g.wait();
  std::optional<remote_read<word>> first = holder.pull();
  const auto second = holder.pull();
  EXPECT_FALSE(holder.try_pull());
  EXPECT_FALSE(holder.pull_for(2ms));
  EXPECT_EQ(other.pull()[0], 4u);
  std::thread waits([&] { EXPECT_EQ(holder.pull()[0], 6u); });
  first.reset();
  waits.join();
  EXPECT_EQ(second[0], 2u);
}

TEST_F(shared_ports, serve_clients_and_threads_at_once) {
  constexpr word clients = 3, threads = 2, each = 40;
  doubler d(array(), 2);
  const shared_port in(d.from, "in", here(2)), out(d.to, "out", here(1));
  std::vector<std::thread> all;
  std::vector<std::atomic<unsigned>> came(clients * threads);
  std::atomic<word> pulled{0};
  for (word c = 0; c < clients; ++c) {
    const auto from = std::make_shared<remote_source<word>>("in", there());
    const auto to = std::make_shared<remote_sink<word>>("out", there());
    for (word t = 0; t < threads; ++t) {
      all.emplace_back([=] {
        for (word i = 0; i < each; ++i) from->push(std::vector<word>(n, c * threads + t));
      });
      all.emplace_back([&, to] {
        while (pulled < clients * threads * each) {
          const auto r = to->pull_for(1ms);
          if (!r) continue;
          ++pulled;
          EXPECT_EQ(std::count(r.begin(), r.end(), r[0]), static_cast<std::ptrdiff_t>(n));
          ++came.at(r[0] / 2);
        }
      });
    }
  }
  for (std::thread& t : all) t.join();
  for (const auto& c : came) EXPECT_EQ(c, each);
}

// ---- who may have a name, and who may connect ----

TEST_F(shared_ports, refuse_what_cannot_be) {
  doubler d(one());
  const auto share = [&](const std::string& name, const shared_port_options& o) {
    return [&, name, o] { shared_port(d.from, name, o); };
  };
  expect_error(share("a", here(0)), "0 slots were asked for; ask for 1 to 64");
  expect_error(share("a", here(65)), "65 slots");
  expect_error(share("a", {.clients = 0, .folder = folder_.path()}), "allow at least 1");
  const std::vector<std::string> no_names = {"", ".a", "a/b", "a b", std::string(65, 'a')};
  for (const std::string& name : no_names)
    expect_error(share(name, here()), "names have 1 to 64 letters");
  expect_error(share(std::string(64, 'a'), {.folder = folder_.path() + "/" + std::string(60, 'b')}),
               "make it, or name another one");
  expect_error(share("a", {.folder = "/proc/self/exe"}), "is no folder");
  ASSERT_EQ(chmod(folder_.path().c_str(), 0722), 0);
  expect_error(share("a", here()), "has mode 722, and other users could put ports there");
  expect_error([&] { remote_source<word>("a", now()); }, "has mode 722");
  ASSERT_EQ(chmod(folder_.path().c_str(), 0700), 0);

  executor idle(on(device(), 0));
  graph g(idle, {.name = "idle"});
  const auto from = g.source<word>(g.host("f", [](in<word>) {}, {{"a", one()}})["a"]);
  expect_error([&] { shared_port(from, "a", here()); }, "executor of graph 'idle' has no threads");
  executor e(on(device(), 1));
  graph h(e);
  const auto early = h.source<word>(h.host("f", [](in<word>) {}, {{"a", one()}})["a"]);
  expect_error([&] { shared_port(early, "a", here()); }, "is not compiled yet");
}

TEST_F(shared_ports, make_a_folder_that_no_other_user_reaches) {
  const char* const set = std::getenv("XDG_RUNTIME_DIR");
  const std::string before = set != nullptr ? set : "";
  setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);
  doubler d(one());
  {
    const shared_port in(d.from, "in");
    struct ::stat is = {};
    ASSERT_EQ(stat((folder_.path() + "/grosr").c_str(), &is), 0);
    EXPECT_EQ(is.st_mode & 0777, 0700u);
    const remote_source<word> from("in");
    from.push(numbers(1, 1));
    EXPECT_EQ(d.to.pull_elements()[0], 2u);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path() + "/grosr"));
  ASSERT_EQ(chmod((folder_.path() + "/grosr").c_str(), 0750), 0);
  expect_error([&] { shared_port(d.from, "in"); }, "take these rights away (chmod 700)");
  if (set != nullptr)
    setenv("XDG_RUNTIME_DIR", before.c_str(), 1);
  else
    unsetenv("XDG_RUNTIME_DIR");
}

TEST_F(shared_ports, give_a_name_to_one_process_at_a_time) {
  doubler d(one());
  {
    peer p("serve", folder_.path());
    ASSERT_EQ(p.hear(), "serves");
    expect_error([&] { shared_port(d.from, "in", here()); },
                 "process " + std::to_string(p.pid()) + " serves that name");
    const remote_source<word> from("in", there());  // it is served still
    p.kill();
  }
  const shared_port in(d.from, "in", here());  // though the dead process left its socket
  expect_error([&] { shared_port(d.from, "in", here()); },
               "process " + std::to_string(getpid()) + " serves that name");
  const remote_source<word> from("in", there());
  from.push(numbers(1, 1));
  EXPECT_EQ(d.to.pull_elements()[0], 2u);
}

TEST_F(shared_ports, are_waited_for) {
  const error e = testing::error_of([&] { remote_source<word>("in", now()); });
  EXPECT_EQ(e.code(), errc::timed_out);
  EXPECT_EQ(std::string(e.what()), "connect to port 'in': after 1 ms nobody serves that name in " +
                                       folder_.path() +
                                       "; start the program that does, or look at the name");
  doubler d(one());
  std::thread early([&] { remote_source<word>("in", there()).push(numbers(7, 1)); });
  const shared_port in(d.from, "in", here());
  early.join();
  EXPECT_EQ(d.to.pull_elements()[0], 14u);
}

TEST_F(shared_ports, let_in_whom_they_were_told_to) {
  doubler d(one());
  const std::vector<std::uint32_t> nobody, another = {geteuid() + 1}, self = {geteuid()};
  for (const auto& users : {nobody, another}) {
    shared_port_options o = here();
    o.users = users;
    const shared_port in(d.from, "in", o);
    const error e = testing::error_of([&] { remote_source<word>("in", there()); });
    EXPECT_EQ(e.code(), errc::misuse);
    expect_error([&] { remote_source<word>("in", there()); },
                 "refuses: user " + std::to_string(geteuid()) + " may not connect");
    EXPECT_EQ(in.stats().refused, 2u);
    EXPECT_EQ(in.stats().connects, 0u);
  }
  shared_port_options o = here();
  o.users = self;
  const shared_port in(d.from, "in", o);
  remote_source<word>("in", there()).push(numbers(1, 1));
  EXPECT_EQ(d.to.pull_elements()[0], 2u);
  remote_port_options distrusts = there();
  distrusts.users = another;
  expect_error([&] { remote_source<word>("in", distrusts); }, "who is not trusted");
}

TEST_F(shared_ports, let_in_other_users_in_a_folder_that_these_reach) {
  if (geteuid() != 0) GTEST_SKIP() << "only user 0 can become others";
  ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
  doubler d(one());
  shared_port_options o = here();
  o.users = {65534};
  const shared_port in(d.from, "in", o);
  peer p("others", folder_.path());
  EXPECT_EQ(p.hear(), "ports: folder " + folder_.path() +
                          " belongs to user 0, who is not trusted; name another one, or that user");
  const datablock got = d.to.pull_for(std::chrono::seconds(120));
  ASSERT_TRUE(got) << "the other process pushed nothing";
  EXPECT_EQ(got.read<word>()[0], 8u);
  EXPECT_NE(p.hear().find("refuses: user 65533 may not connect"), std::string::npos);
  EXPECT_EQ(p.wait(), 0);
}

TEST_F(shared_ports, let_in_as_many_as_they_were_told_to) {
  doubler d(one());
  shared_port_options o = here();
  o.clients = 1;
  const shared_port in(d.from, "in", o);
  {
    const remote_source<word> first("in", there());
    expect_error([&] { remote_source<word>("in", there()); },
                 "1 clients are connected, and it serves no more at a time");
  }
  yield_until([&] { return in.stats().clients == 0; });
  remote_source<word>("in", there()).push(numbers(1, 1));
  EXPECT_EQ(d.to.pull_elements()[0], 2u);
}

struct pixel {
  std::uint8_t r, g, b;
};

TEST_F(shared_ports, have_a_template_that_both_sides_share) {
  doubler d(array());
  const shared_port in(d.from, "in", here()), out(d.to, "out", here());
  const error e = testing::error_of([&] { remote_source<float>("in", there()); });
  EXPECT_EQ(e.code(), errc::invalid_option);
  EXPECT_EQ(std::string(e.what()),
            "connect to port 'in': its template is unsigned int[1000], and this program has "
            "elements of float; make them the same");
  expect_error([&] { remote_sink<pixel>("out", there()); }, "unsigned int[1000]");
  remote_port_options o = there();
  o.shape = one();
  expect_error([&] { remote_sink<word>("out", o); },
               "its template is unsigned int[1000], and this program has unsigned int[1]");
  o.shape = array();
  const remote_source<word> from("in", o);
  expect_error([&] { from.push(numbers(0, 9)); },
               "9 elements were given, and its template is unsigned int[1000]; give all of them");
  expect_error([&] { remote_sink<word>("in", there()); }, "make a remote_source");
  expect_error([&] { remote_source<word>("out", there()); }, "make a remote_sink");
}

}  // namespace
}  // namespace grosr::flow
