// A trace of graphs is JSON that trace viewers open: a span for each run and each copy, why they
// were made, and arrows along the channels.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "flow/functions.hpp"
#include "grosr/simt/buffer.hpp"

namespace grosr::flow {
namespace {

using namespace tested;

constexpr std::size_t n = 64;
constexpr unsigned blocks = 7;

class flow_trace : public ::testing::Test {
 protected:
  flow_trace()
      : path_((std::filesystem::path(::testing::TempDir()) /
               ("grosr_flow_trace_" + std::to_string(getpid()) + "_" +
                ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".json"))
                  .string()) {}
  ~flow_trace() override { std::filesystem::remove(path_); }

  executor_options traced(unsigned threads = 2) const {
    executor_options o = on(device::best(), threads);
    o.trace = path_;
    return o;
  }

  void read() {
    std::ifstream in(path_);
    ASSERT_TRUE(in.good()) << path_;
    events_ = nlohmann::json::parse(in).at("traceEvents");
    for (const auto& e : events_)
      if (e.at("name") == "thread_name") tracks_[e.at("tid")] = e.at("args").at("name");
  }
  /// Spans of a track.
  std::vector<nlohmann::json> spans(const std::string& track) const {
    std::vector<nlohmann::json> found;
    for (const auto& e : events_)
      if (e.at("ph") == "X" && tracks_.at(e.at("tid")).find(track) == 0) found.push_back(e);
    return found;
  }
  /// Whether something of the track goes on at that time, to the rounding of the file.
  bool goes_on(const nlohmann::json& at) const {
    const double t = at.at("ts");
    for (const auto& e : events_)
      if (e.at("ph") == "X" && e.at("tid") == at.at("tid") &&
          e.at("ts").get<double>() <= t + 1e-3 &&
          t <= e.at("ts").get<double>() + e.at("dur").get<double>() + 1e-3)
        return true;
    return false;
  }

  const std::string path_;
  nlohmann::json events_;
  std::map<std::uint64_t, std::string> tracks_;
};

void copy_twice(simt::stream& s, in<word> a, out<word> b) {
  simt::copy_bytes(s, b.data, a.data, n * 2);
  simt::copy_bytes(s, b.data + n / 2, a.data + n / 2, n * 2);
}

TEST_F(flow_trace, has_spans_and_arrows_of_all_that_was_done) {
  {
    executor e(traced());
    graph g(e, {.name = "one \"pipe\""});
    const auto array = block_template::of<word>(n), one = block_template::of<word>(1);
    const node copied = g.on_stream("copied", copy_twice, {{"a", array}, {"b", array}});
    const node first =
        g.host("first", [](in<word> b, out<word> c) { c[0] = b[0]; }, {{"b", array}, {"c", one}});
    g.connect(copied["b"], first["b"]);
    const auto from = g.source<word>(copied["a"]);
    const auto to = g.sink<word>(first["c"]);
    g.compile();
    for (word i = 0; i < blocks; ++i) {
      from.push(numbers(i, n));
      EXPECT_EQ(to.pull_elements()[0], i);
    }
  }
  read();
  for (const char* track : {"one \"pipe\": copied", "one \"pipe\": first"}) {
    const auto runs = spans(track);
    EXPECT_EQ(runs.size(), blocks) << track;
    for (const auto& r : runs) {
      EXPECT_FALSE(r.at("args").at("why").get<std::string>().empty());
      EXPECT_GE(r.at("args").at("queued_us"), 0);
    }
  }
  EXPECT_EQ(spans("program").size(), 2 * blocks);
  for (const char* direction : {"copies to ", "copies from "}) {
    const auto copies = spans(direction + device::best().name());
    EXPECT_EQ(copies.size(), blocks) << direction;
    for (const auto& c : copies) {
      EXPECT_EQ(c.at("args").at("bytes"), n * sizeof(word));
      EXPECT_FALSE(c.at("args").at("why").get<std::string>().empty());
      EXPECT_NE(c.at("name").get<std::string>().find("one \"pipe\": copied."), std::string::npos);
    }
  }
  std::map<std::uint64_t, nlohmann::json> begin, end;
  for (const auto& e : events_) {
    if (e.at("ph") == "s") begin[e.at("id")] = e;
    if (e.at("ph") == "f") end[e.at("id")] = e;
  }
  EXPECT_EQ(begin.size(), 3 * blocks);
  EXPECT_EQ(end.size(), begin.size());
  for (const auto& [id, from] : begin) {
    ASSERT_EQ(end.count(id), 1u);
    EXPECT_TRUE(goes_on(from)) << from;
    EXPECT_TRUE(goes_on(end[id])) << end[id];
  }
}

// A copy that a thread of the program asks for, when the executor knows nothing of it.
TEST_F(flow_trace, has_copies_for_the_program) {
  datablock kept;
  {
    executor e(traced());
    graph g(e);
    const auto array = block_template::of<word>(n);
    const node copied = g.on_stream("copied", copy_twice, {{"a", array}, {"b", array}});
    const auto from = g.source<word>(copied["a"]);
    const auto to = g.sink<word>(copied["b"], {.prefetch = false});
    g.compile();
    from.push(numbers(1, n));
    EXPECT_EQ(to.pull_elements()[1], 2u);
    from.push(numbers(3, n));
    kept = to.pull();
  }
  EXPECT_EQ(kept.read<word>()[1], 4u);  // after the trace was written
  read();
  const auto copies = spans("copies from");
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].at("name"), "for the program");
}

