// Parts of the reserves (local.hpp): who may take of what is left when task memory is nearly full.
#include <algorithm>
#include <vector>

#include "run/tasks.hpp"

namespace grosr::testing {
namespace {

GROSR_RUNTIME_SUITE(reserve_parts);

constexpr std::uint32_t parts = 4, least = 100, reserve = 400, workers = 8;

/// A worker asks when so many batches are free; before that it gives up what it owns, if so.
struct question {
  std::uint32_t worker, free, gives_up;
};
struct answer {
  std::uint32_t may;
  std::uint32_t part;  ///< 1 + the part that the worker owns then, or 0
};

struct ask {
  std::uint32_t* owners;
  const question* questions;
  answer* answers;
  std::uint32_t n;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    run::view v{};
    v.common.reserve_owners = owners;
    v.sizes.reserve_parts = parts;
    std::uint32_t part[workers] = {};
    for (std::uint32_t i = 0; i < n; ++i) {
      const question q = questions[i];
      if (q.gives_up != 0) run::release_reserve(v, part[q.worker]);
      answers[i].may =
          run::owns_reserve(v, part[q.worker], q.worker, q.free, reserve, least) ? 1 : 0;
      answers[i].part = part[q.worker];
    }
  }
};

std::vector<answer> ask_all(device where, const std::vector<question>& questions) {
  const std::vector<std::uint32_t> nobody(parts, 0);
  std::vector<answer> all(questions.size());
  simt::buffer<std::uint32_t> owners(where, simt::space::device, parts);
  simt::buffer<question> asked(where, simt::space::device, questions.size());
  simt::buffer<answer> answers(where, simt::space::device, questions.size());
  owners.copy_from(nobody);
  asked.copy_from(questions);
  simt::run(where, {1, simt::warp_size},
            ask{owners.data(), asked.data(), answers.data(),
                static_cast<std::uint32_t>(questions.size())});
  answers.copy_to(all);
  return all;
}

TEST_P(reserve_parts, are_as_many_as_the_reserve_has_room_for) {
  // All of them ask when nearly all of the reserve is there: each part has one owner.
  std::vector<question> questions;
  for (std::uint32_t w = 0; w < workers; ++w) questions.push_back({w, reserve - 1, 0});
  std::vector<std::uint32_t> owned;
  for (const answer& a : ask_all(where(), questions)) {
    EXPECT_EQ(a.may != 0, a.part != 0);
    if (a.part != 0) owned.push_back(a.part);
  }
  std::sort(owned.begin(), owned.end());
  EXPECT_EQ(owned, (std::vector<std::uint32_t>{1, 2, 3, 4}));
}

TEST_P(reserve_parts, keep_the_lowest_for_one) {
  // The first three own parts 3, 2, 1 above the least. When only the least is left they may take no
  // more: one of them, which asks first, gets part 0, as nobody had it; the others stop.
  const auto all = ask_all(where(), {{0, 399, 0},
                                     {1, 399, 0},
                                     {2, 399, 0},
                                     {0, 100, 0},
                                     {1, 100, 0},
                                     {2, 1, 0},
                                     {3, 0, 0},
                                     {0, 0, 0}});
  EXPECT_EQ(all[0].part, 4u);
  EXPECT_EQ(all[1].part, 3u);
  EXPECT_EQ(all[2].part, 2u);
  EXPECT_EQ(all[3].part, 1u);
  EXPECT_EQ(all[4].may, 0u);
  EXPECT_EQ(all[5].may, 0u);
  EXPECT_EQ(all[6].may, 0u);
  EXPECT_EQ(all[7].may, 1u);  // down to the last one
}

TEST_P(reserve_parts, go_to_others_when_they_are_given_up) {
  const auto all = ask_all(where(), {{0, 50, 0}, {1, 50, 0}, {0, 399, 1}, {1, 50, 0}, {2, 250, 0}});
  EXPECT_EQ(all[0].part, 1u);
  EXPECT_EQ(all[1].may, 0u);
  EXPECT_EQ(all[2].part, 4u);  // it gave part 0 up, and took the highest
  EXPECT_EQ(all[3].part, 1u);
  EXPECT_EQ(all[4].part, 3u);  // 250 are left: more than parts 0 and 1
}

}  // namespace
}  // namespace grosr::testing
