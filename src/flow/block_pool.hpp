// Memory that views of datablocks come from and go back to.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "grosr/simt/buffer.hpp"
#include "grosr/simt/timeline.hpp"

namespace grosr::flow {

class block_heap;

/// Memory of one view. Whoever writes there next begins after `written` and all of `read`.
struct block_buffer {
  void* data = nullptr;
  std::size_t bytes = 0;
  std::uint64_t home = 0;        ///< who is to get it again; 0: anybody
  std::uint64_t given = 0;       ///< the how manyth that was given back
  std::shared_ptr<void> lender;  ///< whose end frees it; null: it is the pool's
  block_heap* heap = nullptr;    ///< the lender, where it is a heap
  simt::stream_point written;    ///< when what it holds is there
  simt::stream_points read;      ///< when those who read it are done

  bool is_done_with() const noexcept;
  void wait() const noexcept;
  /// f(place), for all that must be over before it is written.
  template <class F>
  void each_user(const F& f) const {
    f(written);
    for (const simt::stream_point& p : read) f(p);
  }
};

/// Buffers of one memory. Thread-safe.
class block_pool {
 public:
  block_pool(device d, simt::space s) : device_(d), space_(s) {}
  ~block_pool();
  block_pool(const block_pool&) = delete;

  const device& where() const { return device_; }

  /// The one that was given back first: it is most likely done with. With a home (not 0), the one
  /// that was taken for that before, if it is back.
  block_buffer take(std::size_t bytes, std::uint64_t home = 0);
  /// What is borrowed is for free_borrowed(): who gives it back may hold locks, and what frees it
  /// calls others.
  void give(block_buffer b) noexcept;
  /// Frees what is borrowed, was given back, and no stream uses any more; or all, when that is so.
  void free_borrowed(bool all) noexcept;

  /// So many buffers more are there for whoever takes them.
  void reserve(std::size_t bytes, std::size_t buffers);
  /// They are not needed any more: what nobody was promised is freed.
  void unreserve(std::size_t bytes, std::size_t buffers) noexcept;

  std::size_t bytes() const;
  std::size_t idle() const;

 private:
  using homes = std::unordered_map<std::uint64_t, block_buffer>;
  struct of_size {
    std::deque<block_buffer> idle;
    homes at_home;                       // idle, too
    std::vector<homes::node_type> left;  // of those that left, for those that come
    std::size_t all = 0, promised = 0;
  };

  static std::size_t idle_of(const of_size& s) { return s.idle.size() + s.at_home.size(); }
  static block_buffer leave_home(of_size& s, homes::iterator at);
  static std::optional<block_buffer> any_idle(of_size& s);
  block_buffer allocate(std::size_t size) const;
  void release(block_buffer& b) noexcept;

  const device device_;
  const simt::space space_;
  mutable std::mutex mutex_;
  std::map<std::size_t, of_size> sizes_;
  std::size_t held_ = 0;
  std::uint64_t given_ = 0;
  std::vector<block_buffer> borrowed_;  // that may still be used
  std::atomic<bool> has_borrowed_{false};
};

}  // namespace grosr::flow
