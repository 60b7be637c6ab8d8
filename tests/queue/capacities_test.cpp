// Queues refuse capacities that they cannot have, in words, and take all others.
#include <gtest/gtest.h>

#include <string>

#include "grosr/queue/call_ring.hpp"
#include "grosr/queue/ring.hpp"
#include "grosr/queue/submission_ring_owner.hpp"

namespace grosr::queue {
namespace {

template <class Queue>
std::string refusal(std::uint32_t capacity) {
  try {
    Queue q(device(), capacity);
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::invalid_option);
    return e.what();
  }
  return "";
}

template <class Queue>
class capacities : public ::testing::Test {};
template <class Queue>
constexpr unsigned least = 2;
template <>
constexpr unsigned least<submission_ring> = 8;
template <>
constexpr unsigned least<call_ring> = 32;
using queues = ::testing::Types<ring<std::uint32_t>, submission_ring, call_ring>;
TYPED_TEST_SUITE(capacities, queues);

TYPED_TEST(capacities, that_are_refused) {
  for (std::uint32_t bad : {0u, 1u, 3u, 6u, 33u, 1000u, 0x80000000u, 0xffffffffu}) {
    const std::string text = refusal<TypeParam>(bad);
    EXPECT_NE(text.find(std::to_string(bad)), std::string::npos) << text;
    EXPECT_NE(text.find("must be a power of two from " + std::to_string(least<TypeParam>)),
              std::string::npos)
        << text;
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
}

TYPED_TEST(capacities, that_are_taken) {
  for (std::uint32_t good : {32u, 64u, 4096u}) EXPECT_EQ(refusal<TypeParam>(good), "");
}

TEST(capacity, of_a_ring_begins_at_2) { EXPECT_EQ(refusal<ring<std::uint64_t>>(2), ""); }

TEST(capacity, of_submission_rings_begins_at_8) {
  EXPECT_EQ(refusal<submission_ring>(8), "");
  EXPECT_NE(refusal<submission_ring>(4).find(
                "capacity of 4 was asked for; it must be a power of two from 8 to 8192"),
            std::string::npos);
}

TEST(capacity, of_call_rings_begins_at_32) {
  EXPECT_EQ(refusal<call_ring>(32), "");
  EXPECT_NE(
      refusal<call_ring>(16).find("capacity of 16 was asked for; it must be a power of two from "
                                  "32 to 1073741824"),
      std::string::npos);
}

TEST(capacity, says_what_memory_it_takes) {
  EXPECT_EQ(ring<std::uint32_t>::bytes(64), sizeof(ring_control) + 64 * 8);
  EXPECT_GE(submission_ring_memory::device_bytes(64), 64 * sizeof(packet));
}

}  // namespace
}  // namespace grosr::queue
