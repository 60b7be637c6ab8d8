// readv and writev move what read and write would move of the same bytes laid end to end, for every
// group that calls, every number of vectors, length and alignment.
#include <fcntl.h>
#include <sys/uio.h>

#include <numeric>

#include "support/scramble.hpp"
#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(vectors);

enum class by { lane, warp, strong, relaxed, grid };

// Writes the vectors to one file, and reads another to other vectors of the same lengths.
template <by Who>
struct move_both {
  server_ref sys;
  int out, in;
  const iovec *from, *to;
  int count;
  grid_point* points;
  std::int64_t* r;  // of writev, of readv, of writev for who does not wait
  GROSR_DEVICE void operator()() const {
    if constexpr (Who == by::lane) {
      if (simt::thread_id() == 7) both(sys, sys);
    } else if constexpr (Who == by::warp) {
      if (simt::warp_id() == 1) both(sys.warp(), sys.warp());
    } else if constexpr (Who == by::strong) {
      both(sys.block(), sys.block());
    } else if constexpr (Who == by::relaxed) {
      both(sys.block(sys::producer), sys.block(sys::consumer));
    } else {
      both(sys.grid(sys::producer, points), sys.grid(sys::consumer, points + 1));
    }
  }
  template <class Out, class In>
  GROSR_DEVICE void both(const Out& a, const In& b) const {
    const long written = writev(a, out, from, count);
    const long got = readv(b, in, to, count);
    if (Who >= by::relaxed && simt::thread_id() == 32) r[2] = written;
    if (simt::thread_id() != (Who == by::lane ? 7 : Who == by::warp ? 32 : 0)) return;
    r[0] = written;
    r[1] = got;
  }
};

template <by Who>
void expect_moved(device d, const std::vector<std::size_t>& lengths, std::size_t there) {
  own_folder f;
  const std::size_t total = std::accumulate(lengths.begin(), lengths.end(), std::size_t{0});
  std::string content(there, 0);
  for (std::size_t i = 0; i < there; ++i)
    content[i] = static_cast<char>(testing::scramble(static_cast<std::uint32_t>(i) * 7));
  f.write("in", content);
  f.write("out", "");
  const int in = ::open(f.file("in").c_str(), O_RDONLY | O_CLOEXEC);
  const int out = ::open(f.file("out").c_str(), O_WRONLY | O_CLOEXEC);
  // Gaps of odd lengths between the vectors.
  std::vector<iovec> from, to;
  const std::size_t size = total + 32 * lengths.size() + 64;
  simt::buffer<unsigned char> source(d, simt::space::device, size),
      target(d, simt::space::device, size);
  std::vector<unsigned char> bytes(size);
  std::string sent, wanted(size, 0);
  std::size_t at = 1, read = 0;
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<unsigned char>(testing::scramble(static_cast<std::uint32_t>(i)));
  source.copy_from(bytes);
  for (std::size_t n : lengths) {
    from.push_back({source.data() + at, n});
    to.push_back({target.data() + at + 3, n});
    sent.append(reinterpret_cast<char*>(bytes.data()) + at, n);
    const std::size_t comes = std::min(n, there - read);
    wanted.replace(at + 3, comes, content, read, comes);
    read += comes;
    at += n + 1 + n % 29;
  }
  simt::buffer<iovec> from_at(d, simt::space::device, from.size()),
      to_at(d, simt::space::device, to.size());
  from_at.copy_from(from);
  to_at.copy_from(to);
  simt::buffer<std::int64_t> r(d, simt::space::device, 3);
  simt::buffer<grid_point> points(d, simt::space::device, 2);
  {
    server s(d, options_for(f));
    s.grant(in);
    s.grant(out);
    simt::run(d, {1, 96},
              move_both<Who>{s.ref(), out, in, from_at.data(), to_at.data(),
                             static_cast<int>(lengths.size()), points.data(), r.data()});
    s.drain(std::chrono::seconds(10));
  }
  ::close(in);
  ::close(out);
  std::int64_t results[3];
  r.copy_to(results);
  EXPECT_EQ(results[0], static_cast<std::int64_t>(total));
  EXPECT_EQ(results[1], static_cast<std::int64_t>(read));
  EXPECT_EQ(results[2], Who >= by::relaxed ? -EINPROGRESS : 0);
  EXPECT_TRUE(f.read("out") == sent);
  std::vector<unsigned char> got(size);
  target.copy_to(got);
  EXPECT_TRUE(std::equal(got.begin(), got.end(), wanted.begin(), [](unsigned char a, char b) {
    return a == static_cast<unsigned char>(b);
  }));
}

