// The packed words of run/ keep what is put into them, up to their fields' ends, and wrap together.
#include <gtest/gtest.h>

#include "grosr/run/detail/words.hpp"

namespace grosr::run {
namespace {

TEST(words, of_levels_are_sets) {
  EXPECT_EQ(levels_above(0), all_levels & ~level_bit(0));
  EXPECT_EQ(levels_above(priority_levels - 1), 0u);
  for (unsigned l = 0; l < priority_levels; ++l) {
    EXPECT_TRUE(has_level(all_levels, l));
    EXPECT_FALSE(has_level(levels_above(l), l));
    EXPECT_EQ(hint::of(l, false), level_bit(l));
    EXPECT_EQ(hint::of(l, true), hint::for_blocks(level_bit(l)));
    EXPECT_TRUE(has_level(hint::levels_of_blocks(hint::of(l, true)), l));
    for (unsigned type = 0; type < max_task_types; ++type) {
      EXPECT_NE(kind_bit(kind_of(type, l)) & kinds_of_levels(level_bit(l)), 0u);
      EXPECT_EQ(kind_bit(kind_of(type, l)) & kinds_of_levels(levels_above(l)), 0u);
    }
  }
  EXPECT_EQ(hint::work & (hint::starving | hint::cancelling), 0u);
}

TEST(words, a_ref_keeps_its_fields_at_their_ends) {
  const ref r = ref::make(ref::where_mask, true, ref::records_mask, ref::records_mask,
                          ref::type_mask, ref::level_mask, true);
  EXPECT_EQ(r.where(), ref::where_mask);
  EXPECT_EQ(r.first(), ref::records_mask);
  EXPECT_EQ(r.count(), ref::records_mask);
  EXPECT_EQ(r.type(), ref::type_mask);
  EXPECT_EQ(r.level(), ref::level_mask);
  EXPECT_TRUE(r.slot() && r.whole());
  EXPECT_FALSE(r.split().whole());
  const ref none = ref::make(0, false, 0, 0, 0, 0, false);
  EXPECT_TRUE(none);  // names batch 0, and is not nothing
  EXPECT_FALSE(none.slot() || none.whole());
}

TEST(words, a_ref_is_split_into_two_that_have_all_its_records) {
  const ref r = ref::make(7, false, 3, 20, 2, 1, true);
  const ref first = r.take(8), rest = r.rest(8);
  EXPECT_EQ(first.first(), 3u);
  EXPECT_EQ(first.count(), 8u);
  EXPECT_EQ(rest.first(), 11u);
  EXPECT_EQ(rest.count(), 12u);
  EXPECT_FALSE(first.whole() || rest.whole());
  EXPECT_TRUE(r.take(20).whole());
}

TEST(words, a_destination_keeps_a_status_or_a_kind_beside_its_place) {
  const destination h = destination::in_frame(0xffffffffu, destination::offset_mask);
  EXPECT_TRUE(h && !h.host());
  EXPECT_EQ(h.where(), 0xffffffffu);
  EXPECT_EQ(h.offset(), destination::offset_mask);
  EXPECT_EQ(h.with_status(-4095).status(), -4095);
  EXPECT_EQ(h.with_status(-4095).plain().bits, h.bits);
  const std::uint64_t kind = with_kind(h, 31, 7);
  EXPECT_EQ(type_of(kind), 31u);
  EXPECT_EQ(level_of(kind), 7u);
  EXPECT_EQ(destination_of(kind).bits, h.bits);
  EXPECT_TRUE(destination::of_host(0).host());
}

TEST(words, generations_of_slots_wrap) {
  constexpr std::uint32_t last = slot_word::generation_mask;
  EXPECT_EQ(slot_word::generation(slot_word::of(last, true)), last);
  EXPECT_TRUE(slot_word::failed(slot_word::of(last, true)));
  EXPECT_TRUE(slot_word::reached(slot_word::of(last, true), last));
  EXPECT_FALSE(slot_word::reached(slot_word::of(last - 1, true), last));
  EXPECT_TRUE(slot_word::reached(slot_word::of(0, false), last));
  EXPECT_FALSE(slot_word::reached(slot_word::of(last, false), 0));
}

TEST(words, epochs_wrap_in_what_the_host_asks_and_what_the_kernel_says) {
  for (std::uint32_t epoch : {1u, 0x3fffffffu, 0x40000000u, 0x7fffffffu, 0xffffffffu}) {
    const std::uint32_t asked = control_word::of(epoch, control_request::abort);
    EXPECT_EQ(control_word::asked(asked), control_request::abort);
    EXPECT_TRUE(control_word::concerns(asked, epoch));
    EXPECT_TRUE(control_word::concerns(asked, epoch - 1));  // it is in the way
    EXPECT_FALSE(control_word::concerns(asked, epoch + 1));
    EXPECT_TRUE(state_word::is_of(state_word::there(epoch), epoch));
    EXPECT_TRUE(state_word::is_of(state_word::leaving(epoch), epoch));
    EXPECT_FALSE(state_word::is_of(state_word::there(epoch), epoch + 1));
    EXPECT_TRUE((signals{hint::work, epoch}.says_leave(epoch)));
  }
  EXPECT_TRUE((signals{0, leave_abort}.says_leave(3)));
  EXPECT_FALSE(signals{}.says_leave(3));
}

TEST(words, counts_do_not_run_into_each_other) {
  EXPECT_EQ(activity_count::holders(5 * activity_count::activation), 5u);
  EXPECT_EQ(activity_count::holders(5 * activity_count::activation - 5), 0u);
  const std::uint64_t count = slot_count::of(512, 0) + slot_count::of(3, 1);
  EXPECT_EQ(slot_count::done(count), 515u);
  EXPECT_TRUE(slot_count::any_failed(count));
  EXPECT_FALSE(slot_count::any_failed(slot_count::of(512, 0)));
  EXPECT_EQ(heartbeat_word::type_plus_one(heartbeat_word::of(16, 0xffffffffu)), 16u);
}

}  // namespace
}  // namespace grosr::run