TEST_F(flow_trace, names_runs_that_fail_and_inputs_that_are_late) {
  {
    executor e(traced());
    graph g(e, {.name = "g", .errors = on_error::go_on});
    const auto one = block_template::of<word>(1);
    const node odd = g.host("odd",
                            [](in<word> a, out<word> b) {
                              if (a[0] % 2 == 0) throw std::runtime_error("it is \"even\"");
                              b[0] = a[0];
                            },
                            {{"a", one}, {"b", one}});
    const node both =
        g.host("both", [](in<word>, in<word>) {},
               {{.name = "a", .shape = one},
                {.name = "b", .shape = one, .deadline = std::chrono::milliseconds(1)}});
    const auto from = g.source<word>(odd["a"]), a = g.source<word>(both["a"]),
               b = g.source<word>(both["b"]);
    const auto to = g.sink<word>(odd["b"]);
    g.compile();
    for (word i = 0; i < 4; ++i) from.push(numbers(i, 1));
    EXPECT_EQ(to.pull_elements()[0], 1u);
    EXPECT_EQ(to.pull_elements()[0], 3u);
    a.push(numbers(0, 1));
    while (g.events().size() < 3) std::this_thread::yield();
    b.push(numbers(0, 1));
    g.wait();
  }
  read();
  unsigned failed = 0, late = 0;
  for (const auto& r : spans("g: odd"))
    if (r.at("name") == "failed") failed += r.at("args").at("failed") == "it is \"even\"";
  for (const auto& e : events_)
    if (e.at("ph") == "i" && tracks_.at(e.at("tid")) == "g: both")
      late += e.at("name").get<std::string>().find("b has had no block for") != std::string::npos;
  EXPECT_EQ(failed, 2u);
  EXPECT_EQ(late, 1u);
}

// Of what fails in a stream, its executor hears later.
TEST_F(flow_trace, names_what_fails_in_a_stream) {
  {
    executor_options o = traced();
    o.devices = {device()};
    executor e(o);
    graph g(e, {.name = "g \xe9\n"});
    const auto one = block_template::of<word>(1);
    const node bad = g.on_stream("bad",
                                 [](simt::stream& s, in<word>, out<word>) {
                                   s.call_host([] { throw std::runtime_error("as asked"); });
                                 },
                                 {{"a", one}, {"b", one}});
    const auto from = g.source<word>(bad["a"]);
    const auto to = g.sink<word>(bad["b"]);
    g.compile();
    from.push(numbers(1, 1));
    EXPECT_THROW(g.wait(), error);
  }
  read();
  const auto runs = spans("g \xef\xbf\xbd\n: bad");
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_NE(runs[0].at("args").at("failed").get<std::string>().find("as asked"), std::string::npos);
}

TEST_F(flow_trace, of_a_stretch_has_its_runs) {
  {
    executor e(traced());
    graph g(e, {.name = "g"});
    const auto array = block_template::of<word>(n);
    std::vector<node> all;
    for (int i = 0; i < 3; ++i) {
      all.push_back(g.on_stream("n" + std::to_string(i), copy_twice, {{"a", array}, {"b", array}},
                                stream_work::same_always));
      if (i != 0) g.connect(all[i - 1]["b"], all[i]["a"]);
    }
    const auto from = g.source<word>(all[0]["a"]);
    const auto to = g.sink<word>(all[2]["b"]);
    g.compile();
    from.push(numbers(5, n));
    EXPECT_EQ(to.pull_elements()[2], 7u);
  }
  read();
  EXPECT_EQ(spans("g: n0 to n2 (3 nodes)").size(), 1u);
  EXPECT_EQ(spans("g: n").size(), 1u);
}

TEST_F(flow_trace, is_written_where_the_environment_says) {
  ::setenv("GROSR_TRACE", path_.c_str(), 1);
  { executor e(on(device::best())); }
  ::unsetenv("GROSR_TRACE");
  read();
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(flow_trace, that_cannot_be_written_is_refused) {
  executor_options o = traced();
  o.trace = "/no/such/folder/x.json";
  expect_error([&] { executor e(o); }, "/no/such/folder/x.json");
}

}  // namespace
}  // namespace grosr::flow
