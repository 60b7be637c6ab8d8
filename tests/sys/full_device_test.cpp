// When slots, chunks or rings are full, calls wait their turn or say so; nothing leaks.
#include <fcntl.h>

#include "grosr/simt/wait.hpp"
#include "support/scale.hpp"
#include "support/seeds.hpp"
#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(full);

constexpr std::uint32_t all_chunks = 96;

class held_file {
 public:
  explicit held_file(const own_folder& f) {
    f.write("data", std::string(4096, 'x'));
    file_ = ::open(f.file("data").c_str(), O_RDONLY | O_CLOEXEC);
  }
  ~held_file() { ::close(file_); }
  held_file(const held_file&) = delete;
  int fd() const { return file_; }

 private:
  int file_;
};

options small(const own_folder& f) {
  options o = options_for(f);
  o.chunks = {32, 32, 32};
  return o;
}

struct read_all {
  server_ref sys;
  int file;
  char* to;
  std::uint32_t bytes, turns;
  std::uint32_t* wrong;
  GROSR_DEVICE void operator()() const {
    const std::size_t self = simt::block_id() * simt::block_size() + simt::thread_id();
    for (std::uint32_t i = 0; i < turns; ++i) {
      char* mine = to + self * bytes;
      mine[bytes - 1] = 0;
      const long n = pread(sys, file, mine, bytes, 0);
      if (n != static_cast<long>(bytes) || mine[bytes - 1] != 'x')
        simt::atomic_ref<std::uint32_t>(*wrong).fetch_add(1, simt::relaxed);
    }
  }
};

void expect_all_read(device d, const options& o, int file, unsigned blocks, unsigned threads,
                     std::uint32_t bytes, std::uint32_t turns) {
  server s(d, o);
  s.grant(file);
  simt::buffer<char> to(d, simt::space::device, std::size_t{blocks} * threads * bytes);
  simt::buffer<std::uint32_t> wrong(d, simt::space::device, 1);
  simt::run(d, {blocks, threads}, read_all{s.ref(), file, to.data(), bytes, turns, wrong.data()});
  std::uint32_t bad = 0;
  wrong.copy_to({&bad, 1});
  EXPECT_EQ(bad, 0u);
}

TEST_P(full, chunks_are_waited_for) {
  own_folder f;
  held_file file(f);
  const auto turns = static_cast<std::uint32_t>(testing::scaled(10, 2));
  expect_all_read(where(), small(f), file.fd(), 2, 256, 200, turns);
  expect_all_read(where(), small(f), file.fd(), 1, 256, 4000, turns);
}

TEST_P(full, rings_are_waited_for) {
  own_folder f;
  held_file file(f);
  options o = options_for(f);
  o.records = 32;
  o.shards = 1;
  for (unsigned threads : {1u, 2u}) {
    o.threads = threads;
    expect_all_read(where(), o, file.fd(), 4, 256, 8,
                    static_cast<std::uint32_t>(testing::scaled(20, 2)));
  }
}

TEST_P(full, everything_is_waited_for_in_every_schedule) {
  if (where().is_cuda()) GTEST_SKIP() << "schedules are the host backend's";
  own_folder f;
  held_file file(f);
  options o = small(f);
  o.records = 32;
  o.shards = 1;
  testing::for_seeds(
      20,
      [&] {
        o.threads = 3 - o.threads;
        expect_all_read(where(), o, file.fd(), 2, 128, 200, 2);
      },
      2);
}

// Takes all there is without waiting, gives it back, and does so again.
struct take_all {
  server_ref sys;
  int file;
  char* to;
  std::uint32_t rounds;
  std::uint32_t* begun;  // by round
  std::uint32_t* wrong;
  GROSR_DEVICE void operator()() const {
    const auto c = sys.attempt().start();
    const std::size_t self = simt::thread_id();
    using token = decltype(pread(c, 0, nullptr, 0, 0));
    for (std::uint32_t round = 0; round < rounds; ++round) {
      token held[4];
      for (unsigned i = 0; i < 4; ++i) {
        held[i] = pread(c, file, to + 4 * self + i, 1, 0);
        if (held[i].begun())
          simt::atomic_ref<std::uint32_t>(begun[round]).fetch_add(1, simt::relaxed);
        else if (held[i].code != -EAGAIN)
          simt::atomic_ref<std::uint32_t>(*wrong).fetch_add(1, simt::relaxed);
      }
      simt::sync_block();
      // Now there is none: who does not wait is told so.
      if (pread(sys.attempt(), file, to, 1, 0) != -EAGAIN)
        simt::atomic_ref<std::uint32_t>(*wrong).fetch_add(1, simt::relaxed);
      simt::sync_block();
      for (unsigned i = 0; i < 4; ++i)
        if (wait(c, held[i]) != (held[i].code == -EAGAIN ? -EAGAIN : 1))
          simt::atomic_ref<std::uint32_t>(*wrong).fetch_add(1, simt::relaxed);
      simt::sync_block();
    }
  }
};

TEST_P(full, attempts_are_told_and_leak_nothing) {
  own_folder f;
  held_file file(f);
  server s(where(), small(f));
  s.grant(file.fd());
  constexpr std::uint32_t rounds = 8;
  auto to = make<char>(1024);
  auto begun = make<std::uint32_t>(rounds);
  auto wrong = make<std::uint32_t>(1);
  run(1, 64, take_all{s.ref(), file.fd(), to.data(), rounds, begun.data(), wrong.data()});
  EXPECT_EQ(contents(wrong)[0], 0u);
  EXPECT_EQ(contents(begun), std::vector<std::uint32_t>(rounds, all_chunks));
}

