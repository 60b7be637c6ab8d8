// Lines from the host into a device: one host-side producer lock, any warp of the device consumes.
//
//   host writes lines ──bus──> a polling warp sees up to 4 at once, copies them to the mirror and
//   advances `seen` ──> any warp claims the oldest seen line by moving `claimed`
//
//   cursor   held (1) │ last poll, 1024 ns units (31) │ seen (32)        device memory
//   claimed  next line to hand out                                       device memory
//   mirror   copies of seen lines; next[i]: the line number that slot i takes next
//   credit   `seen`, written back to the host every quarter ring         host memory
//
// Polling is a role, not a thread: whoever holds the cursor polls (leader and followers; Schmidt et
// al., "Leader/Followers", 2000). All device calls are for whole converged warps.
#pragma once

#include <bit>
#include <cstdint>
#include <mutex>

#include "grosr/queue/line.hpp"
#include "grosr/queue/ring.hpp"
#include "grosr/simt/atomic.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/wait.hpp"

namespace grosr::queue {

struct ingress_control {
  alignas(128) std::uint64_t cursor;
  alignas(128) std::uint32_t claimed;
};

/// Lines that one poll can see.
inline constexpr unsigned poll_window = simt::warp_size / line_words;

/// A line in the registers of a warp: lane `base + k` holds bus word k.
struct held_line {
  simt::bus_word mine;
  unsigned base;

  /// Content word i, in every lane.
  GROSR_DEVICE std::uint32_t word(unsigned i) const { return line_word(mine, base, i); }
};

/// The device's view of an ingress ring; passed by value.
class ingress_ref {
 public:
  ingress_ref() = default;

  /// Whether a seen line waits to be claimed. Any lane.
  GROSR_DEVICE bool waiting() const {
    std::uint64_t c = simt::atomic_ref<std::uint64_t>(control_->cursor).load(simt::relaxed);
    return static_cast<std::uint32_t>(c) !=
           simt::atomic_ref<std::uint32_t>(control_->claimed).load(simt::relaxed);
  }

  /// One lane tries to become the poller: succeeds when nobody is, and the last poll is at least
  /// `stale_ns` old. Gives what peek(), accept() and free_cursor() need.
  GROSR_DEVICE bool hold_cursor(std::uint32_t stale_ns, std::uint32_t& seen) const {
    simt::atomic_ref<std::uint64_t> cursor(control_->cursor);
    std::uint64_t c = cursor.load(simt::relaxed);
    if (c >> 63) return false;
    if (stale_ns != 0) {
      std::uint32_t age = (tick() - static_cast<std::uint32_t>(c >> 32)) & 0x7fffffffu;
      if (age < stale_ns / 1024) return false;
    }
    seen = static_cast<std::uint32_t>(c);
    // A2: pairs with R2 in free_cursor().
    return cursor.compare_exchange(c, c | held, simt::acquire);
  }

  /// One lane gives the role back; `seen` is what accept() left. `again`: lets the next poll look
  /// overdue.
  GROSR_DEVICE void free_cursor(std::uint32_t seen, bool again = false) const {
    std::uint64_t polled = (tick() - (again ? 0x10000u : 0u)) & 0x7fffffffu;
    simt::atomic_ref<std::uint64_t>(control_->cursor)
        .store(polled << 32 | seen, simt::release);  // R2: pairs with A1, A2
  }

  /// The holder's whole warp loads what stands where the next lines are due: this lane's word of
  /// line lane/8. What it means is for valid_lines() to say; other loads may go on in between.
  GROSR_DEVICE simt::bus_word peek(std::uint32_t seen) const {
    unsigned lane = simt::lane_id();
    std::uint32_t i = (seen + lane / line_words) & mask_;
    return simt::bus_load(lines_ + std::size_t{i} * line_words + lane % line_words);
  }

  /// How many new lines peek() found at `seen`: 0 to 4. Whole warp.
  GROSR_DEVICE unsigned valid_lines(std::uint32_t seen, const simt::bus_word& mine) const {
    unsigned lane = simt::lane_id();
    std::uint32_t number = seen + lane / line_words;
    bool valid = mine.w[3] == lap_of(number, mask_ + 1);
    // A3: pairs with R3 in next_line(): the mirror's place has been read.
    if (valid && lane % line_words == 0)
      valid = simt::atomic_ref<std::uint32_t>(next_[number & mask_]).load(simt::acquire) == number;
    std::uint32_t votes = simt::ballot(simt::full_mask, valid);
    unsigned n = 0;
    while (n < poll_window && (votes >> (n * line_words) & 0xffu) == 0xffu) ++n;
    return n;
  }

