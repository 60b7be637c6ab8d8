// Every size fits its class and not the one below; classes are few, and waste little.
#include <gtest/gtest.h>

#include "grosr/alloc/detail/size_class.hpp"

namespace grosr::alloc {
namespace {

TEST(size_classes, fit_every_size_and_no_smaller_class_does) {
  for (std::uint32_t bytes = 1; bytes <= slab_bytes; ++bytes) {
    const std::uint32_t c = class_of(bytes);
    ASSERT_LT(c, slot_classes) << bytes;
    ASSERT_GE(slot_bytes(c), bytes);
    if (c > 0) {
      ASSERT_LT(slot_bytes(c - 1), bytes) << "class " << c - 1 << " fits too";
    }
  }
  for (std::uint64_t bytes :
       {std::uint64_t{slab_bytes} + 1, std::uint64_t{1} << 32, ~std::uint64_t{0}})
    EXPECT_EQ(class_of(bytes), run_class);
}

TEST(size_classes, are_in_order_multiples_of_16_and_as_documented) {
  EXPECT_EQ(slot_bytes(0), 16u);
  EXPECT_EQ(slot_bytes(31), 8192u);
  EXPECT_EQ(slot_bytes(slot_classes - 1), slab_bytes);
  for (std::uint32_t c = 0; c < slot_classes; ++c) {
    EXPECT_EQ(slot_bytes(c) % unit, 0u) << c;
    EXPECT_EQ(class_of(slot_bytes(c)), c);
    EXPECT_LE(slots_of(c), max_slots);
    if (c > 0) {
      EXPECT_GT(slot_bytes(c), slot_bytes(c - 1)) << c;
    }
  }
}

TEST(size_classes, are_at_most_four_an_octave_up_to_8192) {
  for (std::uint32_t low = 16; low < 8192; low *= 2) {
    std::uint32_t n = 0;
    for (std::uint32_t c = 0; c < slot_classes; ++c)
      n += slot_bytes(c) > low && slot_bytes(c) <= 2 * low;
    EXPECT_GE(n, 1u) << low;
    EXPECT_LE(n, 4u) << low;
  }
}

TEST(size_classes, waste_less_than_a_fifth_of_a_block_up_to_8192) {
  for (std::uint32_t bytes = 1; bytes <= 8192; ++bytes) {
    const std::uint32_t has = slot_bytes(class_of(bytes)), waste = has - bytes;
    ASSERT_TRUE(waste < unit || waste * 5 < has) << bytes << " bytes in a block of " << has;
  }
  for (std::uint32_t bytes = 8193; bytes <= slab_bytes; ++bytes)
    ASSERT_LE(slot_bytes(class_of(bytes)), 2 * bytes);
}

TEST(size_classes, fill_a_slab_up_to_a_sixteenth) {
  for (std::uint32_t c = 0; c < slot_classes; ++c) {
    const std::uint32_t used = slots_of(c) * slot_bytes(c);
    EXPECT_LE(used, slab_bytes);
    EXPECT_LT(slab_bytes - used, slot_bytes(c)) << "one more fits, class " << c;
    EXPECT_LE(slab_bytes - used, slab_bytes / 16) << "class " << c;
  }
  for (std::uint32_t c = 32; c < slot_classes; ++c) EXPECT_EQ(slots_of(c), slot_classes - c);
}

TEST(size_classes, of_an_alignment_are_the_least_multiples_of_it) {
  for (std::uint32_t alignment = 1; alignment <= slab_bytes; alignment *= 2) {
    for (std::uint32_t bytes = 1; bytes <= slab_bytes; bytes += bytes < 300 ? 1 : 97) {
      const std::uint32_t c = aligned_class_of(bytes, alignment);
      ASSERT_LT(c, slot_classes) << bytes << " aligned to " << alignment;
      ASSERT_GE(slot_bytes(c), bytes);
      if (alignment > unit) {
        ASSERT_EQ(slot_bytes(c) % alignment, 0u);
      }
      for (std::uint32_t below = class_of(bytes); below < c; ++below)
        ASSERT_TRUE(slot_bytes(below) % alignment != 0) << bytes << " aligned to " << alignment;
    }
    EXPECT_EQ(aligned_class_of(slab_bytes + 1, alignment), run_class);
  }
}

}  // namespace
}  // namespace grosr::alloc
