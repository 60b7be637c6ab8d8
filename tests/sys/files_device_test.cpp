// Files as kernels see them: what they write is there, what they read is what is there, for every
// group that calls, at every length and alignment.
#include <fcntl.h>
#include <sys/stat.h>

#include <numeric>

#include "support/scale.hpp"
#include "support/scramble.hpp"
#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(files);

GROSR_DEVICE unsigned char byte_at(std::uint64_t i) {
  return static_cast<unsigned char>(testing::scramble(static_cast<std::uint32_t>(i)));
}

std::string sample(std::size_t n) {
  std::string s(n, 0);
  for (std::size_t i = 0; i < n; ++i) s[i] = static_cast<char>(byte_at(i));
  return s;
}

enum class by { lane, warp, strong, consumer, producer };

// One group reads `bytes` at `offset` of a file to `to`, and says what it got.
template <by Who>
struct read_file {
  server_ref sys;
  unsigned char* to;
  std::uint64_t bytes;
  std::int64_t offset;
  std::int64_t* results;  // of open, pread, close

  GROSR_DEVICE void operator()() const {
    if constexpr (Who == by::lane) {
      if (simt::thread_id() == 5) all(sys);
    } else if constexpr (Who == by::warp) {
      if (simt::warp_id() == 1) all(sys.warp());
    } else if constexpr (Who == by::strong) {
      all(sys.block());
    } else {
      all(sys.block(sys::consumer));
    }
  }
  template <class Caller>
  GROSR_DEVICE void all(const Caller& c) const {
    const long file = open(c, "in", O_RDONLY);
    const long got = pread(c, static_cast<int>(file), to, bytes, offset);
    const long closed = close(c, static_cast<int>(file));
    const bool notes =
        Who == by::lane || (Who == by::warp ? simt::lane_id() : simt::thread_id()) == 0;
    if (!notes) return;
    results[0] = file;
    results[1] = got;
    results[2] = closed;
  }
};

template <by Who>
void expect_reads(device d, std::size_t size, std::size_t offset, std::size_t bytes,
                  std::size_t shift) {
  own_folder f;
  const std::string content = sample(size);
  f.write("in", content);
  server s(d, options_for(f));
  simt::buffer<unsigned char> to(d, simt::space::device, bytes + shift + 64);
  simt::buffer<std::int64_t> results(d, simt::space::device, 3);
  simt::run(d, {1, 96},
            read_file<Who>{s.ref(), to.data() + shift, bytes, static_cast<std::int64_t>(offset),
                           results.data()});
  std::vector<std::int64_t> r(3);
  results.copy_to(r);
  EXPECT_GE(r[0], 0);
  const std::size_t expected = offset < size ? std::min(bytes, size - offset) : 0;
  EXPECT_EQ(r[1], static_cast<std::int64_t>(expected));
  EXPECT_EQ(r[2], 0);
  std::vector<unsigned char> got(to.size());
  to.copy_to(got);
  std::string wanted(to.size(), 0);
  if (expected != 0) std::copy_n(content.begin() + offset, expected, wanted.begin() + shift);
  EXPECT_TRUE(
      std::equal(got.begin(), got.end(), wanted.begin(),
                 [](unsigned char a, char b) { return a == static_cast<unsigned char>(b); }))
      << size << " " << offset << " " << bytes << " " << shift;
  EXPECT_EQ(s.statistics().denied, 0u);
}

TEST_P(files, are_read_whole_by_every_group) {
  const struct {
    std::size_t size, offset, bytes, shift;
  } cases[] = {{1, 0, 1, 0},         {100, 3, 50, 1},         {100, 90, 50, 15},
               {100, 200, 10, 0},    {300, 0, 300, 7},        {5000, 1, 4096, 3},
               {70000, 5, 65536, 0}, {200000, 17, 150001, 9}, {300000, 0, 400000, 4}};
  for (const auto& c : cases) {
    expect_reads<by::lane>(where(), c.size, c.offset, c.bytes, c.shift);
    expect_reads<by::warp>(where(), c.size, c.offset, c.bytes, c.shift);
    expect_reads<by::strong>(where(), c.size, c.offset, c.bytes, c.shift);
    expect_reads<by::consumer>(where(), c.size, c.offset, c.bytes, c.shift);
  }
}

