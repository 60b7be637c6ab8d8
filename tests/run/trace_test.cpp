// A trace is JSON that trace viewers open: a span for every batch, named by its type, counters of
// queue depth, and arrows from what started a batch, a task or a thread of the host. Without a
// file's name there is none.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

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

  // A packet of one task runs once; its arrow begins within the span of its submission.
  static void expect_arrows_from_the_host(
      const std::vector<nlohmann::json>& submits, const std::vector<nlohmann::json>& of_host,
      const std::map<std::uint64_t, nlohmann::json>& begins,
      const std::multiset<std::pair<std::uint64_t, double>>& submitted) {
    EXPECT_EQ(submits.size(), 10u);
    EXPECT_EQ(of_host.size(), 10u);
    for (const auto& run : of_host)
      EXPECT_EQ(submitted.count({run.at("tid"), run.at("ts")}), 1u) << run;
    EXPECT_EQ(submitted.size(), of_host.size());
    for (const auto& s : submits) {
      EXPECT_NE(s.at("name").get<std::string>().find("root"), std::string::npos) << s;
      EXPECT_EQ(s.at("args").at("tasks"), 1) << s;
      std::size_t arrows = 0;
      for (const auto& [id, from] : begins)
        if (from.at("name") == "submit" && from.at("tid") == s.at("tid"))
          arrows += from.at("ts") >= s.at("ts") &&
                    from.at("ts").get<double>() <=
                        s.at("ts").get<double>() + s.at("dur").get<double>() + 1e-3;
      EXPECT_EQ(arrows, 1u) << s;
    }
  }

  static void expect_trace(const std::string& path) {
    std::ifstream in(path);
    ASSERT_TRUE(in.good()) << path;
    const auto json = nlohmann::json::parse(in);
    const auto& events = json.at("traceEvents");
    std::map<std::string, std::uint64_t> tasks;
    std::size_t counters = 0, processes = 0, marks = 0;
    std::set<std::uint64_t> named, used, host_threads, submitters;
    std::vector<nlohmann::json> of_host, submits;
    std::set<std::pair<std::uint64_t, double>> begun;      // spans: thread and time
    std::map<std::uint64_t, nlohmann::json> begins, ends;  // arrows
    for (const auto& e : events) {
      const auto ph = e.at("ph").get<std::string>();
      const auto name = e.at("name").get<std::string>();
      EXPECT_EQ(e.at("pid").get<long>(), static_cast<long>(::getpid()));
      const auto thread = e.at("tid").get<std::uint64_t>();
      const double at = e.at("ts").get<double>();
      EXPECT_GE(at, 0);
      if (ph == "X") {
        EXPECT_GE(e.at("dur").get<double>(), 0);
        used.insert(thread);
        if (name.starts_with("submit ")) {
          submits.push_back(e);
          submitters.insert(thread);
          continue;
        }
        begun.insert({thread, at});
        if (e.at("args").contains("slot")) of_host.push_back(e);
        tasks[name] += e.at("args").at("tasks").get<std::uint64_t>();
      } else if (ph == "C") {
        ++counters;
        EXPECT_EQ(e.at("args").size(), 1u);
      } else if (ph == "s" || ph == "f") {
        EXPECT_TRUE(name == "spawn" || name == "submit") << name;
        EXPECT_EQ(e.at("cat"), name);
        const auto id = e.at("id").get<std::uint64_t>();
        EXPECT_TRUE((ph == "s" ? begins : ends).emplace(id, e).second) << id;
        if (ph == "f") {
          EXPECT_EQ(e.at("bp"), "e");
        }
        used.insert(thread);
      } else if (ph == "i") {
        ++marks;
        EXPECT_TRUE(name == "steal" || name == "leaves the device") << name;
        EXPECT_EQ(e.at("s"), "t");
        used.insert(thread);
      } else if (ph == "M") {
        if (name == "process_name") ++processes;
        if (name == "thread_name") {
          EXPECT_TRUE(named.insert(thread).second) << thread;
          const auto called = e.at("args").at("name").get<std::string>();
          if (called.starts_with("host thread "))
            host_threads.insert(thread);
          else
            EXPECT_NE(called.find("worker "), std::string::npos) << called;
        }
      } else {
        ADD_FAILURE() << "an event of phase " << ph;
      }
    }
    EXPECT_EQ(processes, 1u);
    EXPECT_EQ(named.count(0), 0u);
    for (const std::uint64_t thread : used) EXPECT_EQ(named.count(thread), 1u) << thread;
    EXPECT_EQ(begins.size(), ends.size());
    std::size_t spawns = 0;
    std::multiset<std::pair<std::uint64_t, double>> submitted;  // runs that an arrow leads to
    for (const auto& [id, e] : ends) {
      const auto& from = begins.at(id);
      const double at = e.at("ts");
      EXPECT_LE(from.at("ts"), at) << id;
      EXPECT_EQ(from.at("name"), e.at("name")) << id;
      const std::pair<std::uint64_t, double> run(e.at("tid"), at);
      EXPECT_EQ(begun.count(run), 1u) << at;
      if (e.at("name") == "submit")
        submitted.insert(run);
      else
        ++spawns;
    }
    EXPECT_GE(spawns, 10u);  // leaves were spawned
    expect_arrows_from_the_host(submits, of_host, begins, submitted);
    EXPECT_EQ(host_threads, submitters);
    EXPECT_GE(marks, 1u);  // all workers have left
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

TEST_F(trace, has_arrows_to_all_runs_of_what_came_in_several_packets) {
  const std::string path = file("packets.json");
  std::uint32_t ran = 0;
  {
    traced_runtime rt(device(), options(path));
    rt.submit(std::vector<small_leaf>(2000, small_leaf{&ran})).wait();
    rt.stop();
  }
  std::ifstream in(path);
  const auto json = nlohmann::json::parse(in);
  std::uint64_t submitted = 0, tasks = 0, runs = 0, arrows = 0;
  std::set<std::uint64_t> senders, submitters;
  for (const auto& e : json.at("traceEvents")) {
    if (e.at("ph") == "X") {
      const bool of_host = e.at("name").get<std::string>().starts_with("submit ");
      (of_host ? submitted : tasks) += e.at("args").at("tasks").get<std::uint64_t>();
      if (of_host) submitters.insert(e.at("tid").get<std::uint64_t>());
      runs += !of_host;
    } else if (e.at("ph") == "s") {
      EXPECT_EQ(e.at("name"), "submit");
      senders.insert(e.at("tid").get<std::uint64_t>());
      ++arrows;
    }
  }
  EXPECT_EQ(submitted, 2000u);
  EXPECT_EQ(tasks, 2000u);
  EXPECT_EQ(arrows, runs);
  EXPECT_EQ(senders, submitters);
  std::filesystem::remove(path);
}

TEST_F(trace, of_nothing_is_still_json) {
  const std::string path = file("empty.json");
  traced_runtime(device(), options(path)).stop();
  std::ifstream in(path);
  const auto json = nlohmann::json::parse(in);
  for (const auto& e : json.at("traceEvents")) EXPECT_EQ(e.at("ph"), "M");
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
  std::vector<std::string> files;
  const std::filesystem::path first(path);
  for (const auto& each : std::filesystem::directory_iterator(first.parent_path()))
    if (each.path().filename().string().starts_with(first.filename().string()))
      files.push_back(each.path().filename().string());
  std::sort(files.begin(), files.end());
  ASSERT_EQ(files.size(), 2u);
  const std::string where = device().name().substr(0, device().name().find(':'));
  EXPECT_EQ(files[0], first.filename().string());
  EXPECT_NE(files[1].find("." + std::to_string(::getpid()) + "." + where + "0.2"),
            std::string::npos)
      << files[1];
  for (const std::string& each : files) {
    const std::filesystem::path part = first.parent_path() / each;
    std::ifstream in(part);
    EXPECT_FALSE(nlohmann::json::parse(in).at("traceEvents").empty()) << each;
    std::filesystem::remove(part);
  }
}

}  // namespace
}  // namespace grosr::testing
