// Ports with names when a process, or the graph, goes or speaks rubbish: nobody else is harmed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "flow/port_name.hpp"
#include "flow/port_peers.hpp"
#include "flow/port_wire.hpp"

namespace grosr::flow {
namespace {

using namespace tested;
using namespace std::chrono_literals;

constexpr std::size_t n = 5000;
const block_template array() { return block_template::of<word>(n); }
const block_template one() { return block_template::of<word>(1); }

class shared_ports_failures : public ::testing::Test {
 protected:
  shared_port_options here(unsigned slots = 4) const {
    return {.slots = slots, .folder = folder_.path()};
  }
  remote_port_options there() const { return {.connect_within = 60s, .folder = folder_.path()}; }

  /// A connection that says what it likes.
  owned_descriptor raw(const std::string& name) const {
    owned_descriptor s = connect_to_port(folder_.path(), name, after(60s));
    port_welcome w = {};
    wait_for_descriptor(s.get(), POLLIN, after(std::nullopt));
    receive_message(s.get(), &w, sizeof w);
    return s;
  }
  /// What the server said last, before it closed the connection.
  static std::string last_words(const owned_descriptor& s) {
    port_text t = {};
    std::string last;
    for (;;) {
      wait_for_descriptor(s.get(), POLLIN, after(std::nullopt));
      const auto bytes = receive_message(s.get(), &t, sizeof t).bytes;
      if (bytes == sizeof t) last = t.text;
      if (bytes == 0) return last;
    }
  }