// Groups write the parts of a file in turn; parts have all lengths and alignments.
template <by Who>
struct write_parts {
  server_ref sys;
  int file;
  unsigned char* from;  // as long as the file
  std::uint32_t parts, most;
  std::int64_t* wrong;

  GROSR_DEVICE void operator()() const {
    const unsigned group = Who == by::lane ? 1 : Who == by::warp ? 32 : simt::block_size();
    const std::uint32_t a_block = simt::block_size() / group;
    const std::uint32_t mine = simt::block_id() * a_block + simt::thread_id() / group;
    for (std::uint32_t i = mine; i < parts; i += a_block * simt::grid_size()) {
      const std::uint64_t begin = begin_of(i), bytes = begin_of(i + 1) - begin;
      for (std::uint64_t k = simt::thread_id() % group; k < bytes; k += group)
        from[begin + k] = byte_at(begin + k);
      if constexpr (Who == by::lane) {
        write_one(sys, begin, bytes);
      } else if constexpr (Who == by::warp) {
        simt::sync_warp();
        write_one(sys.warp(), begin, bytes);
      } else if constexpr (Who == by::strong) {
        write_one(sys.block(), begin, bytes);
      } else {
        write_one(sys.block(sys::producer), begin, bytes);
      }
    }
  }
  GROSR_DEVICE std::uint64_t begin_of(std::uint32_t i) const {
    return i == 0 || i == parts ? std::uint64_t{i} * most
                                : std::uint64_t{i} * most + testing::scramble(i) % most;
  }
  template <class Caller>
  GROSR_DEVICE void write_one(const Caller& c, std::uint64_t begin, std::uint64_t bytes) const {
    const long n = pwrite(c, file, from + begin, bytes, static_cast<std::int64_t>(begin));
    const bool told = Caller::order != ordering::producer || simt::warp_id() == 0;
    if (n != (told ? static_cast<long>(bytes) : -EINPROGRESS))
      simt::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(wrong))
          .fetch_add(1, simt::relaxed);
  }
};

template <by Who>
void expect_written(device d, std::uint32_t parts, std::uint32_t most) {
  own_folder f;
  f.write("out", "");
  const int file = ::open(f.file("out").c_str(), O_WRONLY | O_CLOEXEC);
  {
    server s(d, options_for(f));
    s.grant(file);
    simt::buffer<unsigned char> from(d, simt::space::device, std::size_t{parts} * most);
    simt::buffer<std::int64_t> wrong(d, simt::space::device, 1);
    simt::run(d, {2, 64}, write_parts<Who>{s.ref(), file, from.data(), parts, most, wrong.data()});
    std::int64_t bad = 0;
    wrong.copy_to({&bad, 1});
    EXPECT_EQ(bad, 0);
    s.drain(std::chrono::seconds(10));
  }
  ::close(file);
  EXPECT_TRUE(f.read("out") == sample(std::size_t{parts} * most)) << parts << " " << most;
}

TEST_P(files, are_written_whole_by_every_group) {
  const auto parts = static_cast<std::uint32_t>(testing::scaled(64, 8));
  for (std::uint32_t most : {100u, 5000u, 100000u}) {
    const std::uint32_t n = most > 5000 ? parts / 8 : parts;
    expect_written<by::lane>(where(), n, most);
    expect_written<by::warp>(where(), n, most);
    expect_written<by::strong>(where(), n, most);
    expect_written<by::producer>(where(), n, most);
  }
}

struct write_too_much {
  server_ref sys;
  int file;
  const unsigned char* from;
  std::uint64_t bytes;
  std::int64_t* results;
  GROSR_DEVICE void operator()() const {
    const long bad = pwrite(sys.block(producer), -1, from, bytes, 0);
    const long most = pwrite(sys.block(producer), file, from, bytes, -static_cast<std::int64_t>(1));
    if (simt::thread_id() == 0) {
      results[0] = bad;
      results[1] = most;
    }
  }
};