TEST_P(vectors, are_moved_by_every_group) {
  const std::vector<std::vector<std::size_t>> all{{5},
                                                  {0, 0, 1, 0},
                                                  {1, 16, 33, 4096, 7},
                                                  {65536, 1},
                                                  {40000, 30000, 20000, 0, 64},
                                                  {3, 150001, 9, 70000}};
  for (const auto& lengths : all)
    for (std::size_t there : {std::size_t{400000}, std::size_t{4100}}) {
      expect_moved<by::lane>(where(), lengths, there);
      expect_moved<by::warp>(where(), lengths, there);
      expect_moved<by::strong>(where(), lengths, there);
      expect_moved<by::relaxed>(where(), lengths, there);
      expect_moved<by::grid>(where(), lengths, there);
    }
}

// The leader of a warp has the vectors on its stack; the others have none.
struct lie_on_stack {
  server_ref sys;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    char text[40], other[8];
    for (unsigned i = 0; i < sizeof text; ++i) text[i] = static_cast<char>('a' + i % 26);
    const iovec all[] = {{text + 1, 3}, {nullptr, 0}, {text + 9, 2}};
    const iovec back[] = {{other, 2}, {other + 4, 4}};
    const bool leads = simt::lane_id() == 0;
    const iovec *const from = leads ? all : nullptr, *const to = leads ? back : nullptr;
    const int from_count = leads ? 3 : 0, to_count = leads ? 2 : 0;
    const auto c = sys.warp();
    const int file = static_cast<int>(open(c, "file", O_CREAT | O_RDWR, 0600));
    const long written = writev(c, file, from, from_count);
    auto t = writev(c.start(), file, from, from_count);
    const long more = wait(c, t);
    lseek(c, file, 0, SEEK_SET);
    auto u = readv(c.start(), file, to, to_count);
    const long read = wait(c, u);
    const bool right = other[0] == 'b' && other[1] == 'c' && other[4] == 'd' && other[5] == 'j' &&
                       other[6] == 'k' && other[7] == 'b';
    const long rest = readv(c, file, to, to_count);
    const bool right_again = other[0] == 'c' && other[1] == 'd' && other[4] == 'j';
    const long results[] = {written, more, read, right, rest, right_again && other[5] == 'k'};
    if (leads)
      for (unsigned i = 0; i < 6; ++i) r[i] = results[i];
  }
};

TEST_P(vectors, lie_on_stacks) {
  own_folder f;
  server s(where(), options_for(f));
  auto r = make<std::int64_t>(6);
  run(1, 32, lie_on_stack{s.ref(), r.data()});
  EXPECT_EQ(contents(r), (std::vector<std::int64_t>{5, 5, 6, 1, 4, 1}));
}

// A started call moves a piece, whatever the vectors are.
struct start_long {
  server_ref sys;
  int out, in;
  const iovec *from, *to;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    const auto c = sys.block().start();
    auto t = writev(c, out, from, 3);
    auto u = readv(c, in, to, 3);
    const long read = wait(c, u), written = wait(c, t);
    if (simt::thread_id() != 0) return;
    r[0] = written;
    r[1] = read;
  }
};

