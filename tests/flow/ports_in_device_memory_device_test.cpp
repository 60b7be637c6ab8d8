// Ports with slots in memory of a device: what other processes make there comes into the graph, and
// out of it, whole, in order, once, and never by way of the host.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "flow/port_name.hpp"
#include "flow/port_wire.hpp"
#include "flow/ports_in_device_memory.hpp"
#include "grosr/simt/atomic.hpp"
#include "grosr/simt/shareable_memory.hpp"
#include "grosr/simt/wait.hpp"
#include "support/devices.hpp"
#include "support/scale.hpp"

namespace grosr::flow {
namespace {

using namespace tested;
using namespace std::chrono_literals;
using grosr::testing::scaled;

constexpr std::size_t n = 1000;
const block_template array() { return block_template::of<word>(n); }
const block_template one() { return block_template::of<word>(1); }

class ports_in_device_memory : public grosr::testing::device_test {
 protected:
  shared_port_options here(unsigned slots = 4) const {
    return {.slots = slots, .slots_on = where(), .folder = folder_.path()};
  }
  remote_port_options there() const { return {.connect_within = 60s, .folder = folder_.path()}; }

  const own_folder folder_;
};

INSTANTIATE_TEST_SUITE_P(on, ports_in_device_memory, ::testing::Values("host:0", "cuda:0"),
                         grosr::testing::device_test_name);

bool is_tripled_and_whole(const std::vector<word>& all) {
  for (word i = 0; i < all.size(); ++i)
    if (all[i] != all[0] + 3 * i) return false;
  return all.size() == n;
}

TEST_P(ports_in_device_memory, carry_blocks_of_another_process_without_the_host) {
  tripler t(where(), array());
  const shared_port in(t.from, "in", here()), out(t.to, "out", here(1));
  peer p("double", folder_.path());
  const std::string all = std::to_string(scaled(100));
  EXPECT_EQ(p.hear(), all + " of " + all);
  EXPECT_EQ(p.wait(), 0);
  EXPECT_EQ(in.stats().blocks, scaled(100));
  EXPECT_EQ(out.stats().blocks, scaled(100));
  EXPECT_EQ(in.why_ended(), "");
  EXPECT_EQ(t.e.memory().counts().copies, 0u);
}

TEST_P(ports_in_device_memory, are_beside_what_the_program_and_ports_of_the_host_do) {
  tripler t(where(), one());
  const shared_port in(t.from, "in", here()), out(t.to, "out", here());
  const shared_port host_in(t.from, "host-in", {.folder = folder_.path()});
  const shared_port host_out(t.to, "host-out", {.folder = folder_.path()});
  const remote_source_on_device<word> from("in", there());
  const remote_sink_on_device<word> to("out", there());
  EXPECT_EQ(from.where(), where());
  EXPECT_EQ(to.where(), where());
  simt::stream s(where());
  push_numbers(from, s, 4, 1);
  EXPECT_EQ(t.to.pull_elements()[0], 12u);
  t.from.push(numbers(5, 1));
  EXPECT_EQ(words_of(where(), to.pull()), numbers(15, 1));
  remote_source<word>("host-in", there()).push(numbers(6, 1));
  EXPECT_EQ(words_of(where(), to.pull()), numbers(18, 1));
  push_numbers(from, s, 7, 1);
  EXPECT_EQ(remote_sink<word>("host-out", there()).pull()[0], 21u);
}

TEST_P(ports_in_device_memory, let_a_client_copy_what_it_has_on_the_device) {
  tripler t(where(), array());
  const shared_port in(t.from, "in", here(1));
  const remote_source_on_device<word> from("in", there());
  simt::stream s(where());
  auto own = make<word>(n);
  for (word i = 0; i < scaled(20); ++i) {
    simt::launch(s, {1, 64}, write_numbers{own.data(), i, n});
    from.push(s, own.data(), n);
    EXPECT_EQ(t.to.pull().read<word>()[n - 1], 3 * (i + n - 1));
  }
  expect_error([&] { from.push(s, own.data(), 9); }, "9 elements were given");
}

TEST_P(ports_in_device_memory, carry_as_many_elements_as_there_are) {
  tripler t(where(), block_template::variable<word>(n));
  const shared_port in(t.from, "in", here(1)), out(t.to, "out", here());
  const remote_source_on_device<word> from("in", there());
  const remote_sink_on_device<word> to("out", there());
  simt::stream s(where());
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, n / 2, n}) {
    auto w = from.write();
    ASSERT_EQ(w.size(), n);
    simt::launch(s, {1, 64}, write_numbers{w.data(), 1, count});
    EXPECT_EQ(testing::error_of([&] { w.push(s, n + 1); }).code(), errc::invalid_option);
    w.push(s, count);
    EXPECT_FALSE(w);
    EXPECT_EQ(testing::error_of([&] { w.push(s); }).code(), errc::misuse);
    auto r = to.pull();
    ASSERT_EQ(r.size(), count);
    EXPECT_TRUE(count == 0 || holds(to, r, 3, 3));
    r.release(s);
    EXPECT_FALSE(r);
    EXPECT_EQ(testing::error_of([&] { r.release(s); }).code(), errc::misuse);
  }
}

