// Plays a cell of the grid with every family of calls: each call is made once, each lane that is to
// know its result knows it, what the result says has happened and nothing else, and nothing is held
// in the end.
#pragma once

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <sstream>
#include <system_error>
#include <thread>

#include "support/scale.hpp"
#include "support/seeds.hpp"
#include "sys/grid_cell.hpp"
#include "sys/grid_trouble.hpp"

namespace grosr::sys::grid {

struct cell_case {
  by who;
  blocking how;
  bool attempts, arena, scarce, troubled;
  std::uint32_t seed;
};

constexpr unsigned most_calls = 128;

struct count_call {
  static constexpr std::uint16_t number = handler_number;
  std::array<std::atomic<unsigned>, most_calls>* counts;
  bool troubled;
  long operator()(std::uint32_t n, std::uint32_t seed) const {
    ++counts->at(n);
    if (troubled && fails(n, seed))
      throw std::system_error(EIO, std::generic_category(), "as asked");
    return result(n);
  }
  static bool fails(std::uint32_t n, std::uint32_t seed) {
    return testing::scramble(n + 7 * seed) % 5 == 0;
  }
  static long result(std::uint32_t n) { return 3L * n + 7; }
};

/// A file without a name. Not one of memory: those have no lock for where they stand.
class plain_file {
 public:
  plain_file() {
    char name[] = "/tmp/grosr.XXXXXX";
    fd_ = ::mkostemp(name, O_CLOEXEC);
    EXPECT_EQ(::unlink(name), 0);
  }
  ~plain_file() { ::close(fd_); }
  plain_file(const plain_file&) = delete;
  int fd() const { return fd_; }
  std::string content() const {
    std::string all(static_cast<std::size_t>(::lseek(fd_, 0, SEEK_END)), 0);
    EXPECT_EQ(::pread(fd_, all.data(), all.size(), 0), static_cast<ssize_t>(all.size()));
    return all;
  }

 private:
  int fd_;
};

class player {
 public:
  using launcher = void (*)(device, simt::shape, const work&, bool);

  player(device d, const cell_case& k, launcher launch)
      : d_(d), k_(k), launch_(launch), choices_(k.seed) {
    const bool lanes = k.who == by::lane || k.who == by::diverged;
    shape_ = {lanes ? 1u : 3u, 64};
    turns_ = lanes ? 2 : 6;
    for (unsigned t = 0; t < threads(); ++t) groups_ = std::max(groups_, group_of(t) + 1);
    constexpr std::uint32_t sizes[] = {1, 7, 64, 250, 600, 1500};
    bytes_ = sizes[choices_() % (lanes ? 5 : 6)];
    options o;
    o.threads = 1 + k.seed % 2;
    o.policy.network = true;
    o.use_arena = k.arena;
    o.print_to = printed_.fd();
    if (k.scarce) {
      o.chunks = {32, 32, 32};
      o.records = 32;
      o.shards = 1;
    }
    server_.emplace(d, o);
    server_->install(count_call{&counts_, k.troubled});
  }

  void play_all() {
    for (family what : {family::append, family::put, family::send}) play_out(what);
    for (family what : {family::next, family::get, family::receive}) play_in(what);
    play_memory();
    play_clock();
    play_handler();
    play_print();
    for (long r : play(base(), family::nothing)) EXPECT_TRUE(r == 0 || is_refused(r)) << r;
    expect_nothing_held();
  }

 private:
  using bytes = std::vector<unsigned char>;

  unsigned threads() const { return shape_.blocks * shape_.threads; }
  unsigned calls() const { return groups_ * turns_; }
  std::size_t size() const { return std::size_t{calls()} * stride(); }
  std::uint32_t stride() const { return bytes_ + 3; }
  unsigned group_of(unsigned thread) const {
    switch (k_.who) {
      case by::lane:
      case by::diverged:
        return thread;
      case by::warp:
        return thread / 32;
      case by::mask:
        return thread / 32 * 2 + thread % 2;
      case by::grid_producer:
      case by::grid_consumer:
        return 0;
      default:
        return thread / shape_.threads;
    }
  }
  bool is_dropped(family what) const { return k_.how == blocking::drops || what == family::print; }
  /// Not made, for want of room.
  bool is_refused(long r) const { return r == -EAGAIN && k_.attempts && k_.scarce; }
  bool is_explained(long r) const { return is_refused(r) || (k_.troubled && trouble::explains(r)); }