// The same of slots: 2048 on the host backend.
struct take_slots {
  server_ref sys;
  std::uint32_t* begun;
  std::uint32_t* wrong;
  GROSR_DEVICE void operator()() const {
    const auto c = sys.attempt().start();
    using token = decltype(nothing(c));
    constexpr unsigned most = 40;
    for (std::uint32_t round = 0; round < 2; ++round) {
      token held[most];
      for (auto& t : held) {
        t = nothing(c);
        for (unsigned turn = 0; !t.begun() && turn < 20;
             ++turn) {  // the ring may be full, for a while
          simt::pause(turn, "the ring");
          t = nothing(c);
        }
        if (t.begun()) simt::atomic_ref<std::uint32_t>(begun[round]).fetch_add(1, simt::relaxed);
      }
      simt::sync_block();
      for (auto& t : held) {
        const bool has = t.begun();
        if (wait(c, t) != (has ? 0 : -EAGAIN))
          simt::atomic_ref<std::uint32_t>(*wrong).fetch_add(1, simt::relaxed);
      }
      simt::sync_block();
    }
  }
};

TEST_P(full, slots_are_told_of_and_come_back) {
  if (where().is_cuda()) GTEST_SKIP() << "one block cannot take all slots of a GPU";
  own_folder f;
  options o = options_for(f);
  o.records = 4096;
  o.shards = 1;
  server s(where(), o);
  auto begun = make<std::uint32_t>(2);
  auto wrong = make<std::uint32_t>(1);
  run(1, 64, take_slots{s.ref(), begun.data(), wrong.data()});
  EXPECT_EQ(contents(wrong)[0], 0u);
  EXPECT_EQ(contents(begun), (std::vector<std::uint32_t>{2048, 2048}));
}

struct lose_patience {
  server_ref sys;
  int file;
  char* to;
  std::int64_t* r;  // results, and how long they took
  GROSR_DEVICE void operator()() const {
    const auto c = sys.start();
    using token = decltype(pread(c, 0, nullptr, 0, 0));
    const unsigned self = simt::thread_id();
    token held[3];
    for (unsigned i = 0; i < 3; ++i) held[i] = pread(c, file, to + 3 * self + i, 1, 0);
    simt::sync_warp();
    std::uint64_t before = simt::clock_ns();
    const long by_lane = self == 7 ? pread(sys, file, to, 1, 0) : 0;
    if (self == 7) {
      r[0] = by_lane;
      r[1] = static_cast<std::int64_t>(simt::clock_ns() - before);
    }
    simt::sync_warp();
    before = simt::clock_ns();
    const long by_warp = pread(sys.warp(), file, to, 1, 0);
    const auto took = static_cast<std::int64_t>(simt::clock_ns() - before);
    const long by_block = pread(sys.block(), file, to, 1, 0);
    const long printed = print(sys, "no room\n");
    for (auto& t : held) wait(c, t);
    simt::sync_warp();
    const long after = pread(sys, file, to + self, 1, 0);
    if (self == 0) {
      r[2] = by_warp;
      r[3] = took;
      r[4] = by_block;
      r[5] = printed;
      r[6] = after;
    }
  }
};

TEST_P(full, patience_ends) {
  own_folder f;
  held_file file(f);
  options o = small(f);
  o.patience = std::chrono::milliseconds(200);
  server s(where(), o);
  s.grant(file.fd());
  auto to = make<char>(1024);
  auto r = make<std::int64_t>(7);
  run(1, 32, lose_patience{s.ref(), file.fd(), to.data(), r.data()});
  const auto got = contents(r);
  EXPECT_EQ(got[0], -EAGAIN);
  EXPECT_EQ(got[2], -EAGAIN);
  EXPECT_EQ(got[4], -EAGAIN);
  EXPECT_EQ(got[5], -EAGAIN);
  EXPECT_EQ(got[6], 1);
  for (int i : {1, 3}) {
    EXPECT_GE(got[i], 200'000'000);
    EXPECT_LT(got[i], 5'000'000'000);
  }
}

// Somebody's slot lies among those that are the warp's first choice.
struct attempt_all {
  server_ref sys;
  std::uint32_t* refused;
  GROSR_DEVICE void operator()() const {
    const bool holds = simt::thread_id() == 32;
    using token = decltype(nothing(sys.start()));
    token held;
    if (holds) held = nothing(sys.start());
    simt::sync_block();
    if (simt::warp_id() == 0 && nothing(sys.attempt()) != 0)
      simt::atomic_ref<std::uint32_t>(*refused).fetch_add(1, simt::relaxed);
    simt::sync_block();
    if (holds) wait(sys.start(), held);
  }
};

TEST_P(full, attempts_find_room_where_it_is) {
  own_folder f;
  server s(where(), options_for(f));
  auto refused = make<std::uint32_t>(1);
  run(1, 64, attempt_all{s.ref(), refused.data()});
  EXPECT_EQ(contents(refused)[0], 0u);
}

}  // namespace
}  // namespace grosr::sys