TEST_P(ports_in_device_memory, take_no_block_before_a_stream_has_made_it) {
  tripler t(where(), array());
  const shared_port in(t.from, "in", here());
  const remote_source_on_device<word> from("in", there());
  simt::stream s(where());
  for (word i = 0; i < scaled(50); ++i) {
    auto w = from.write();
    for (word k = 0; k <= 20; ++k)
      simt::launch(s, {1, 64}, write_numbers{w.data(), i * 100 + k, n});
    w.push(s);
    EXPECT_EQ(t.to.pull().read<word>()[0], 3 * (i * 100 + 20));
  }
}

// Of one block in the channel behind the kernel, one that waits for room there, one at the input,
// one in the channel before it, and two in slots.
TEST_P(ports_in_device_memory, hold_back_who_pushes_into_what_is_full) {
  tripler t(where(), one());
  const shared_port in(t.from, "in", here(2));
  const remote_source_on_device<word> c("in", there());
  simt::stream s(where());
  auto own = make<word>(1);
  for (word i = 0; i < 6; ++i) push_numbers(c, s, i, 1);
  EXPECT_FALSE(c.try_push(s, own.data(), 1));
  EXPECT_FALSE(c.push_for(s, own.data(), 1, 5ms));
  EXPECT_FALSE(c.try_write());
  EXPECT_FALSE(c.write_for(2ms));
  std::thread late([&] { push_numbers(c, s, 6, 1); });
  for (word i = 0; i < 7; ++i) EXPECT_EQ(t.to.pull_elements()[0], 3 * i);
  late.join();
}

TEST_P(ports_in_device_memory, say_when_there_is_nothing_to_pull) {
  tripler t(where(), array());
  const shared_port out(t.to, "out", here(2));
  const remote_sink_on_device<word> to("out", there());
  EXPECT_FALSE(to.try_pull());
  EXPECT_FALSE(to.pull_for(2ms));
  for (word i = 0; i < scaled(20); ++i) {
    t.from.push(numbers(i, n));
    t.g.wait();
    const auto r = to.try_pull();
    ASSERT_TRUE(r);
    EXPECT_TRUE(holds(to, r, 3 * i, 3));
  }
}

TEST_P(ports_in_device_memory, lose_nothing_where_a_client_releases_nothing) {
  tripler t(where(), one(), 4);
  const shared_port out(t.to, "out", here(2));
  const remote_sink_on_device<word> holder("out", there()), other("out", there());
  for (word i = 0; i < 4; ++i) t.from.push(numbers(i, 1));
  t.g.wait();
  simt::stream s(where());
  auto first = holder.pull();
  const auto second = holder.pull();
  EXPECT_FALSE(holder.try_pull());
  EXPECT_FALSE(holder.pull_for(2ms));
  EXPECT_TRUE(holds(other, other.pull(), 6, 0));
  std::thread waits([&] { EXPECT_TRUE(holds(holder, holder.pull(), 9, 0)); });
  EXPECT_TRUE(holds(holder, first, 0, 0));
  first.release(s);
  waits.join();
  EXPECT_TRUE(holds(holder, second, 3, 0));
}