  work base() const {
    work w;
    w.how = k_.how;
    w.bytes = bytes_;
    w.stride = stride();
    return w;
  }

  /// How many members of a group know a result.
  unsigned knowing(bool drops, unsigned members) const {
    const bool block = k_.who >= by::strong;
    const bool relaxed = k_.who == by::producer || k_.who == by::grid_producer;
    return block && (relaxed || drops) ? 32 : members;
  }

  /// Launches, drains, and looks at what is the same for all families. Results by call.
  std::vector<long> play(work w, family what) {
    static constexpr const char* names[] = {
        "write",   "pwrite64", "sendto",        "read",      "pread64", "recvfrom", "mmap",
        "madvise", "munmap",   "clock_gettime", "handler 9", "print",   "nothing"};
    const std::string name = names[static_cast<unsigned>(what)];
    w.sys = server_->ref();
    w.what = what;
    w.turns = turns_;
    w.seed = k_.seed;
    constexpr std::int64_t unknown = 0x7777777777;
    simt::buffer<std::int64_t> results(d_, simt::space::device, std::size_t{threads()} * turns_);
    results.copy_from(std::vector<std::int64_t>(results.size(), unknown));
    simt::buffer<grid_point> points(d_, simt::space::device, turns_);
    w.results = results.data();
    w.points = points.data();
    const call_statistics before = counted(name);
    {
      std::optional<trouble> with;
      if (k_.troubled) with.emplace(static_cast<std::uint32_t>(choices_()));
      launch_(d_, shape_, w, k_.attempts);
      server_->drain(std::chrono::seconds(60));
    }
    std::vector<std::int64_t> noted(results.size());
    results.copy_to(noted);
    std::vector<long> by_call(calls(), unknown);
    std::vector<unsigned> members(calls()), knowers(calls());
    for (std::size_t i = 0; i < noted.size(); ++i) {
      const std::size_t n = group_of(static_cast<unsigned>(i) % threads()) * turns_ + i / threads();
      ++members[n];
      if (noted[i] == -EINPROGRESS) continue;
      if (knowers[n]++ == 0) by_call[n] = noted[i];
      EXPECT_EQ(noted[i], by_call[n]) << name << " of thread " << i % threads();
    }
    const bool drops = w.how == blocking::drops || what == family::print;
    unsigned made = 0, perhaps = 0, good = 0;
    std::uint64_t moved = 0;
    for (unsigned n = 0; n < calls(); ++n) {
      const long r = by_call[n];
      // All of a block learn that a call was not begun.
      if (!(is_refused(r) && knowers[n] == members[n])) {
        EXPECT_EQ(knowers[n], knowing(drops, members[n])) << name << " " << n << ": " << r;
      }
      ++(is_refused(r) ? perhaps : made);
      good += r >= 0;
      moved += r > 0 ? static_cast<std::uint64_t>(r) : 0;
    }
    const call_statistics after = counted(name);
    const std::uint64_t done = after.calls - before.calls;
    moved_ = after.bytes - before.bytes;
    EXPECT_GE(done, made) << name;
    EXPECT_LE(done, made + (k_.troubled ? perhaps : 0)) << name;
    if (!drops) {
      EXPECT_EQ(done - (after.errors - before.errors), good) << name;
      if (what <= family::receive) {
        EXPECT_EQ(moved_, moved) << name;
      }
    }
    return by_call;
  }

  call_statistics counted(const std::string& name) const {
    for (const call_statistics& c : server_->statistics().calls)
      if (c.name == name) return c;
    return {};
  }

