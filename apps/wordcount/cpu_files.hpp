// The files of a list, opened and read by OpenMP threads: each has a buffer of its own, and takes
// the next file when it is done with one. Large files are cut, as the device cuts them.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

#include "cli/interrupt.hpp"
#include "counting.hpp"

namespace grosr::wordcount {

class cpu_files {
 public:
  static constexpr std::uint32_t window_bytes = 128 * 1024, stride = window_bytes - overlap;
  static constexpr std::uint32_t windows_a_share = 8;

  explicit cpu_files(const tool::file_list& list) : list_(list) {
    for (const tool::source_tree& t : list.trees)
      roots_.push_back(::open(t.folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  ~cpu_files() {
    for (const int root : roots_) ::close(root);
  }
  cpu_files(const cpu_files&) = delete;

  /// make() makes a matcher, for each thread, inside of it. match(matcher, text, bytes, own) looks
  /// at a window for what ends behind its first `own` bytes. done(matcher), one at a time, at the
  /// end of each thread.
  template <class Make, class Match, class Done>
  void read(unsigned threads, answer& a, Make&& make, Match&& match, Done&& done) const {
    std::vector<int> error(list_.files.size(), 0);
    std::vector<share> shares;
    std::mutex shares_lock, done_lock;
    const auto files = static_cast<std::int64_t>(list_.files.size());
    std::uint64_t bytes = 0;
#pragma omp parallel num_threads(static_cast <int>(threads)) reduction(+ : bytes)
    {
      auto matcher = make();
      std::vector<unsigned char> window(window_bytes);
      const auto take = [&](const share& s) {
        if (tool::interrupt::requested()) return;
        const tool::source_file& f = list_.files[s.file];
        const int fd = ::openat(roots_[f.tree], f.below.c_str(),
                                O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0) {
          error[s.file] = errno;
          return;
        }
        for (std::uint32_t w = s.first; w < s.end; ++w) {
          const ssize_t n = ::pread(fd, window.data(), window_bytes,
                                    static_cast<off_t>(std::uint64_t{w} * stride));
          if (n < 0) error[s.file] = errno;
          const auto got = static_cast<std::uint32_t>(n < 0 ? 0 : n), own = w == 0 ? 0 : overlap;
          if (got <= own) break;
          match(matcher, window.data(), got, own);
          bytes += got - own;
          if (got < window_bytes) break;
          if (s.first == 0 && w + 1 == windows_a_share) cut(fd, s.file, shares, shares_lock);
        }
        ::close(fd);
      };
#pragma omp for schedule(dynamic, 8)
      for (std::int64_t i = 0; i < files; ++i)
        take({static_cast<std::uint32_t>(i), 0, windows_a_share});
#pragma omp for schedule(dynamic, 1)
      for (std::int64_t i = 0; i < static_cast<std::int64_t>(shares.size()); ++i)
        take(shares[static_cast<std::size_t>(i)]);
      const std::lock_guard guard(done_lock);
      done(matcher);
    }
    tool::interrupt::check();
    a.bytes = bytes;
    for (std::size_t i = 0; i < error.size(); ++i)
      if (error[i] != 0) a.failures.push_back({list_.shown(i), error[i]});
  }

 private:
  struct share {
    std::uint32_t file, first, end;
  };

  static void cut(int fd, std::uint32_t file, std::vector<share>& shares, std::mutex& lock) {
    struct stat about {};
    if (::fstat(fd, &about) != 0) return;
    const auto end =
        static_cast<std::uint32_t>(static_cast<std::uint64_t>(about.st_size) / stride + 1);
    const std::lock_guard guard(lock);
    for (std::uint32_t w = windows_a_share; w < end; w += windows_a_share)
      shares.push_back({file, w, w + windows_a_share});
  }

  const tool::file_list& list_;
  std::vector<int> roots_;
};

}  // namespace grosr::wordcount
