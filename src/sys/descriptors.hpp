// The descriptors that kernels may use, and which calls use them just now.
#pragma once

#include <errno.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace grosr::sys {

/// By descriptor: whose it is, and how many calls use it. Any thread may call.
class descriptors {
 public:
  static constexpr int end = 1 << 20;  // Linux's own limit, by default
  static constexpr unsigned max_threads = 257;

  /// `most`: that kernels may have open at a time. `threads`: how many use them for a short while.
  explicit descriptors(std::uint32_t most, unsigned threads = max_threads);

  /// Room for a descriptor, while it lives: had before a call makes one, so that what is one too
  /// many is not made.
  class room {
   public:
    explicit room(std::atomic<std::uint32_t>& open) : open_(&open) {}
    room(room&& other) noexcept : open_(std::exchange(other.open_, nullptr)) {}
    room& operator=(room&& other) noexcept {
      std::swap(open_, other.open_);
      return *this;
    }
    ~room() {
      if (open_) open_->fetch_sub(1);
    }

   private:
    friend class descriptors;
    std::atomic<std::uint32_t>* open_;
  };

  /// None: kernels have as many open as they may.
  std::optional<room> make_room();

  /// What a call opened; `waits`: the kernel asked for one that blocks, and got one that does not.
  /// -EMFILE for one that is not below `end`: then the caller closes it.
  long add(room r, int fd, bool waits = false);

  /// The same of what open(2) opened with `flags`, O_NONBLOCK among them: what it is is not asked
  /// before a call has to know.
  long add_opened(room r, int fd, int flags, bool waits);

  /// A call has put another file there, which kernels may use as they could the one before.
  void replaced(int fd);

  /// The program's own: never closed here. False: it is not open, or not below `end`.
  bool grant(int fd);

  /// While it lives, the descriptor stays open.
  class use {
   public:
    use() = default;
    use(descriptors& all, int fd) : all_(&all), fd_(fd) {}
    use(use&& other) noexcept : all_(std::exchange(other.all_, nullptr)), fd_(other.fd_) {}
    use& operator=(use&& other) noexcept {
      std::swap(all_, other.all_);
      std::swap(fd_, other.fd_);
      return *this;
    }
    ~use() {
      if (all_) all_->release(fd_);
    }

   private:
    descriptors* all_ = nullptr;
    int fd_ = -1;
  };

  /// Whether kernels may use it.
  bool is_known(int fd) const {
    return fd >= 0 && fd < end && (word(fd).load(std::memory_order_relaxed) & known) != 0;
  }

  /// None: kernels may not use it, or it is being closed.
  std::optional<use> acquire(int fd);

  /// The same for a short while on one service thread: until end_short() it stays open, and close()
  /// waits. A thread holds up to two. Such uses of a descriptor are counted until two meet; from
  /// then on they cost other threads nothing, and close() looks for them.
  static constexpr unsigned at_a_time = 2;
  bool begin_short(unsigned thread, unsigned which, int fd);
  void end_short(unsigned thread);

  /// Whether it is a file that never makes a call wait for a peer. A call uses it.
  bool is_regular(int fd) const {
    const bits w = word(fd).load(std::memory_order_relaxed);
    return ((w & unseen) != 0 ? look_at(fd) : w & regular) != 0;
  }

  /// Whether reading at an offset never makes a call wait for a peer. A call uses it.
  bool is_read_at_once(int fd) const {
    return (word(fd).load(std::memory_order_relaxed) & (regular | unseen)) != 0;
  }

  /// Whether it is a socket whose bytes have no ends between them. A call uses it.
  bool is_stream(int fd) const {
    const bits w = word(fd).load(std::memory_order_relaxed);
    return ((w & typed) != 0 ? w & stream : look_at_type(fd)) != 0;
  }

  /// Whether it goes around the page cache: all that is read and written waits for the disk.
  bool is_direct(int fd) const { return (word(fd).load(std::memory_order_relaxed) & direct) != 0; }

  /// Whether what is written to it waits for the disk.
  bool is_synced(int fd) const { return (word(fd).load(std::memory_order_relaxed) & synced) != 0; }

  /// Whether its file system reads what is in the page cache without waiting for the rest, as far
  /// as is known. A call uses it.
  bool tells_cached(int fd) const { return (word(fd).load(std::memory_order_relaxed) & mute) == 0; }
  void tells_no_cached(int fd) { word(fd).fetch_or(mute, std::memory_order_relaxed); }

  /// Whether a call on it is to wait where it says that it would block.
  bool waits(int fd) const;

  /// Whether it is being closed.
  bool is_closing(int fd) const;

  /// Refuses it from now on; it is closed when its last use has ended. `before` is called when it
  /// is refused and still open. 0, or -EBADF.
  template <class Before>
  long close(int fd, Before&& before) {
    const bits was = begin_close(fd);
    if (was == 0) return -EBADF;
    before();
    await_shorts(fd, (was & shared) != 0);
    release(fd);
    return 0;
  }

  std::uint32_t open() const { return open_.load(std::memory_order_relaxed); }

  /// Closes all that are left, which no call uses.
  ~descriptors();

 private:
  // Word: uses (32 bits), short ones that are counted (16), and what it is.
  using bits = std::uint64_t;
  static constexpr bits known = bits{1} << 63, granted = known >> 1, waiting = known >> 2,
                        closing = known >> 3, regular = known >> 4, direct = known >> 5,
                        synced = known >> 6, mute = known >> 7, unseen = known >> 8,
                        shared = known >> 9, typed = known >> 10, stream = known >> 11,
                        one_short = bits{1} << 32, shorts = 0xffff * one_short, uses = 0xffff'ffff;
  struct alignas(64) short_uses {
    std::atomic<int> fd[at_a_time]{-1, -1};
    int counted[at_a_time]{-1, -1};  // its thread's own
  };
  static bits kind_of(int fd);
  static bits by_flags(int flags);
  bits look_at(int fd) const;
  bits look_at_type(int fd) const;
  long add_word(room r, int fd, bits what, bool waits);
  bits begin_close(int fd);
  void await_shorts(int fd, bool may_be_shared) const;
  void release(int fd);
  void end_of(int fd, bits last);

  // Words lie a line apart: threads that use neighbours would wait for each other.
  static constexpr std::size_t apart = 8;
  std::atomic<bits>& word(int fd) const { return words_[static_cast<std::size_t>(fd) * apart]; }

  const std::uint32_t most_;
  const unsigned threads_;
  std::atomic<std::uint32_t> open_{0};
  std::unique_ptr<short_uses[]> shorts_{new short_uses[threads_]};
  std::unique_ptr<std::atomic<bits>[], void (*)(std::atomic<bits>*)> words_;
};

}  // namespace grosr::sys
