// Devices are listed, named and refused in words that say what to do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "grosr/simt/device.hpp"
#include "support/errors.hpp"

namespace grosr {
namespace {

TEST(device_names, round_trip) {
  const auto all = device::list();
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.back().kind(), backend::host);
  for (const device& d : all) {
    EXPECT_EQ(device(d.name()), d);
    EXPECT_FALSE(d.properties().description.empty());
    EXPECT_FALSE(d.properties().architecture.empty());
    EXPECT_GE(d.properties().sms, 1u);
    EXPECT_GE(d.properties().max_threads_per_block, 1024u);
    EXPECT_GT(d.properties().memory, 0u);
    EXPECT_LE(d.properties().memory_free, d.properties().memory);
  }
  EXPECT_EQ(device("host"), device("host:0"));
  EXPECT_EQ(device(), device("host:0"));
  EXPECT_EQ(device::best(), all.front());
}

TEST(device_names, say_why_there_is_no_gpu) {
  EXPECT_EQ(device::cuda_status().empty(), device::list().front().is_cuda());
}

TEST(device_names, refuse_what_is_not_there) {
  for (const char* name : {"", "gpu", "cuda:x", "cuda:-1", "cuda:999", "host:1", "host:", "host:0x",
                           "host:0 ", "cuda:99999999999999999999", "HOST:0", ":", "host::0"}) {
    try {
      device d{std::string_view(name)};
      ADD_FAILURE() << name << " became " << d.name();
    } catch (const error& e) {
      const std::string text = e.what();
      EXPECT_TRUE(e.code() == errc::no_such_device || e.code() == errc::not_built) << text;
      EXPECT_NE(text.find('"' + std::string(name) + '"'), std::string::npos) << text;
      EXPECT_NE(text.find("host:0"), std::string::npos) << text;
      EXPECT_EQ(text.find('\n'), std::string::npos);
    }
  }
}

TEST(device_names, more_host_devices_by_environment) {
  setenv("GROSR_HOST_DEVICES", "3", 1);
  EXPECT_EQ(device("host:2").index(), 2);
  EXPECT_THROW(device("host:3"), error);
  unsetenv("GROSR_HOST_DEVICES");
}

// One line each, that names the variable, what it is and what it may be.
TEST(device_names, refuse_what_is_no_number_in_the_environment) {
  for (const auto& [name, range] : {std::pair{"GROSR_HOST_DEVICES", "from 1 to 16"},
                                    {"GROSR_HOST_WORKERS", "from 1 to 1048576"},
                                    {"GROSR_HOST_STACK", "from 16 to 1048576"},
                                    {"GROSR_SEED", "from 0 to 18446744073709551615"}}) {
    for (const char* text : {"nan", "-1", " 1", "1e9", "3x", "99999999999999999999", "/dev/null"}) {
      setenv(name, text, 1);
      const error e = testing::error_of([] { device("host:0"); });
      EXPECT_EQ(e.code(), errc::invalid_option);
      EXPECT_EQ(e.what(), std::string(name) + " is '" + text + "'; set it to a number " + range +
                              ", or not at all");
    }
    setenv(name, "", 1);
    EXPECT_NO_THROW(device("host:0")) << name;
    unsetenv(name);
  }
}

TEST(device_names, workers_can_be_capped) {
  setenv("GROSR_HOST_WORKERS", "1", 1);
  EXPECT_EQ(device("host:0").properties().sms, 1u);
  unsetenv("GROSR_HOST_WORKERS");
}

TEST(errors, compare_by_kind_and_name_themselves) {
  const error e(errc::watchdog, "the text");
  EXPECT_EQ(e.code(), errc::watchdog);
  EXPECT_NE(e.code(), errc::deadlock);
  EXPECT_STREQ(e.what(), "the text");
  EXPECT_STREQ(e.code().category().name(), "grosr");
  for (int i = 1; i <= static_cast<int>(errc::misuse); ++i) {
    EXPECT_EQ(error_category().message(i).find("unknown"), std::string::npos) << i;
  }
}

}  // namespace
}  // namespace grosr