TEST_P(ports_in_device_memory, keep_a_block_that_is_held_after_all_else) {
  remote_device_read<word> held;
  {
    tripler t(where(), array());
    const shared_port out(t.to, "out", here());
    const remote_sink_on_device<word> to("out", there());
    t.from.push(numbers(0, n));
    held = to.pull();
  }
  EXPECT_TRUE(is_tripled_and_whole(words_of(where(), held)));
}

TEST_P(ports_in_device_memory, serve_clients_and_threads_at_once) {
  constexpr word clients = 3;
  const word each = scaled(60);
  tripler t(where(), array(), 2);
  const shared_port in(t.from, "in", here(2)), out(t.to, "out", here(1));
  std::vector<std::thread> all;
  std::vector<std::atomic<unsigned>> came(clients);
  std::atomic<word> pulled{0}, wrong{0};
  for (word c = 0; c < clients; ++c) {
    all.emplace_back([&, c] {
      const remote_source_on_device<word> from("in", there());
      simt::stream s(where());
      for (word i = 0; i < each; ++i) push_numbers(from, s, c * 1000, n);
    });
    all.emplace_back([&] {
      const remote_sink_on_device<word> to("out", there());
      while (pulled < clients * each) {
        const auto r = to.pull_for(1ms);
        if (!r) continue;
        ++pulled;
        const std::vector<word> got = words_of(where(), r);
        wrong += !is_tripled_and_whole(got);
        ++came.at(got[0] / 3000);
      }
    });
  }
  for (std::thread& one : all) one.join();
  EXPECT_EQ(wrong, 0u);
  for (const auto& c : came) EXPECT_EQ(c, each);
  EXPECT_EQ(t.e.memory().counts().copies, 0u);
}

// ---- who dies ----

TEST_P(ports_in_device_memory, slots_of_a_client_that_is_killed_come_back) {
  tripler t(where(), array());
  shared_port_options alone = here();
  alone.clients = 1;
  const shared_port in(t.from, "in", alone), out(t.to, "out", alone);
  for (unsigned i = 0; i < scaled(2); ++i) {
    peer p("hold", folder_.path());
    ASSERT_EQ(p.hear(), "holds");
    p.kill();
    EXPECT_EQ(t.to.pull().read<word>()[0], 6u);  // what it had pushed is there
    yield_until([&] { return in.stats().clients == 0 && out.stats().clients == 0; });
  }
  const remote_source_on_device<word> from("in", there());
  const remote_sink_on_device<word> to("out", there());
  simt::stream s(where());
  for (word i = 0; i < 10; ++i) {
    push_numbers(from, s, i, n);
    EXPECT_TRUE(holds(to, to.pull(), 3 * i, 3));
  }
}

TEST_P(ports_in_device_memory, a_client_that_is_killed_at_any_moment_leaves_whole_blocks) {
  tripler t(where(), array());
  const shared_port in(t.from, "in", here()), out(t.to, "out", here());
  const auto pull = [&] {
    const auto b = t.to.pull_for(120s);
    ASSERT_TRUE(b);
    const auto elements = b.read<word>();
    EXPECT_TRUE(is_tripled_and_whole({elements.begin(), elements.end()}));
  };
  for (unsigned i = 0; i < scaled(3); ++i) {
    peer pushes("push", folder_.path());
    peer pulls("pull", folder_.path());
    ASSERT_EQ(pulls.hear(), "pulls");
    ASSERT_EQ(pushes.hear(), "pushes");
    for (unsigned k = 0; k < 3 + i; ++k) pull();
    pulls.kill();
    for (unsigned k = 0; k < 3 + i; ++k) pull();
    pushes.kill();
    while (in.stats().clients != 0)
      if (const auto b = t.to.pull_for(1ms)) {
        const auto elements = b.read<word>();
        EXPECT_TRUE(is_tripled_and_whole({elements.begin(), elements.end()}));
      }
  }
  EXPECT_EQ(in.stats().expelled, 0u);
  EXPECT_EQ(out.stats().expelled, 0u);
}

