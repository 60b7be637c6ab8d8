// A started call is made like any other: its bytes arrive, its result waits for who waits for it,
// and what it held comes back, also when nobody does.
#include <fcntl.h>

#include "support/scale.hpp"
#include "support/scramble.hpp"
#include "support/seeds.hpp"
#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(tokens);

enum class by { lane, warp, mask, strong, producer, consumer, grid_producer, grid_consumer };

template <by Who>
GROSR_DEVICE auto caller_of(server_ref sys, grid_point* point) {
  if constexpr (Who == by::lane)
    return sys.lane();
  else if constexpr (Who == by::warp)
    return sys.warp();
  else if constexpr (Who == by::mask)
    return sys.warp(0x55555555u << simt::lane_id() % 2);
  else if constexpr (Who == by::strong)
    return sys.block();
  else if constexpr (Who == by::producer)
    return sys.block(sys::producer);
  else if constexpr (Who == by::consumer)
    return sys.block(sys::consumer);
  else if constexpr (Who == by::grid_producer)
    return sys.grid(sys::producer, point);
  else
    return sys.grid(sys::consumer, point);
}

template <by Who>
GROSR_DEVICE unsigned group_number() {
  const unsigned self = simt::block_id() * simt::block_size() + simt::thread_id();
  if constexpr (Who == by::lane)
    return self;
  else if constexpr (Who == by::warp)
    return self / 32;
  else if constexpr (Who == by::mask)
    return self / 32 * 2 + simt::lane_id() % 2;
  else if constexpr (Who == by::grid_producer || Who == by::grid_consumer)
    return 0;
  else
    return simt::block_id();
}

unsigned groups_of(by who, unsigned blocks, unsigned threads) {
  switch (who) {
    case by::lane:
      return blocks * threads;
    case by::warp:
      return blocks * threads / 32;
    case by::mask:
      return blocks * threads / 16;
    case by::grid_producer:
    case by::grid_consumer:
      return 1;
    default:
      return blocks;
  }
}

constexpr unsigned parts = 3;  // tokens of a group in flight

// Each group writes parts of its own to a file and reads them back, all in flight at once.
template <by Who>
struct round_trip {
  server_ref sys;
  int file;
  const unsigned char* from;
  unsigned char* to;
  grid_point* points;
  std::uint32_t bytes, stride;
  std::uint32_t* wrong;

  GROSR_DEVICE void operator()() const {
    grid_point* point = points;
    const std::size_t mine = std::size_t{group_number<Who>()} * parts * stride;
    const auto begin_of = [&](unsigned i) { return mine + std::size_t{i} * stride; };
    const auto write_one = [&](unsigned i) {
      const auto c = caller_of<Who>(sys, points + i).start();
      return pwrite(c, file, from + begin_of(i), bytes, static_cast<std::int64_t>(begin_of(i)));
    };
    auto w0 = write_one(0), w1 = write_one(1), w2 = write_one(2);
    const auto end = [&](unsigned i, auto& token) {
      const auto c = caller_of<Who>(sys, points + i).start();
      for (unsigned turn = 0; !test(c, token); ++turn) simt::pause(turn, "a token");
      expect(c, wait(c, token));
    };
    end(2, w2);
    end(0, w0);
    end(1, w1);
    point += parts;
    // A group's writes are complete; those of others are elsewhere.
    const auto read_one = [&](unsigned i) {
      const auto c = caller_of<Who>(sys, point + i).start();
      return pread(c, file, to + begin_of(i), bytes, static_cast<std::int64_t>(begin_of(i)));
    };
    if constexpr (Who == by::producer) simt::sync_block();
    auto r0 = read_one(0), r1 = read_one(1), r2 = read_one(2);
    const auto take = [&](unsigned i, auto& token) {
      const auto c = caller_of<Who>(sys, point + i).start();
      expect(c, wait(c, token));
    };
    take(1, r1);
    take(2, r2);
    take(0, r0);
  }
  template <class Caller>
  GROSR_DEVICE void expect(const Caller&, long result) const {
    if (result == static_cast<long>(bytes)) return;
    if (Caller::order == ordering::producer && result == -EINPROGRESS) return;
    simt::atomic_ref<std::uint32_t>(*wrong).fetch_add(1, simt::relaxed);
  }
};

