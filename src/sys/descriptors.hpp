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

  /// What a call opened; `waits`: the kernel asked for one that blocks, and got one that does not.
  /// -EMFILE when there are too many: then the caller closes it.
  long add(int fd, bool waits = false);

  /// The program's own: never closed here.
  void grant(int fd);

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

  /// None: kernels may not use it, or it is being closed.
  std::optional<use> acquire(int fd);

  /// The same for a short while on one service thread, at no cost to the others: until
  /// end_short() it stays open, and close() waits. A thread holds up to two.
  static constexpr unsigned at_a_time = 2;
  bool begin_short(unsigned thread, unsigned which, int fd) {
    if (fd < 0 || fd >= end) return false;
    // A hazard pointer (Michael, "Hazard pointers", 2004): said first, looked at afterwards.
    shorts_[thread].fd[which].store(fd, std::memory_order_seq_cst);
    return (word(fd).load(std::memory_order_seq_cst) & (known | closing)) == known;
  }
  void end_short(unsigned thread) {
    for (auto& fd : shorts_[thread].fd) fd.store(-1, std::memory_order_release);
  }

  /// Whether it is a file that never makes a call wait for a peer.
  bool is_regular(int fd) const {
    return (word(fd).load(std::memory_order_relaxed) & regular) != 0;
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
    if (!begin_close(fd)) return -EBADF;
    before();
    await_shorts(fd);
    release(fd);
    return 0;
  }

  std::uint32_t open() const { return open_.load(std::memory_order_relaxed); }

  /// Closes all that are left, which no call uses.
  ~descriptors();

 private:
  // Word: uses (24 bits) and what it is.
  static constexpr std::uint32_t known = 1u << 31, granted = 1u << 30, waiting = 1u << 29,
                                 closing = 1u << 28, regular = 1u << 27, direct = 1u << 26,
                                 synced = 1u << 25, mute = 1u << 24, uses = (1u << 24) - 1;
  struct alignas(64) short_use {
    std::atomic<int> fd[at_a_time]{-1, -1};
  };
  static std::uint32_t kind_of(int fd);
  bool begin_close(int fd);
  void await_shorts(int fd) const;
  void release(int fd);
  void end_of(int fd);

  // Words lie a line apart: threads that use neighbours would wait for each other.
  static constexpr std::size_t apart = 16;
  std::atomic<std::uint32_t>& word(int fd) const {
    return words_[static_cast<std::size_t>(fd) * apart];
  }

  const std::uint32_t most_;
  const unsigned threads_;
  std::atomic<std::uint32_t> open_{0};
  std::unique_ptr<short_use[]> shorts_{new short_use[threads_]};
  std::unique_ptr<std::atomic<std::uint32_t>[], void (*)(std::atomic<std::uint32_t>*)> words_;
};

}  // namespace grosr::sys