  /// Call n has result r, and moved so many bytes.
  void expect_moved(family what, unsigned n, long r, std::size_t there) {
    const std::size_t all = bytes_;
    if (r < 0) {
      EXPECT_TRUE(is_explained(r)) << "call " << n << ": " << r;
      EXPECT_EQ(there, 0u) << "call " << n << ": " << r;
    } else if (is_dropped(what)) {
      EXPECT_EQ(r, 0) << "call " << n;
      if (what <= family::send) {
        EXPECT_TRUE(there == all || (k_.troubled && there < all)) << "call " << n << ": " << there;
      }
    } else {
      EXPECT_EQ(static_cast<std::size_t>(r), there) << "call " << n;
      const bool part = there != 0 && there < all && (k_.troubled || what == family::receive);
      EXPECT_TRUE(there == all || part) << "call " << n << ": " << r;
    }
  }

  void play_out(family what) {
    bytes content(size());
    for (std::size_t i = 0; i < size(); ++i)
      content[i] = static_cast<unsigned char>(1 + i / stride());
    simt::buffer<unsigned char> from(d_, simt::space::device, size());
    from.copy_from(content);
    work w = base();
    w.from = from.data();
    plain_file file;
    if (what == family::append) ::fcntl(file.fd(), F_SETFL, O_APPEND);
    w.file = file.fd();
    int ends[2] = {-1, -1};
    std::string got;
    std::thread receiver;
    if (what == family::send) {
      ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      w.file = ends[0];
      receiver = std::thread([&got, from = ends[1]] {
        char some[4096];
        for (ssize_t n; (n = ::read(from, some, sizeof some)) > 0;)
          got.append(some, static_cast<std::size_t>(n));
      });
    }
    server_->grant(w.file);
    const std::vector<long> r = play(w, what);
    if (what == family::send) {
      ::shutdown(ends[0], SHUT_WR);
      receiver.join();
      granted_.fds.push_back(ends[0]);
      ::close(ends[1]);
    } else {
      got = file.content();
    }
    std::vector<std::size_t> there(calls() + 1);
    if (what == family::put) {
      got.resize(size());
      for (std::size_t i = 0; i < size(); ++i)
        if (got[i] != 0) {
          EXPECT_EQ(static_cast<unsigned char>(got[i]), content[i]) << "byte " << i;
          EXPECT_EQ(there[i / stride()]++, i % stride()) << "byte " << i;  // the first ones
        }
    } else {
      for (char c : got) {
        const unsigned n = static_cast<unsigned char>(c) - 1u;
        ++there[std::min(n, calls())];
      }
      EXPECT_EQ(there[calls()], 0u);  // of no call
    }
    for (unsigned n = 0; n < calls(); ++n) expect_moved(what, n, r[n], there[n]);
    EXPECT_EQ(std::accumulate(there.begin(), there.end(), std::size_t{0}), moved_);
  }

  void play_in(family what) {
    const std::size_t all = what == family::get ? size() : std::size_t{calls()} * bytes_;
    bytes content(all);
    for (std::size_t i = 0; i < all; ++i)
      content[i] =
          static_cast<unsigned char>(1 + testing::scramble(static_cast<std::uint32_t>(i)) % 255);
    simt::buffer<unsigned char> to(d_, simt::space::device, size());
    work w = base();
    w.to = to.data();
    plain_file file;
    int ends[2] = {-1, -1};
    std::thread sender;
    if (what == family::receive) {
      ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      w.file = ends[0];
      const auto late = std::chrono::microseconds(choices_() % 500);
      const std::size_t first = choices_() % all;
      EXPECT_EQ(::write(ends[1], content.data(), first), static_cast<ssize_t>(first));
      sender = std::thread([&, late, first] {
        std::this_thread::sleep_for(late);
        EXPECT_EQ(::write(ends[1], content.data() + first, all - first),
                  static_cast<ssize_t>(all - first));
      });
    } else {
      w.file = file.fd();
      EXPECT_EQ(::pwrite(file.fd(), content.data(), all, 0), static_cast<ssize_t>(all));
    }
    server_->grant(w.file);
    const std::vector<long> r = play(w, what);
    std::size_t taken = moved_;
    if (what == family::receive) {
      sender.join();
      int left = 0;
      EXPECT_EQ(::ioctl(ends[0], FIONREAD, &left), 0);
      taken = all - static_cast<std::size_t>(left);
      granted_.fds.push_back(ends[0]);
      ::close(ends[1]);
    } else if (what == family::next) {
      taken = static_cast<std::size_t>(::lseek(file.fd(), 0, SEEK_CUR));
    }
    EXPECT_EQ(taken, moved_);
    if (is_dropped(what)) {
      for (unsigned n = 0; n < calls(); ++n) expect_moved(what, n, r[n], 0);
      return;
    }
    bytes got(size());
    to.copy_to(got);
    std::array<std::size_t, 256> brought{}, wanted{};
    for (unsigned n = 0; n < calls(); ++n) {
      const auto mine = got.begin() + std::ptrdiff_t{n} * stride(), end = mine + stride();
      const auto rest = std::find(mine, end, 0);
      EXPECT_TRUE(std::all_of(rest, end, [](auto c) { return c == 0; })) << "call " << n;
      expect_moved(what, n, r[n], static_cast<std::size_t>(rest - mine));
      if (what == family::get) {
        EXPECT_TRUE(std::equal(mine, rest, content.begin() + std::ptrdiff_t{n} * stride()));
      }
      std::for_each(mine, rest, [&](unsigned char c) { ++brought[c]; });
    }
    if (what == family::get) return;
    for (std::size_t i = 0; i < taken; ++i) ++wanted[content[i]];
    EXPECT_EQ(brought, wanted) << "bytes were lost or came twice";
  }