/// Waits for a gate that the host opens.
struct triple_behind {
  std::uint32_t* gate;
  GROSR_DEVICE void operator()(point p, in<word> a, out<word> b) const {
    simt::wait_until([&] { return simt::atomic_ref(*gate).load(simt::acquire) != 0; },
                     simt::forever, nullptr, "the gate");
    b[p.index] = a[p.index] * 3;
  }
};

TEST_P(ports_in_device_memory,
       a_block_that_was_being_made_for_a_client_that_is_killed_is_for_the_next) {
  auto gate = make<std::uint32_t>(1, simt::space::pinned);
  executor e(on(where(), 1));
  graph g(e);
  const node f = g.kernel("f", triple_behind{gate.data()}, {{"a", one()}, {"b", one()}});
  const auto from = g.source<word>(f["a"]);
  const auto to = g.sink<word>(f["b"], {.prefetch = false});
  g.compile();
  const shared_port out(to, "out", here());
  peer p("pull one", folder_.path());
  ASSERT_EQ(p.hear(), "pulls");
  from.push(numbers(5, 1));
  std::this_thread::sleep_for(20ms);  // so that the copy is, mostly, behind the kernel already
  p.kill();
  const remote_sink_on_device<word> next("out", there());
  std::atomic_ref(gate[0]).store(1, std::memory_order_release);
  EXPECT_EQ(words_of(where(), next.pull()), numbers(15, 1));
  yield_until([&] { return out.stats().clients == 1; });
  EXPECT_EQ(out.stats().blocks, 1u);
}

TEST_P(ports_in_device_memory, blocks_of_clients_that_are_killed_keep_their_order) {
  auto gate = make<std::uint32_t>(1, simt::space::pinned);
  executor e(on(where(), 1));
  graph g(e);
  const node f = g.kernel("f", triple_behind{gate.data()}, {{"a", one()}, {"b", one()}});
  const auto from = g.source<word>(f["a"], {.capacity = 2});
  const auto to = g.sink<word>(f["b"], {.capacity = 2});
  g.compile();
  const shared_port out(to, "out", here());
  peer p("pull one", folder_.path()), q("pull one", folder_.path());
  ASSERT_EQ(p.hear(), "pulls");
  ASSERT_EQ(q.hear(), "pulls");
  from.push(numbers(5, 1));
  from.push(numbers(6, 1));
  std::this_thread::sleep_for(20ms);  // so that both copies are, mostly, behind the kernels
  p.kill();
  q.kill();
  std::atomic_ref(gate[0]).store(1, std::memory_order_release);
  yield_until([&] { return out.stats().clients == 0; });
  const remote_sink_on_device<word> next("out", there());
  EXPECT_EQ(words_of(where(), next.pull()), numbers(15, 1));
  EXPECT_EQ(words_of(where(), next.pull()), numbers(18, 1));
}

// Though nobody has said so where the sink was made.
TEST_P(ports_in_device_memory, keep_from_the_host_what_goes_to_a_sink) {
  executor e(on(where(), 1));
  graph g(e);
  const node f = g.kernel("triple", times{3}, {{"a", one()}, {"b", one()}});
  const auto from = g.source<word>(f["a"]);
  const auto to = g.sink<word>(f["b"]);
  g.compile();
  const shared_port in(from, "in", here()), out(to, "out", here());
  const remote_source_on_device<word> a("in", there());
  const remote_sink_on_device<word> b("out", there());
  simt::stream s(where());
  for (word i = 0; i < 5; ++i) {
    push_numbers(a, s, i, 1);
    EXPECT_EQ(words_of(where(), b.pull()), numbers(3 * i, 1));
  }
  EXPECT_EQ(e.memory().counts().copies, 0u);
  push_numbers(a, s, 5, 1);
  EXPECT_EQ(to.pull_elements()[0], 15u);
  EXPECT_EQ(e.memory().counts().copies, 1u);
}

