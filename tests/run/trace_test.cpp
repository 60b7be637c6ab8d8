// A trace is JSON that trace viewers open: a span for every batch, named by its type, and counters
// of queue depth. Without a file's name there is none.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "grosr/run/runtime.hpp"
#include "grosr/simt/atomic.hpp"
#include "support/errors.hpp"

namespace grosr::testing {
namespace {

struct small_leaf {
  std::uint32_t* ran;
  GROSR_DEVICE void operator()(auto&) const {
    simt::atomic_ref<std::uint32_t>(*ran).fetch_add(1, simt::relaxed);
  }
};
struct wide_leaf {
  static constexpr grosr::width width = grosr::width::block;
  std::uint32_t* ran;
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.rank() == 0) simt::atomic_ref<std::uint32_t>(*ran).fetch_add(1, simt::relaxed);
  }
};
struct root {
  std::uint32_t* ran;
  std::uint32_t leaves;
  GROSR_DEVICE void operator()(auto& context) const {
    for (std::uint32_t i = 0; i < leaves; ++i) context.spawn(small_leaf{ran});
    context.spawn(wide_leaf{ran});
  }
};
using traced_runtime = runtime<root, small_leaf, wide_leaf>;

class trace : public ::testing::Test {
 protected:
  std::string file(const std::string& name) {
    return (std::filesystem::path(::testing::TempDir()) /
            ("grosr_trace_" + std::to_string(getpid()) + "_" + name))
        .string();
  }

  runtime_options options(const std::string& trace_file) {
    runtime_options o;
    o.memory_limit = std::size_t{16} << 20;
    o.trace = trace_file;
    return o;
  }

  static void expect_trace(const std::string& path) {
    std::ifstream in(path);
    ASSERT_TRUE(in.good()) << path;
    const auto json = nlohmann::json::parse(in);
    const auto& events = json.at("traceEvents");
    std::map<std::string, std::uint64_t> tasks;
    std::size_t counters = 0;
    for (const auto& e : events) {
      const auto ph = e.at("ph").get<std::string>();
      EXPECT_TRUE(e.at("pid").is_number());
      if (ph == "X") {
        EXPECT_GE(e.at("ts").get<double>(), 0);
        EXPECT_GE(e.at("dur").get<double>(), 0);
        EXPECT_TRUE(e.at("tid").is_number());
        tasks[e.at("name").get<std::string>()] += e.at("args").at("tasks").get<std::uint64_t>();
      } else if (ph == "C") {
        ++counters;
        EXPECT_EQ(e.at("args").size(), 1u);
      } else {
        EXPECT_EQ(ph, "M");
      }
    }
    std::map<std::string, std::uint64_t> by_type;
    for (const auto& [name, n] : tasks)
      for (const char* type : {"root", "small_leaf", "wide_leaf"})
        if (name.find(type) != std::string::npos) by_type[type] += n;
    EXPECT_EQ(by_type, (std::map<std::string, std::uint64_t>{
                           {"root", 10}, {"small_leaf", 1000}, {"wide_leaf", 10}}));
    EXPECT_EQ(tasks.size(), 3u);
    EXPECT_GE(counters, 1u);
  }

  static void work(traced_runtime& rt, std::uint32_t& ran) {
    for (int i = 0; i < 10; ++i) rt.submit(root{&ran, 100});
    rt.wait_all();
    EXPECT_EQ(simt::atomic_ref<std::uint32_t>(ran).load(simt::acquire), 1010u);
  }
};

TEST_F(trace, has_a_span_for_every_batch) {
  const std::string path = file("option.json");
  std::uint32_t ran = 0;
  {
    traced_runtime rt(device(), options(path));
    work(rt, ran);
    rt.stop();
  }
  expect_trace(path);
  std::filesystem::remove(path);
}

TEST_F(trace, is_written_by_destruction_too) {
  const std::string path = file("destroyed.json");
  std::uint32_t ran = 0;
  {
    traced_runtime rt(device(), options(path));
    work(rt, ran);
  }
  expect_trace(path);
  std::filesystem::remove(path);
}

TEST_F(trace, survives_parking) {
  const std::string path = file("parked.json");
  std::uint32_t ran = 0;
  {
    traced_runtime rt(device(), options(path));
    for (int i = 0; i < 10; ++i) {
      rt.submit(root{&ran, 100});
      if (i % 3 == 0) rt.park();
    }
    rt.stop();
  }
  expect_trace(path);
  std::filesystem::remove(path);
}

TEST_F(trace, can_be_asked_for_by_the_environment) {
  const std::string path = file("environment.json");
  std::uint32_t ran = 0;
  setenv("GROSR_TRACE", path.c_str(), 1);
  {
    traced_runtime rt(device(), options(""));
    work(rt, ran);
    rt.stop();
  }
  unsetenv("GROSR_TRACE");
  expect_trace(path);
  std::filesystem::remove(path);
}

TEST_F(trace, of_nothing_is_still_json) {
  const std::string path = file("empty.json");
  traced_runtime(device(), options(path)).stop();
  std::ifstream in(path);
  EXPECT_TRUE(nlohmann::json::parse(in).at("traceEvents").empty());
  std::filesystem::remove(path);
}

TEST_F(trace, that_cannot_be_written_says_so) {
  const std::string path = file("no") + "/such/folder.json";
  const error e = error_of([&] { traced_runtime rt(device(), options(path)); });
  EXPECT_EQ(e.code(), errc::invalid_option);
  EXPECT_NE(std::string(e.what()).find("trace: cannot write \"" + path + "\""), std::string::npos)
      << e.what();
}

TEST_F(trace, that_cannot_be_finished_says_so) {
  std::uint32_t ran = 0;
  traced_runtime rt(device(), options("/dev/full"));
  work(rt, ran);
  EXPECT_EQ(error_of([&] { rt.stop(); }).code(), errc::invalid_option);
  EXPECT_EQ(ran, 1010u);
  rt.stop();  // said once
}

TEST_F(trace, of_a_second_runtime_has_a_file_of_its_own) {
  const std::string path = file("twice");
  std::uint32_t ran = 0;
  for (int again = 0; again < 2; ++again) {
    traced_runtime rt(device(), options(path));
    work(rt, ran = 0);
  }
  for (const std::string& each : {path, file("twice.2")}) {
    std::ifstream in(each);
    EXPECT_FALSE(nlohmann::json::parse(in).at("traceEvents").empty()) << each;
    std::filesystem::remove(each);
  }
}

}  // namespace
}  // namespace grosr::testing