TEST_P(files, that_fail_let_all_threads_of_a_producer_go) {
  own_folder f;
  f.write("out", "");
  const int file = ::open(f.file("out").c_str(), O_WRONLY | O_CLOEXEC);
  {
    server s(where(), options_for(f));
    s.grant(file);
    auto from = make<unsigned char>(200000);
    auto results = make<std::int64_t>(2);
    run(1, 96, write_too_much{s.ref(), file, from.data(), from.size(), results.data()});
    EXPECT_EQ(contents(results), (std::vector<std::int64_t>{-EBADF, -EINVAL}));
  }
  ::close(file);
}

struct own_name {
  server_ref sys;
  std::int64_t* results;
  GROSR_DEVICE void operator()() const {
    const std::uint32_t self = simt::thread_id();
    if (self >= 40) return;
    char name[8] = "file-00";
    name[5] = static_cast<char>('0' + self / 10);
    name[6] = static_cast<char>('0' + self % 10);
    const long file = sys::open(sys, name, O_CREAT | O_WRONLY, 0600);
    char text[40];
    for (std::uint32_t i = 0; i < self; ++i) text[i] = static_cast<char>('a' + self % 26);
    const long written = sys::write(sys, static_cast<int>(file), text, self);
    struct stat info {};
    const long told = sys::fstat(sys, static_cast<int>(file), &info);
    const long closed = sys::close(sys, static_cast<int>(file));
    results[4 * self] = file >= 0;
    results[4 * self + 1] = written;
    results[4 * self + 2] = told == 0 ? info.st_size : -1;
    results[4 * self + 3] = closed;
  }
};

TEST_P(files, are_made_by_lanes_from_their_own_stacks) {
  own_folder f;
  server s(where(), options_for(f));
  auto results = make<std::int64_t>(40 * 4);
  run(1, 64, own_name{s.ref(), results.data()});
  const auto r = contents(results);
  for (std::uint32_t self = 0; self < 40; ++self) {
    EXPECT_EQ(r[4 * self], 1);
    EXPECT_EQ(r[4 * self + 1], self);
    EXPECT_EQ(r[4 * self + 2], self);
    EXPECT_EQ(r[4 * self + 3], 0);
    char name[8];
    std::snprintf(name, sizeof name, "file-%02u", self);
    EXPECT_EQ(f.read(name), std::string(self, static_cast<char>('a' + self % 26)));
  }
}

struct whole_life {
  server_ref sys;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    const auto c = sys.warp();
    unsigned i = 0;
    const auto note = [&](long result) {
      if (simt::lane_id() == 0) r[i] = result;
      ++i;
    };
    note(mkdir(c, "sub", 0700));
    const long made = open(c, "sub/a", O_CREAT | O_RDWR, 0600);
    note(made >= 0);
    const int file = static_cast<int>(made);
    note(write(c, file, "hello world", 11));
    note(lseek(c, file, 6, SEEK_SET));
    char text[8] = {};
    note(read(c, file, text, 5));
    note(text[0] == 'w' || simt::lane_id() != 0);
    note(ftruncate(c, file, 5));
    note(fsync(c, file));
    note(fallocate(c, file, 0, 0, 4096));
    note(close(c, file));
    note(close(c, file));
    note(rename(c, "sub/a", "sub/b"));
    note(unlink(c, "sub/a"));
    const long directory = open(c, "sub", O_RDONLY | O_DIRECTORY);
    note(directory >= 0);
    unsigned char entries[1024];
    note(getdents(c, static_cast<int>(directory), entries, sizeof entries) > 0);
    note(close(c, static_cast<int>(directory)));
    note(unlink(c, "sub/b"));
    note(unlink(c, "sub", AT_REMOVEDIR));
  }
};

TEST_P(files, live_and_die) {
  own_folder f;
  server s(where(), options_for(f));
  auto r = make<std::int64_t>(18);
  run(1, 32, whole_life{s.ref(), r.data()});
  EXPECT_EQ(contents(r), (std::vector<std::int64_t>{0, 1, 11, 6, 5, 1, 0, 0, 0, 0, -EBADF, 0,
                                                    -ENOENT, 1, 1, 0, 0, 0}));
  EXPECT_TRUE(std::filesystem::is_empty(f.path()));
}

}  // namespace
}  // namespace grosr::sys