TEST_P(ports_in_device_memory, end_while_clients_hold_slots) {
  for (const bool port_first : {true, false}) {
    auto t = std::make_unique<tripler>(where(), array());
    auto in = std::make_unique<shared_port>(t->from, "in", here());
    auto out = std::make_unique<shared_port>(t->to, "out", here());
    const remote_source_on_device<word> from("in", there());
    const remote_sink_on_device<word> to("out", there());
    simt::stream s(where());
    push_numbers(from, s, 1, n);
    const auto r = to.pull();
    auto w = from.write();
    for (word i = 0; i < 3; ++i) push_numbers(from, s, i, n);  // copies may be under way
    if (!port_first) t.reset();
    in.reset();
    out.reset();
    t.reset();
    simt::launch(s, {1, 64}, write_numbers{w.data(), 7, n});
    expect_error([&] { w.push(s); }, "port 'in': ");
    EXPECT_TRUE(holds(to, r, 3, 3));
  }
}

TEST_P(ports_in_device_memory, end_with_the_graph_whose_kernel_fails) {
  if (where().is_cuda()) GTEST_SKIP() << "a kernel that fails loses the GPU for all later tests";
  executor e(on(where(), 1));
  graph g(e, {.name = "fails"});
  const node f = g.on_stream("f",
                             [](simt::stream& s, in<word>, out<word>) {
                               s.call_host([] { throw error(errc::misuse, "unlucky"); });
                             },
                             {{"a", one()}, {"b", one()}});
  const auto from = g.source<word>(f["a"]);
  const auto to = g.sink<word>(f["b"], {.prefetch = false});
  g.compile();
  const shared_port in(from, "in", here()), out(to, "out", here());
  const remote_source_on_device<word> a("in", there());
  const remote_sink_on_device<word> b("out", there());
  simt::stream s(where());
  push_numbers(a, s, 1, 1);
  expect_error([&] { b.pull(); }, "port 'out': ");
  yield_until([&] { return !out.why_ended().empty() && !in.why_ended().empty(); });
  EXPECT_NE(in.why_ended().find("unlucky"), std::string::npos) << in.why_ended();
}

// Half of the messages are such that clients send them at some time, and some come while copies
// from and to slots are under way.
TEST_P(ports_in_device_memory, serve_others_whatever_a_client_sends) {
  tripler t(where(), array());
  const shared_port in(t.from, "in", here(2)), out(t.to, "out", here(2));
  constexpr port_word words[] = {port_word::push, port_word::want, port_word::cancel,
                                 port_word::release};
  std::mt19937 random(1);
  const auto below = [&](unsigned most) { return static_cast<unsigned>(random() % most); };
  for (int round = 0; round < static_cast<int>(scaled(60)); ++round) {
    const owned_descriptor s =
        connect_to_port(folder_.path(), below(2) == 0 ? "in" : "out", after(60s));
    for (unsigned k = below(20); k != 0; --k) {
      port_message m{words[below(4)], below(2), n};
      if (below(16) == 0) m = {static_cast<port_word>(random()), below(~0u), random()};
      send_message(s.get(), &m, below(16) == 0 ? below(16) : sizeof m);
    }
    t.to.try_pull();
  }
  std::optional<remote_source_on_device<word>> a;
  std::optional<remote_sink_on_device<word>> b;
  while (!a || !b) try {
      while (t.to.try_pull()) {  // clients leave when what they pushed has gone
      }
      if (!a) a.emplace("in", there());
      b.emplace("out", there());
    } catch (const error&) {
    }
  simt::stream s(where());
  push_numbers(*a, s, 1000, n);
  while (!holds(*b, b->pull(), 3000, 3)) {
  }
}

// ---- who is refused ----