TEST_P(vectors, of_a_started_call_move_a_piece) {
  own_folder f;
  std::string content(200000, 0);
  for (std::size_t i = 0; i < content.size(); ++i)
    content[i] = static_cast<char>(testing::scramble(static_cast<std::uint32_t>(i)));
  f.write("in", content);
  f.write("out", "");
  const int in = ::open(f.file("in").c_str(), O_RDONLY | O_CLOEXEC);
  const int out = ::open(f.file("out").c_str(), O_WRONLY | O_CLOEXEC);
  auto from = make<char>(200000), to = make<char>(200000);
  from.copy_from(std::vector<char>(content.begin(), content.end()));
  const auto three = [&](simt::buffer<char>& b) {
    auto v = make<iovec>(3);
    v.copy_from(
        std::vector<iovec>{{b.data() + 5, 30000}, {b.data() + 40001, 50000}, {b.data(), 2}});
    return v;
  };
  auto from_at = three(from), to_at = three(to);
  auto r = make<std::int64_t>(2);
  {
    server s(where(), options_for(f));
    s.grant(in);
    s.grant(out);
    run(1, 64, start_long{s.ref(), out, in, from_at.data(), to_at.data(), r.data()});
  }
  ::close(in);
  ::close(out);
  EXPECT_EQ(contents(r), (std::vector<std::int64_t>{65536, 65536}));
  EXPECT_TRUE(f.read("out") == content.substr(5, 30000) + content.substr(40001, 35536));
  const auto got = contents(to);
  EXPECT_TRUE(std::string(got.begin() + 5, got.begin() + 30005) == content.substr(0, 30000));
  EXPECT_TRUE(std::string(got.begin() + 40001, got.begin() + 75537) ==
              content.substr(30000, 35536));
  EXPECT_EQ(got[75537], 0);
}

struct be_wrong {
  server_ref sys;
  int file;
  iovec* some;  // IOV_MAX + 1, of no bytes, and three more
  grid_point* points;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    unsigned i = 0, point = 0;
    const auto expect = [&](long wanted, int to, const iovec* v, int count) {
      const auto all_of = [&](const auto& c) {
        note(i++, writev(c, to, v, count), wanted);
        note(i++, readv(c, to, v, count), wanted);
        auto t = writev(c.start(), to, v, count);
        note(i++, wait(c.start(), t), wanted);
      };
      all_of(sys.lane());
      all_of(sys.warp());
      all_of(sys.block());
      all_of(sys.block(producer));
      note(i++, readv(sys.grid(consumer, points + point), to, v, count), wanted);
      auto t = readv(sys.grid(consumer, points + point + 1).start(), to, v, count);
      note(i++, wait(sys.grid(consumer, points + point + 1).start(), t), wanted);
      point += 2;
    };
    iovec* const bad = some + IOV_MAX + 1;
    expect(0, file, some, IOV_MAX);
    expect(0, file, nullptr, 0);
    expect(-EINVAL, file, some, IOV_MAX + 1);
    expect(-EINVAL, file, some, -1);
    expect(-EFAULT, file, nullptr, 1);
    expect(-EFAULT, file, bad, 2);      // {points, 8}, {null, 1}
    expect(-EINVAL, file, bad + 2, 2);  // half of all lengths, twice
    expect(-EBADF, 999, some, 2);
  }
  GROSR_DEVICE void note(unsigned i, long result, long wanted) const {
    if (result != wanted && result != -EINPROGRESS)
      simt::atomic_ref<std::int64_t>(*r).store(1000 * (i + 1) - result, simt::relaxed);
  }
};

TEST_P(vectors, that_are_wrong_are_refused_whole) {
  own_folder f;
  f.write("file", "12345678");
  const int file = ::open(f.file("file").c_str(), O_RDWR | O_CLOEXEC);
  auto r = make<std::int64_t>(1);
  auto points = make<grid_point>(16);
  std::vector<iovec> some(IOV_MAX + 5, {nullptr, 0});
  some[IOV_MAX + 1] = {points.data(), 8};
  some[IOV_MAX + 2] = {nullptr, 1};
  some[IOV_MAX + 3] = some[IOV_MAX + 4] = {points.data(), ~std::size_t{0} / 2};
  auto there = make<iovec>(some.size());
  there.copy_from(some);
  {
    server s(where(), options_for(f));
    s.grant(file);
    run(2, 64, be_wrong{s.ref(), file, there.data(), points.data(), r.data()});
  }
  EXPECT_EQ(contents(r)[0], 0);
  EXPECT_EQ(f.read("file"), "12345678");
  ::close(file);
}

}  // namespace
}  // namespace grosr::sys