template <by Who>
void expect_round_trip(device d, options o, const own_folder& f, std::uint32_t bytes,
                       unsigned blocks, unsigned threads) {
  // A grid's last block writes and any block may read: only one block orders the two.
  if (Who == by::grid_producer) blocks = 1;
  f.write("data", "");
  const int file = ::open(f.file("data").c_str(), O_RDWR | O_CLOEXEC);
  const std::uint32_t stride = bytes + 3;
  const std::size_t all = std::size_t{groups_of(Who, blocks, threads)} * parts * stride;
  std::vector<unsigned char> content(all), got(all);
  for (std::size_t i = 0; i < all; ++i)
    content[i] = static_cast<unsigned char>(testing::scramble(static_cast<std::uint32_t>(i)));
  simt::buffer<unsigned char> from(d, simt::space::device, all), to(d, simt::space::device, all);
  from.copy_from(content);
  simt::buffer<grid_point> points(d, simt::space::device, 2 * parts);
  simt::buffer<std::uint32_t> wrong(d, simt::space::device, 1);
  server s(d, o);
  s.grant(file);
  simt::run(d, {blocks, threads},
            round_trip<Who>{s.ref(), file, from.data(), to.data(), points.data(), bytes, stride,
                            wrong.data()});
  std::uint32_t bad = 0;
  wrong.copy_to({&bad, 1});
  EXPECT_EQ(bad, 0u);
  ::close(file);
  to.copy_to(got);
  const std::string written = f.read("data");
  for (std::size_t part = 0; part * stride < all; ++part)
    for (std::size_t i = part * stride; i < part * stride + bytes; ++i) {
      ASSERT_EQ(got[i], content[i]) << "of a read of " << bytes << ", byte " << i;
      ASSERT_EQ(static_cast<unsigned char>(written.at(i)), content[i])
          << "of a write of " << bytes << ", byte " << i;
    }
}

void expect_round_trips(device d, const options& o, const own_folder& f, std::uint32_t bytes) {
  expect_round_trip<by::lane>(d, o, f, bytes, 1, 64);
  expect_round_trip<by::warp>(d, o, f, bytes, 2, 64);
  expect_round_trip<by::mask>(d, o, f, bytes, 2, 64);
  expect_round_trip<by::strong>(d, o, f, bytes, 2, 64);
  expect_round_trip<by::producer>(d, o, f, bytes, 2, 64);
  expect_round_trip<by::consumer>(d, o, f, bytes, 2, 64);
  expect_round_trip<by::grid_producer>(d, o, f, bytes, 2, 64);
  expect_round_trip<by::grid_consumer>(d, o, f, bytes, 2, 64);
}

TEST_P(tokens, bring_and_take_the_right_bytes_for_every_group) {
  own_folder f;
  for (std::uint32_t bytes : {1u, 200u, 4097u})
    expect_round_trips(where(), options_for(f), f, bytes);
}

TEST_P(tokens, bring_and_take_the_right_bytes_in_every_schedule) {
  if (where().is_cuda()) GTEST_SKIP() << "schedules are the host backend's";
  own_folder f;
  options o = options_for(f);
  testing::for_seeds(
      10,
      [&] {
        o.threads = 3 - o.threads;  // 1, 2, 1 ...
        expect_round_trips(where(), o, f, 300);
      },
      2);
}

constexpr std::array<std::uint32_t, 3> few_chunks{32, 32, 32};

template <by Who>
struct drop_writes {
  server_ref sys;
  int file;
  std::uint64_t* from;  // a group's own
  grid_point* points;
  std::uint32_t turns;
  std::uint32_t* wrong;