  void play_memory() {
    constexpr std::size_t pages = 8192;
    work w = base();
    w.bytes = pages;
    std::vector<std::uint64_t> at(calls());
    if (w.how == blocking::drops) w.how = blocking::waits;  // somebody is to have them
    const std::vector<long> mapped = play(w, family::map);
    for (unsigned n = 0; n < calls(); ++n) {
      EXPECT_TRUE((mapped[n] > 0 && mapped[n] % 4096 == 0) || is_explained(mapped[n])) << mapped[n];
      if (mapped[n] < 0) continue;
      at[n] = static_cast<std::uint64_t>(mapped[n]);
      for (std::size_t i = 0; i < pages; i += 4096) {
        EXPECT_EQ(reinterpret_cast<char*>(at[n])[i], 0);
        reinterpret_cast<char*>(at[n])[i] = 'x';
      }
    }
    w.how = k_.how;
    simt::buffer<std::uint64_t> addresses(d_, simt::space::device, calls());
    addresses.copy_from(at);
    w.addresses = addresses.data();
    const bool drops = k_.how == blocking::drops;
    const auto expect = [&](unsigned n, long r) {  // what is not mapped is not the kernel's
      EXPECT_TRUE(r == (at[n] != 0 || drops ? 0 : -EPERM) || is_explained(r)) << n << ": " << r;
    };
    const std::vector<long> advised = play(w, family::advise);
    for (unsigned n = 0; n < calls(); ++n) {
      expect(n, advised[n]);
      if (at[n] == 0 || (drops && k_.troubled && advised[n] == 0)) continue;
      const char wanted = advised[n] == 0 ? 0 : 'x';
      EXPECT_EQ(*reinterpret_cast<char*>(at[n]), wanted) << n;
      EXPECT_EQ(*reinterpret_cast<char*>(at[n] + 4096), wanted) << n;
    }
    const std::vector<long> unmapped = play(w, family::unmap);
    for (unsigned n = 0; n < calls(); ++n) expect(n, unmapped[n]);  // what is left is the server's
  }