  const own_folder folder_;
};

bool is_even_and_whole(const std::vector<word>& elements) {
  for (const word e : elements)
    if (e != elements[0] || e % 2 != 0) return false;
  return elements.size() == n;
}

TEST_F(shared_ports_failures, slots_of_a_client_that_is_killed_come_back) {
  doubler d(array());
  shared_port_options alone = here();
  alone.clients = 1;
  const shared_port in(d.from, "in", alone), out(d.to, "out", alone);
  for (int i = 0; i < 2; ++i) {
    peer p("hold", folder_.path());
    ASSERT_EQ(p.hear(), "holds");
    p.kill();
    EXPECT_EQ(d.to.pull_elements()[n - 1], 4u);  // what it had pushed is there
    yield_until([&] { return in.stats().clients == 0 && out.stats().clients == 0; });
  }
  const remote_source<word> from("in", there());
  const remote_sink<word> to("out", there());
  for (word i = 0; i < 10; ++i) {
    from.push(numbers(i, n));
    EXPECT_EQ(to.pull()[0], 2 * i);
  }
}

TEST_F(shared_ports_failures, a_client_that_is_killed_at_any_moment_leaves_whole_blocks) {
  doubler d(array());
  const shared_port in(d.from, "in", here()), out(d.to, "out", here());
  for (int i = 0; i < 4; ++i) {
    peer pushes("push", folder_.path());
    peer pulls("pull", folder_.path());
    ASSERT_EQ(pulls.hear(), "pulls");
    ASSERT_EQ(pushes.hear(), "pushes");
    for (int k = 0; k < 3 + i; ++k) EXPECT_TRUE(is_even_and_whole(d.to.pull_elements()));
    pulls.kill();
    for (int k = 0; k < 3 + i; ++k) EXPECT_TRUE(is_even_and_whole(d.to.pull_elements()));
    pushes.kill();
    while (in.stats().clients != 0)
      if (const auto b = d.to.pull_for(1ms)) {
        const auto elements = b.read<word>();
        EXPECT_TRUE(is_even_and_whole({elements.begin(), elements.end()}));
      }
  }
  EXPECT_EQ(in.stats().expelled, 0u);
  EXPECT_EQ(out.stats().expelled, 0u);
}

TEST_F(shared_ports_failures, a_server_that_is_killed_wakes_who_waits) {
  peer p("serve", folder_.path());
  ASSERT_EQ(p.hear(), "serves");
  const std::string pid = std::to_string(p.pid());
  const remote_source<word> from("in", there());
  const remote_sink<word> to("out", there());
  std::vector<std::thread> waits;
  for (int i = 0; i < 2; ++i)
    waits.emplace_back([&] { expect_error([&] { to.pull(); }, "port 'out': process " + pid); });
  waits.emplace_back([&] {
    const error e = testing::error_of([&] {
      for (;;) from.push(numbers(1, 1));  // until it is full, and then waits
    });
    EXPECT_EQ(e.code(), errc::stopped);
    EXPECT_EQ(std::string(e.what()), "port 'in': process " + pid +
                                         ", which served it, has ended; start it again, and "
                                         "connect anew");
  });
  p.kill();
  for (std::thread& t : waits) t.join();
  expect_error([&] { from.try_write(); }, "has ended");
  expect_error([&] { to.try_pull(); }, "has ended");
}

TEST_F(shared_ports_failures, clients_get_the_reason_when_the_graph_ends) {
  executor e(on(device(), 1));
  graph g(e, {.name = "fails"});
  const node f = g.host("f",
                        [](in<word> a, out<word> b) {
                          if (a[0] == 13) throw std::runtime_error("unlucky");
                          b[0] = a[0];
                        },
                        {{"a", one()}, {"b", one()}});
  const auto from = g.source<word>(f["a"]);
  const auto to = g.sink<word>(f["b"]);
  g.compile();
  const shared_port shared_in(from, "in", here()), shared_out(to, "out", here());
  const remote_source<word> a("in", there());
  const remote_sink<word> b("out", there());
  std::thread waits([&] {
    const error got = testing::error_of([&] { b.pull(); });
    EXPECT_EQ(got.code(), errc::task_failed);
    const std::string text = got.what();
    EXPECT_EQ(text.find("port 'out': "), 0u) << text;
    EXPECT_NE(text.find("unlucky"), std::string::npos) << text;
  });
  a.push(numbers(13, 1));
  waits.join();
  expect_error(
      [&] {
        for (;;) a.push(numbers(1, 1));
      },
      "unlucky");
  yield_until([&] { return !shared_in.why_ended().empty() && !shared_out.why_ended().empty(); });
  EXPECT_NE(shared_in.why_ended().find("unlucky"), std::string::npos);
  remote_port_options soon = there();
  soon.connect_within = 1ms;
  expect_error([&] { remote_source<word>("in", soon); }, "nobody serves that name");
}

TEST_F(shared_ports_failures, clients_hear_of_stop_of_the_end_of_a_graph_and_of_a_port) {
  for (const int how : {0, 1, 2}) {
    auto d = std::make_unique<doubler>(one());
    auto in = std::make_unique<shared_port>(d->from, "in", here());
    auto out = std::make_unique<shared_port>(d->to, "out", here());
    const remote_source<word> a("in", there());
    const remote_sink<word> b("out", there());
    std::thread waits([&] {
      const error got = testing::error_of([&] { b.pull(); });
      EXPECT_EQ(got.code(), errc::stopped);
      EXPECT_NE(std::string(got.what()).find(how == 2 ? "has ended the port" : "graph"),
                std::string::npos)
          << got.what();
    });
    if (how == 0) d->g.stop();
    if (how == 1) d.reset();
    if (how == 2) out.reset();
    waits.join();
    if (how == 2) in.reset();
    expect_error(
        [&] {
          for (;;) a.push(numbers(1, 1));
        },
        "port 'in': ");
  }
}

// ---- rubbish ----

TEST_F(shared_ports_failures, a_client_that_speaks_rubbish_is_expelled) {
  doubler d(one());
  const shared_port in(d.from, "in", here(2)), out(d.to, "out", here(2));
  const remote_source<word> a("in", there());
  const remote_sink<word> b("out", there());
  const std::vector<std::pair<std::string, std::vector<port_message>>> wrong = {
      {"in", {{port_word::push, 2, 1}}},
      {"in", {{port_word::push, 0xffffffff, 1}}},
      {"in", {{port_word::push, 0, 2}}},
      {"in", {{port_word::push, 0, 0}}},
      {"in", {{port_word::push, 0, ~0ull}}},
      {"in", {{port_word::want, 0, 0}}},
      {"in", {{port_word::release, 0, 0}}},
      {"in", {{static_cast<port_word>(12345), 0, 0}}},
      {"out", {{port_word::want, 0, 0}, {port_word::want, 0, 0}}},
      {"out", {{port_word::release, 0, 0}}},
      {"out", {{port_word::release, 77, 0}}},
      {"out", {{port_word::push, 0, 1}}},
      {"out", {{port_word::cancel, 9, 9}, {port_word::welcome, 0, 0}}}};
  for (const auto& [name, messages] : wrong) {
    const owned_descriptor s = raw(name);
    for (const port_message& m : messages) send_message(s.get(), &m, sizeof m);
    EXPECT_NE(last_words(s).find("does not belong there"), std::string::npos) << name;
  }
  const std::vector<char> much(5000, 'x');
  for (const std::size_t bytes : {1, 15, 17, 5000}) {
    const owned_descriptor s = raw("in");
    send_message(s.get(), much.data(), bytes);
    EXPECT_EQ(last_words(s), "it sent a message of " + std::to_string(bytes) + " bytes");
  }
  EXPECT_EQ(in.stats().expelled + out.stats().expelled, wrong.size() + 4);
  a.push(numbers(21, 1));
  EXPECT_EQ(b.pull()[0], 42u);
}

// Half of the messages are such that clients send them at some time.
TEST_F(shared_ports_failures, whatever_a_client_sends_others_are_served) {
  doubler d(one());
  const shared_port in(d.from, "in", here(2)), out(d.to, "out", here(2));
  constexpr port_word words[] = {port_word::push, port_word::want, port_word::cancel,
                                 port_word::release};
  std::mt19937 random(1);
  const auto below = [&](unsigned most) { return static_cast<unsigned>(random() % most); };
  for (int round = 0; round < 60; ++round) {
    const owned_descriptor s = raw(below(2) == 0 ? "in" : "out");
    for (unsigned k = below(20); k != 0; --k) {
      port_message m{words[below(4)], below(2), 1};
      if (below(8) == 0) m = {static_cast<port_word>(random()), below(~0u), random()};
      const bool with_file = below(4) == 0;  // which the server has not asked for
      send_message(s.get(), &m, below(16) == 0 ? below(16) : sizeof m, with_file ? s.get() : -1);
    }
    while (d.to.try_pull()) {
    }
  }
  std::optional<remote_source<word>> a;
  std::optional<remote_sink<word>> b;
  while (!a || !b) try {
      while (d.to.try_pull()) {  // clients leave when what they pushed has gone
      }
      if (!a) a.emplace("in", there());
      b.emplace("out", there());
    } catch (const error&) {
    }
  a->push(numbers(1000, 1));
  while (b->pull()[0] != 2000) {
  }
}

TEST_F(shared_ports_failures, a_client_that_reads_nothing_is_expelled) {
  doubler d(one());
  const shared_port out(d.to, "out", here(1));
  const owned_descriptor s = raw("out");
  const port_message messages[] = {{port_word::want}, {port_word::cancel}};
  const auto all_are_taken = [&] {
    for (const port_message& m : messages) {
      port_sent sent;
      while ((sent = send_message(s.get(), &m, sizeof m)) == port_sent::full)
        wait_for_descriptor(s.get(), POLLOUT, after(std::nullopt));
      if (sent == port_sent::gone) return false;
    }
    return true;
  };
  while (all_are_taken()) {
  }
  EXPECT_EQ(out.stats().expelled, 1u);
  const remote_sink<word> to("out", there());
  d.from.push(numbers(1, 1));
  EXPECT_EQ(to.pull()[0], 2u);
}

TEST_F(shared_ports_failures, clients_that_come_and_go_leave_nothing) {
  doubler d(one());
  const shared_port in(d.from, "in", here());
  for (int i = 0; i < 100; ++i) connect_to_port(folder_.path(), "in", after(60s));
  std::optional<remote_source<word>> from;
  while (!from) try {  // the server may not have seen all of them go
      from.emplace("in", there());
    } catch (const error&) {
    }
  from->push(numbers(1, 1));
  EXPECT_EQ(d.to.pull_elements()[0], 2u);
  yield_until([&] { return in.stats().clients == 1; });
}

// A slot that is given back without a push is for a thread that waits for one.
TEST_F(shared_ports_failures, slots_that_are_given_up_are_for_others) {
  doubler d(one());
  const shared_port in(d.from, "in", here(1));
  remote_source<word> from("in", there());
  for (word i = 0; i < 20; ++i) {
    auto given_up = std::make_optional(from.write());
    std::thread waits([&] { from.push(numbers(i, 1)); });
    if (i % 2 == 0) std::this_thread::yield();
    given_up.reset();
    waits.join();
    EXPECT_EQ(d.to.pull_elements()[0], 2 * i);
  }
}

TEST_F(shared_ports_failures, a_place_is_free_when_its_client_has_gone) {
  doubler d(one());
  shared_port_options alone = here();
  alone.clients = 1;
  const shared_port in(d.from, "in", alone);
  for (word i = 0; i < 50; ++i) {
    remote_source<word>("in", there()).push(numbers(i, 1));
    EXPECT_EQ(d.to.pull_elements()[0], 2 * i);
  }
}

// Memory that a client takes out of the file that it shares reads as zeros.
TEST_F(shared_ports_failures, holes_in_shared_memory_harm_nobody) {
  doubler d(array());
  const shared_port in(d.from, "in", here(1));
  const owned_descriptor s = connect_to_port(folder_.path(), "in", after(60s));
  port_welcome w = {};
  wait_for_descriptor(s.get(), POLLIN, after(std::nullopt));
  const port_received got = receive_message(s.get(), &w, sizeof w, true);
  ASSERT_EQ(fallocate(got.file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                      static_cast<off_t>(w.slot_bytes)),
            0);
  const port_message push{port_word::push, 0, n};
  send_message(s.get(), &push, sizeof push);
  EXPECT_EQ(d.to.pull_elements(), std::vector<word>(n, 0));
}

TEST_F(shared_ports_failures, what_is_no_port_is_left_as_it_is) {
  doubler d(one());
  const std::string path = folder_.path() + "/data";
  std::ofstream(path) << "mine";
  expect_error([&] { shared_port(d.from, "data", here()); }, "data is there already");
  std::string text;
  std::ifstream(path) >> text;
  EXPECT_EQ(text, "mine");
  EXPECT_EQ(unlink(path.c_str()), 0);
  { shared_port(d.from, "data", here()); }
}

// A server that has been stopped, or hangs, holds nobody for longer than was said.
TEST_F(shared_ports_failures, a_server_that_does_not_answer_is_left) {
  const port_name name(folder_.path(), "mute", false);
  std::thread serves([&] {
    wait_for_descriptor(name.socket(), POLLIN, after(std::nullopt));
    const owned_descriptor s(accept4(name.socket(), nullptr, nullptr, SOCK_CLOEXEC));
    const auto memory = simt::shareable_memory::make(device(), 256, false);
    port_welcome w = {};
    w.head.word = port_word::welcome;
    w.magic = port_magic;
    w.version = port_version;
    w.side = port_side::sink;
    w.slots = 1;
    w.slot_bytes = 256;
    w.extents[0] = w.extents[1] = w.extents[2] = 1;
    w.element_bytes = 4;
    w.element_kind = static_cast<std::uint32_t>(element_type::kind::natural);
    std::strcpy(w.element_name, "unsigned int");
    send_message(s.get(), &w, sizeof w, memory.file());
    char c;  // until the client goes
    while (recv(s.get(), &c, 1, 0) > 0) {
    }
  });
  {
    remote_sink<word> to("mute", {.connect_within = 2s, .folder = folder_.path()});
    expect_error([&] { to.pull_for(1ms); }, "does not answer");
    expect_error([&] { to.try_pull(); }, "does not answer");
  }
  serves.join();
}

// The server sends a message after it has let somebody in.
TEST_F(shared_ports_failures, a_server_that_speaks_rubbish_is_named) {
  const port_name name(folder_.path(), "odd", false);
  const auto serve = [&](const std::vector<std::vector<char>>& messages) {
    return std::thread([&name, messages] {
      wait_for_descriptor(name.socket(), POLLIN, after(std::nullopt));
      const owned_descriptor s(accept4(name.socket(), nullptr, nullptr, SOCK_CLOEXEC));
      const auto memory = simt::shareable_memory::make(device(), 256, false);
      for (const auto& m : messages) send_message(s.get(), m.data(), m.size(), memory.file());
      char c;  // until the client goes
      while (recv(s.get(), &c, 1, 0) > 0) {
      }
    });
  };
  const auto bytes = [](const auto& m) {
    std::vector<char> all(sizeof m);
    std::memcpy(all.data(), &m, sizeof m);
    return all;
  };
  port_welcome good = {};
  good.head.word = port_word::welcome;
  good.magic = port_magic;
  good.version = port_version;
  good.side = port_side::sink;
  good.slots = 1;
  good.slot_bytes = 256;
  good.extents[0] = good.extents[1] = good.extents[2] = 1;
  good.element_bytes = 4;
  good.element_kind = static_cast<std::uint32_t>(element_type::kind::natural);
  std::strcpy(good.element_name, "unsigned int");
  const auto with = [&](const std::function<void(port_welcome&)>& change) {
    port_welcome w = good;
    change(w);
    return bytes(w);
  };
  const std::vector<std::pair<std::vector<char>, std::string>> welcomes = {
      {{'h', 'i'}, "serves something else there"},
      {with([](auto& w) { w.magic = 1; }), "serves something else there"},
      {with([](auto& w) { w.version = 1; }), "speaks version 1 of the protocol, and this one 2"},
      {with([](auto& w) { w.place = static_cast<port_place>(9); }), "memory 9, which cannot be"},
      {with([](auto& w) { w.slots = 0; }), "which cannot be"},
      {with([](auto& w) { w.slots = 1000; }), "which cannot be"},
      {with([](auto& w) { w.slot_bytes = 0; }), "which cannot be"},
      {with([](auto& w) { w.extents[0] = 100; }), "which cannot be"},
      {with([](auto& w) { w.extents[0] = 0; }), "each extent is 1 to"},
      {with([](auto& w) { w.slots = 2; }), "sent no file of memory of"}};
  for (const auto& [welcome, part] : welcomes) {
    std::thread server = serve({welcome});
    expect_error([&] { remote_sink<word>("odd", there()); }, part);
    server.join();
  }
  const std::vector<port_message> answers = {{port_word::block, 1, 1},
                                             {port_word::block, 0, 2},
                                             {port_word::freed, 0, 0},
                                             {port_word::want, 0, 0}};
  for (const port_message& answer : answers) {
    std::thread server = serve({bytes(good), bytes(answer)});
    expect_error([&] { remote_sink<word>("odd", there()).pull(); }, "does not belong there");
    server.join();
  }
}

}  // namespace
}  // namespace grosr::flow