  /// The holder's warp copies `count` polled lines to the mirror, all but the first `skip`, and
  /// returns the new `seen`. Publishing it is the caller's next step.
  GROSR_DEVICE std::uint32_t accept(std::uint32_t seen, unsigned count, unsigned skip,
                                    const simt::bus_word& mine) const {
    unsigned lane = simt::lane_id(), k = lane / line_words;
    std::uint32_t i = (seen + k) & mask_;
    if (k < count && k >= skip)
      mirror_[std::size_t{i} * line_words + lane % line_words] = mine;
    if (k < skip && lane % line_words == 0) next_line(seen + k);
    simt::sync_warp();
    std::uint32_t after = seen + count, quarter = (mask_ + 1) / 4;
    if (lane == 0 && (after & ~(quarter - 1)) != (seen & ~(quarter - 1)))
      simt::atomic_ref<std::uint32_t, simt::scope::system>(*credit_).store(after, simt::relaxed);
    return after;
  }

  /// The holder takes line `seen` for itself before anyone can see it; true when no older line
  /// waits. One lane; then call accept() with skip = 1.
  GROSR_DEVICE bool claim_first(std::uint32_t seen) const {
    simt::atomic_ref<std::uint32_t> claimed(control_->claimed);
    if (claimed.load(simt::relaxed) != seen) return false;
    claimed.store(seen + 1, simt::release);  // R4: pairs with A4 in claimed()
    return true;
  }

  /// One lane claims the oldest seen line: true and its number, or false when there is none.
  GROSR_DEVICE bool claim(std::uint32_t& number) const {
    simt::atomic_ref<std::uint32_t> claimed(control_->claimed);
    // A1: pairs with R2: the mirror holds everything below `seen`.
    std::uint64_t c = simt::atomic_ref<std::uint64_t>(control_->cursor).load(simt::acquire);
    number = claimed.load(simt::relaxed);
    // `claimed` may be ahead of the cursor read here, when the holder took a line for itself.
    while (static_cast<std::int32_t>(static_cast<std::uint32_t>(c) - number) > 0)
      if (claimed.compare_exchange(number, number + 1, simt::acq_rel)) return true;  // R4
    return false;
  }

  /// How many lines were ever claimed. What claimers did before they claimed is visible after.
  GROSR_DEVICE std::uint32_t claimed() const {
    return simt::atomic_ref<std::uint32_t>(control_->claimed).load(simt::acquire);  // A4
  }

  /// The warp reads the line it claimed, and frees its place in the mirror.
  GROSR_DEVICE held_line read_mirror(std::uint32_t number) const {
    unsigned lane = simt::lane_id();
    held_line l{{}, 0};
    std::uint32_t i = number & mask_;
    if (lane < line_words) l.mine = mirror_[std::size_t{i} * line_words + lane];
    simt::sync_warp();
    if (lane == 0) next_line(number);
    return l;
  }

  /// One lane: whether the host has written the line that comes next, though nobody polled it.
  GROSR_DEVICE bool unseen() const {
    std::uint64_t c = simt::atomic_ref<std::uint64_t>(control_->cursor).load(simt::acquire);
    auto number = static_cast<std::uint32_t>(c);
    line content;
    return read_line(lines_ + std::size_t{number & mask_} * line_words, content,
                     lap_of(number, mask_ + 1));
  }

 private:
  friend class ingress;
  static constexpr std::uint64_t held = std::uint64_t{1} << 63;

  GROSR_DEVICE static std::uint32_t tick() {
    return static_cast<std::uint32_t>(simt::clock_ns() >> 10) & 0x7fffffffu;
  }

  GROSR_DEVICE void next_line(std::uint32_t number) const {
    simt::atomic_ref<std::uint32_t>(next_[number & mask_])
        .store(number + mask_ + 1, simt::release);  // R3: pairs with A3 in valid_lines()
  }

  ingress_control* control_ = nullptr;
  const simt::bus_word* lines_ = nullptr;
  simt::bus_word* mirror_ = nullptr;
  std::uint32_t* next_ = nullptr;
  std::uint32_t* credit_ = nullptr;
  std::uint32_t mask_ = 0;
};

/// Owner of an ingress ring, and its producer side. Not movable: refs point into it.
class ingress {
 public:
  /// Throws error(invalid_option) unless `capacity` (lines) is a power of two and at least 8.
  ingress(device d, std::uint32_t capacity);

  ingress_ref ref() const;

  /// Held while a line is prepared and written.
  std::mutex& lock() { return lock_; }

  /// Lock held: whether there is room for a line now.
  bool has_room();

  /// Lock held, has_room(): writes the next line. Returns its number.
  std::uint32_t write(const line& content);

  /// Device memory that a ring of this capacity takes.
  static std::size_t device_bytes(std::size_t capacity) {
    return sizeof(ingress_control) + capacity * (sizeof(line) + 32 + sizeof(std::uint32_t));
  }

 private:
  std::mutex lock_;
  std::uint32_t capacity_;
  std::uint32_t written_ = 0;
  std::uint32_t credit_seen_ = 0;
  simt::buffer<ingress_control> control_;
  simt::buffer<simt::bus_word> lines_;
  simt::buffer<simt::bus_word> mirror_;
  simt::buffer<std::uint32_t> next_;
  simt::buffer<std::uint32_t> credit_;
};

}  // namespace grosr::queue