  GROSR_DEVICE void operator()() const {
    const std::uint32_t group = group_number<Who>();
    for (std::uint32_t i = 0; i < turns; ++i) {
      const auto c = caller_of<Who>(sys, points + i).start();
      const std::uint64_t n = std::uint64_t{group} * turns + i;
      auto t = pwrite(c, file, from + n, 8, static_cast<std::int64_t>(8 * n));
      const long dropped = drop(c, t);
      const bool tells = Who == by::lane || Who == by::warp || Who == by::mask;
      if (dropped != 0 && (tells || dropped != -EINPROGRESS))
        simt::atomic_ref<std::uint32_t>(*wrong).fetch_add(1, simt::relaxed);
    }
  }
};

template <by Who>
void expect_dropped_writes(device d, const own_folder& f, unsigned blocks, std::uint32_t turns) {
  f.write("data", "");
  const int file = ::open(f.file("data").c_str(), O_RDWR | O_CLOEXEC);
  const std::uint32_t all = groups_of(Who, blocks, 64) * turns;
  std::vector<std::uint64_t> content(all), got(all);
  for (std::uint32_t i = 0; i < all; ++i) content[i] = testing::scramble(i);
  simt::buffer<std::uint64_t> from(d, simt::space::device, all);
  from.copy_from(content);
  simt::buffer<grid_point> points(d, simt::space::device, turns);
  simt::buffer<std::uint32_t> wrong(d, simt::space::device, 1);
  options o = options_for(f);
  o.chunks = few_chunks;
  server s(d, o);
  s.grant(file);
  simt::run(d, {blocks, 64},
            drop_writes<Who>{s.ref(), file, from.data(), points.data(), turns, wrong.data()});
  std::uint32_t bad = 0;
  wrong.copy_to({&bad, 1});
  EXPECT_EQ(bad, 0u);
  s.drain(std::chrono::seconds(60));
  ASSERT_EQ(::pread(file, got.data(), 8 * all, 0), static_cast<ssize_t>(8 * all));
  EXPECT_TRUE(got == content);
  ::close(file);
}

TEST_P(tokens, that_are_dropped_are_made_and_give_back_what_they_held) {
  own_folder f;
  const auto turns = static_cast<std::uint32_t>(testing::scaled(100, 20));
  expect_dropped_writes<by::lane>(where(), f, 1, turns);
  expect_dropped_writes<by::warp>(where(), f, 2, 4 * turns);
  expect_dropped_writes<by::mask>(where(), f, 2, 4 * turns);
  expect_dropped_writes<by::strong>(where(), f, 2, turns);
  expect_dropped_writes<by::producer>(where(), f, 2, turns);
  expect_dropped_writes<by::consumer>(where(), f, 2, turns);
  expect_dropped_writes<by::grid_producer>(where(), f, 2, turns);
  expect_dropped_writes<by::grid_consumer>(where(), f, 2, turns);
}

struct forget_some {
  server_ref sys;
  int file;
  char* text;
  std::uint32_t turns;
  std::uint32_t* wrong;
  GROSR_DEVICE void operator()() const {
    const unsigned self = simt::thread_id();
    if (self < 20) pread(sys.start(), file, text + 8 * self, 8, 0);
    simt::sync_block();
    for (std::uint32_t i = 0; i < turns; ++i) {
      char mine[8] = {};
      const long n = pread(sys, file, mine, 8, 0);
      if (n != 8 || mine[0] != '0' || mine[7] != '7')
        simt::atomic_ref<std::uint32_t>(*wrong).fetch_add(1, simt::relaxed);
    }
  }
};

TEST_P(tokens, that_nobody_waits_for_do_not_harm_others) {
  own_folder f;
  f.write("data", "01234567");
  const int file = ::open(f.file("data").c_str(), O_RDONLY | O_CLOEXEC);
  {
    options o = options_for(f);
    o.chunks = few_chunks;
    server s(where(), o);
    s.grant(file);
    auto text = make<char>(1024);
    auto wrong = make<std::uint32_t>(1);
    const auto turns = static_cast<std::uint32_t>(testing::scaled(50, 5));
    run(1, 128, forget_some{s.ref(), file, text.data(), turns, wrong.data()});
    EXPECT_EQ(contents(wrong)[0], 0u);
  }
  ::close(file);
}

}  // namespace
}  // namespace grosr::sys
