// Which processors are near a device, on a machine of two nodes that hwloc is told of; a thread
// never leaves those that it was given.
#include "grosr/simt/affinity.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

namespace grosr::simt {
namespace {

using processors = std::vector<unsigned>;

processors may_run_on() {
  cpu_set_t s;
  CPU_ZERO(&s);
  EXPECT_EQ(sched_getaffinity(0, sizeof s, &s), 0);
  processors all;
  for (unsigned p = 0; p < CPU_SETSIZE; ++p)
    if (CPU_ISSET(p, &s)) all.push_back(p);
  return all;
}

std::string set_of(const processors& all) {  // as hwloc writes it, 32 processors a word
  std::vector<unsigned> words(CPU_SETSIZE / 32);
  for (unsigned p : all) words[p / 32] |= 1u << p % 32;
  std::string text;
  for (unsigned i = CPU_SETSIZE / 32; i-- > 0;) {
    char word[16];
    std::snprintf(word, sizeof word, "0x%08x%s", words[i], i != 0 ? "," : "");
    text += word;
  }
  return text;
}

/// A machine whose nodes have these processors, and a device each, at 0000:17:00.0, 0000:18:00.0
/// and so on. hwloc takes this machine for it while it lives.
class machine {
 public:
  explicit machine(const std::vector<processors>& nodes) {
    EXPECT_GE(::close(::mkstemp(path_)), 0);
    std::ofstream f(path_);
    processors all;
    for (const auto& n : nodes) all.insert(all.end(), n.begin(), n.end());
    unsigned index = 1;
    const auto object = [&](const std::string& type, unsigned os, const processors& p,
                            std::size_t first_node, std::size_t node_count) {
      processors in;
      for (std::size_t i = 0; i < node_count; ++i) in.push_back(unsigned(first_node + i));
      const std::string c = set_of(p), n = set_of(in);
      f << "<object type=\"" << type << "\" os_index=\"" << os << "\" gp_index=\"" << index++;
      f << "\" cpuset=\"" << c << "\" complete_cpuset=\"" << c << "\" nodeset=\"" << n
        << "\" complete_nodeset=\"" << n << "\"";
      if (type == "Machine") f << " allowed_cpuset=\"" << c << "\" allowed_nodeset=\"" << n << "\"";
      if (type == "NUMANode") f << " local_memory=\"1000000000\"";
      f << ">\n";
    };
    f << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
         "<topology version=\"2.0\">\n";
    object("Machine", 0, all, 0, nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto os = unsigned(i);
      object("Package", os, nodes[i], i, 1);
      object("NUMANode", os, nodes[i], i, 1);
      f << "</object>\n";
      for (unsigned p : nodes[i]) {
        object("PU", p, {p}, i, 1);
        f << "</object>\n";
      }
      const std::string bus = std::to_string(17 + i);
      f << "<object type=\"Bridge\" gp_index=\"" << index++
        << "\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[" << bus << "-" << bus
        << "]\">\n";
      f << "<object type=\"PCIDev\" gp_index=\"" << index++ << "\" pci_busid=\"0000:" << bus
        << ":00.0\" pci_type=\"0302 [10de:2335] [10de:18be] a1\" pci_link_speed=\"0.0\"/>\n"
           "</object>\n</object>\n";
    }
    f << "</object>\n</topology>\n";
    f.close();
    ::setenv("HWLOC_XMLFILE", path_, 1);
  }
  ~machine() {
    ::unsetenv("HWLOC_XMLFILE");
    ::unlink(path_);
  }
  machine(const machine&) = delete;

 private:
  char path_[32] = "/tmp/grosr.XXXXXX";
};

class processors_nearby : public ::testing::Test {
 protected:
  void SetUp() override {
    all = may_run_on();
    if (!knows_topology()) GTEST_SKIP() << "built without hwloc";
    if (all.size() < 2) GTEST_SKIP() << "needs two processors";
    rest.assign(all.begin() + 1, all.end());
  }
  void TearDown() override { EXPECT_EQ(may_run_on(), all); }
  processors all, rest;
};

TEST_F(processors_nearby, are_those_of_the_device_s_node) {
  const machine two({{all[0]}, rest});
  EXPECT_EQ(processors_near("0000:17:00.0"), processors{all[0]});
  EXPECT_EQ(processors_near("0000:18:00.0"), rest);
}

TEST_F(processors_nearby, are_none_where_there_is_nothing_to_choose_or_nobody_knows) {
  {
    const machine two({{all[0]}, rest});
    EXPECT_TRUE(processors_near("0000:19:00.0").empty());
    EXPECT_TRUE(processors_near("").empty());
    EXPECT_TRUE(processors_near("somewhere").empty());
    EXPECT_TRUE(processors_near(device("host:0")).empty());
  }
  const machine one({all});
  EXPECT_TRUE(processors_near("0000:17:00.0").empty());
}

TEST_F(processors_nearby, are_those_that_the_thread_may_run_on) {
  const machine two({{all[0], 1000}, rest});
  EXPECT_EQ(processors_near("0000:17:00.0"), processors{all[0]});
  std::thread([&] {
    ASSERT_TRUE(set_affinity({all[0]}));
    EXPECT_TRUE(processors_near("0000:17:00.0").empty());  // all of them
    EXPECT_TRUE(processors_near("0000:18:00.0").empty());  // none of them
    EXPECT_EQ(may_run_on(), processors{all[0]});
  }).join();
}

TEST_F(processors_nearby, is_where_a_thread_and_those_that_it_starts_run) {
  std::thread([&] {
    ASSERT_TRUE(set_affinity(rest));
    EXPECT_EQ(may_run_on(), rest);
    std::thread([&] { EXPECT_EQ(may_run_on(), rest); }).join();
    EXPECT_FALSE(set_affinity({}));
    EXPECT_EQ(may_run_on(), rest);
  }).join();
}

}  // namespace
}  // namespace grosr::simt