  void play_clock() {
    work w = base();
    simt::buffer<timespec> times(d_, simt::space::device, calls());
    w.times = times.data();
    const auto ns = [](const timespec& t) { return t.tv_sec * 1'000'000'000 + t.tv_nsec; };
    timespec before{}, after{};
    ::clock_gettime(CLOCK_MONOTONIC, &before);
    const std::vector<long> r = play(w, family::clock);
    ::clock_gettime(CLOCK_MONOTONIC, &after);
    std::vector<timespec> got(calls());
    times.copy_to(got);
    for (unsigned n = 0; n < calls(); ++n) {
      EXPECT_TRUE(r[n] == 0 || is_explained(r[n])) << r[n];
      if (r[n] < 0) {
        EXPECT_EQ(ns(got[n]), 0);
      } else if (!is_dropped(family::clock)) {
        EXPECT_GE(ns(got[n]), ns(before));
        EXPECT_LE(ns(got[n]), ns(after));
      }
    }
  }

  void play_handler() {
    for (auto& c : counts_) c = 0;
    const std::vector<long> r = play(base(), family::handle);
    for (unsigned n = 0; n < calls(); ++n) {
      const bool fails = k_.troubled && count_call::fails(n, k_.seed);
      const long wanted = is_dropped(family::handle) ? 0 : fails ? -EIO : count_call::result(n);
      EXPECT_TRUE(r[n] == wanted || is_refused(r[n])) << n << ": " << r[n];
      EXPECT_EQ(counts_.at(n), is_refused(r[n]) ? 0u : 1u) << n;
    }
  }

  void play_print() {
    const std::vector<long> r = play(base(), family::print);
    std::map<std::string, unsigned> lines;
    std::istringstream text(printed_.content());
    for (std::string line; std::getline(text, line);) ++lines[line];
    unsigned all = 0;
    for (unsigned n = 0; n < calls(); ++n) {
      EXPECT_TRUE(r[n] == 0 || is_refused(r[n])) << r[n];
      const auto line = std::to_string(n) + " of " + std::to_string(k_.seed);
      EXPECT_EQ(lines[line], r[n] == 0 ? 1u : 0u) << line;
      all += r[n] == 0;
    }
    for (const auto& [line, times] : lines) all -= times;
    EXPECT_EQ(all, 0u) << "there are other lines";
  }

  void expect_nothing_held() {
    simt::buffer<std::uint32_t> held(d_, simt::space::device, 1 + chunk_sizes);
    simt::run(d_, {1, 32}, count_held{server_->ref(), held.data()});
    std::vector<std::uint32_t> got(held.size());
    held.copy_to(got);
    EXPECT_EQ(got, std::vector<std::uint32_t>(got.size(), 0u)) << "slots, and chunks of each size";
  }

  device d_;
  cell_case k_;
  launcher launch_;
  std::mt19937 choices_;
  simt::shape shape_;
  unsigned turns_ = 0, groups_ = 0;
  std::uint32_t bytes_ = 0;
  std::uint64_t moved_ = 0;  // bytes, of the calls that were played last
  std::array<std::atomic<unsigned>, most_calls> counts_{};
  plain_file printed_;
  /// Closed when the server is gone: its reactor may look at them until then.
  struct open_sockets {
    std::vector<int> fds;
    ~open_sockets() {
      for (int fd : fds) ::close(fd);
    }
  } granted_;
  std::optional<server> server_;
};

/// Plays the cells of some kind of group: every way of waiting, with attempts or not, with the
/// arena or (on the host) without, with room for all or not. What a seed adds to all ways of
/// waiting is in its lowest bits, so that 8 seeds in a row (2 on a GPU) play every cell.
template <by Who>
void expect_cells(device d, bool troubled) {
  const auto play = [&] {
    const auto seed = static_cast<std::uint32_t>(simt::host::seed().value_or(1));
    const bool attempts = (seed & 1) != 0, arena = d.is_cuda() || (seed & 2) != 0;
    const bool scarce = attempts != ((seed & 4) != 0);
    for (unsigned way = 0; way < 4; ++way) {
      const cell_case k{
          Who, static_cast<blocking>(way), attempts, arena, scarce, troubled, 4 * seed + way};
      std::ostringstream text;
      text << "way " << way << (attempts ? ", attempts" : "") << (arena ? ", arena" : "")
           << (scarce ? ", scarce" : "");
      SCOPED_TRACE(text.str());
      player(d, k, launch<Who>).play_all();
      if (::testing::Test::HasFailure()) return;
    }
  };
  if (d.is_cuda())
    testing::for_seeds(2, play, 2);
  else
    testing::for_seeds(8, play);
  if (troubled) {
    EXPECT_GT(trouble::made(), 0u);
  }
}

}  // namespace grosr::sys::grid
