// Completions on the host: each goes once to the port that its target names, alone or in a batch.
#include "grosr/queue/completion.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

namespace grosr::queue {
namespace {

class port final : public completion_port {
 public:
  ~port() override { end(); }
  void end() { close(true); }

  std::vector<completion> came;
  std::vector<std::uint32_t> together;  // how many came at a time
  std::uint32_t expected = 0;

  completion_target target(std::uint64_t waiter) const {
    return completion_target::of(number(), waiter);
  }

 private:
  void expect(std::uint32_t count) override { expected += count; }
  void complete(const completion* ended, std::uint32_t count) override {
    came.insert(came.end(), ended, ended + count);
    together.push_back(count);
  }
};

void end(const port& p, std::uint64_t waiter, std::int64_t result) {
  complete(p.target(waiter), {0, result, nullptr, 0, 0});
}

TEST(completions, alone_go_at_once) {
  port p;
  expect(p.target(5), 3);
  EXPECT_EQ(p.expected, 3u);
  end(p, 5, -7);
  ASSERT_EQ(p.came.size(), 1u);
  EXPECT_EQ(p.came[0].waiter, 5u);
  EXPECT_EQ(p.came[0].result, -7);
}

TEST(completions, of_a_batch_go_together) {
  port a, b;
  {
    completion_batch together;
    end(a, 1, 10);
    end(a, 2, 20);
    end(b, 3, 30);
    end(a, 4, 40);
    EXPECT_TRUE(a.came.empty());
    together.flush();
    EXPECT_EQ(a.together, (std::vector<std::uint32_t>{2, 1}));
    EXPECT_EQ(b.together, (std::vector<std::uint32_t>{1}));
    end(b, 5, 50);
    EXPECT_EQ(b.came.size(), 1u);
  }
  ASSERT_EQ(b.came.size(), 2u);
  EXPECT_EQ(b.came[1].waiter, 5u);
  EXPECT_EQ(b.came[1].result, 50);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(a.came[i].result, std::int64_t(10 * a.came[i].waiter));
}

TEST(completions, of_a_batch_that_is_full_do_not_wait) {
  port p;
  completion_batch together;
  std::uint64_t made = 0;
  while (p.came.empty() && made < 10'000) end(p, made++, 0);
  ASSERT_EQ(p.came.size(), made);
  for (std::uint64_t i = 0; i < made; ++i) EXPECT_EQ(p.came[i].waiter, i);
}

TEST(completions, of_a_batch_within_another_wait_for_the_outer) {
  port p;
  {
    completion_batch outer;
    {
      completion_batch inner;
      end(p, 1, 1);
      inner.flush();
    }
    EXPECT_TRUE(p.came.empty());
    end(p, 2, 2);
    hand_over_kept();  // as who is about to wait
    EXPECT_EQ(p.came.size(), 2u);
    end(p, 3, 3);
  }
  EXPECT_EQ(p.came.size(), 3u);
  hand_over_kept();  // nothing is kept
  end(p, 4, 4);
  EXPECT_EQ(p.came.size(), 4u);
}

TEST(completions, of_a_port_that_closed_go_nowhere) {
  std::optional<port> p(std::in_place);
  const completion_target gone = p->target(1);
  {
    completion_batch together;
    complete(gone, {});
    p.reset();
  }
  complete(gone, {});
  expect(gone);
  port other;  // may have the number of the first: nothing was to come for it
  EXPECT_TRUE(other.came.empty());
  EXPECT_EQ(other.expected, 0u);
}

}  // namespace
}  // namespace grosr::queue