TEST_P(ports_in_device_memory, are_not_for_programs_of_the_host_nor_those_for_them) {
  tripler t(where(), array());
  const shared_port in(t.from, "in", here()), out(t.to, "out", here());
  const shared_port host_in(t.from, "host-in", {.folder = folder_.path()});
  const error e = testing::error_of([&] { remote_source<word>("in", there()); });
  EXPECT_EQ(e.code(), errc::invalid_option);
  EXPECT_EQ(std::string(e.what()),
            "connect to port 'in': its slots lie in memory of a device; make a "
            "remote_source_on_device");
  expect_error([&] { remote_sink<word>("out", there()); }, "make a remote_sink_on_device");
  expect_error([&] { remote_source_on_device<word>("host-in", there()); },
               "its slots lie in memory of the host; make a remote_source");
  expect_error([&] { remote_sink_on_device<word>("in", there()); }, "make a remote_source");
}

TEST_P(ports_in_device_memory, have_a_template_that_both_sides_share) {
  tripler t(where(), array());
  const shared_port in(t.from, "in", here());
  expect_error([&] { remote_source_on_device<float>("in", there()); },
               "its template is unsigned int[1000], and this program has elements of float");
  remote_port_options o = there();
  o.shape = one();
  expect_error([&] { remote_source_on_device<word>("in", o); }, "this program has unsigned int[1]");
  EXPECT_EQ(remote_source_on_device<word>("in", there()).shape(), array());
}

TEST_P(ports_in_device_memory, are_of_a_device_of_the_executor) {
  doubler d(one());
  shared_port_options o = here();
  if (where().is_cuda()) {
    expect_error([&] { shared_port(d.from, "in", o); }, "is no device of the executor of graph");
  } else {
    const shared_port in(d.from, "in", o);
    const remote_source_on_device<word> from("in", there());
    simt::stream s(where());
    push_numbers(from, s, 4, 1);
    EXPECT_EQ(d.to.pull_elements()[0], 8u);
  }
}

// One that this process has, and the other one does not.
TEST_P(ports_in_device_memory, are_refused_where_there_is_no_such_device) {
  const bool gpu = where().is_cuda();
  const char* const setting = gpu ? "CUDA_VISIBLE_DEVICES" : "GROSR_HOST_DEVICES";
  if (!gpu) setenv(setting, "2", 1);
  const device there_not = gpu ? where() : device("host:1");
  tripler t(there_not, array());
  shared_port_options o = here();
  o.slots_on = there_not;
  const shared_port in(t.from, "in", o);
  const char* const set = std::getenv(setting);
  const std::optional<std::string> before = set != nullptr ? std::optional(set) : std::nullopt;
  if (gpu)
    setenv(setting, "", 1);
  else
    unsetenv(setting);
  peer p("without", folder_.path());
  if (gpu && before)
    setenv(setting, before->c_str(), 1);
  else
    unsetenv(setting);
  const std::string text = p.hear();
  EXPECT_EQ(p.wait(), 0);
  EXPECT_EQ(text.find("connect to port 'in': its slots lie in memory of " +
                      simt::identity_of(there_not).text() + ", which this process does not have"),
            0u)
      << text;
  EXPECT_NE(text.find("; start it where it has that device"), std::string::npos) << text;
}

TEST_P(ports_in_device_memory, waits_of_a_client_throw_what_its_stream_did) {
  if (where().is_cuda()) GTEST_SKIP() << "a kernel that fails loses the GPU for all later tests";
  tripler t(where(), one());
  const shared_port in(t.from, "in", here(1));
  const remote_source_on_device<word> from("in", there());
  simt::stream fails(where()), s(where());
  fails.call_host([] { throw error(errc::task_failed, "unlucky"); });
  {
    auto w = from.write();
    expect_error([&] { w.push(fails); }, "unlucky");
    EXPECT_TRUE(w);  // and may be pushed when it was written otherwise
    simt::launch(s, {1, 64}, write_numbers{w.data(), 2, 1});
    w.push(s);
  }
  EXPECT_EQ(t.to.pull_elements()[0], 6u);
  from.write();
  push_numbers(from, s, 3, 1);
  EXPECT_EQ(t.to.pull_elements()[0], 9u);
}

}  // namespace
}  // namespace grosr::flow
