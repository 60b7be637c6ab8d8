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

  /// Whether nobody polls, and nobody did for `stale_ns`. Any lane.
  GROSR_DEVICE bool overdue(std::uint32_t stale_ns) const {
    std::uint64_t c = simt::atomic_ref<std::uint64_t>(control_->cursor).load(simt::relaxed);
    return (c >> 63) == 0 &&
           ((tick() - static_cast<std::uint32_t>(c >> 32)) & 0x7fffffffu) >= stale_ns / 1024;
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

  /// What one look across the bus gives a lane.
  struct peeked {
    simt::bus_word mine;    ///< word lane % 8 of line `seen` + lane / 8
    std::uint32_t next;     ///< the line that this line's place in the mirror waits for
    std::uint32_t claimed;  ///< lines claimed, at some moment before
  };

  /// The holder's whole warp loads what stands where the next lines are due. All loads are under
  /// way together, and others may follow before valid_lines() waits for them.
  GROSR_DEVICE peeked peek(std::uint32_t seen) const {
    unsigned lane = simt::lane_id();
    std::uint32_t i = (seen + lane / line_words) & mask_;
    peeked k;
    k.mine = simt::bus_load(lines_ + std::size_t{i} * line_words + lane % line_words);
    k.next = simt::atomic_ref<std::uint32_t>(next_[i]).load(simt::relaxed);
    k.claimed = simt::atomic_ref<std::uint32_t>(control_->claimed).load(simt::relaxed);
    return k;
  }

  /// How many new lines peek() found at `seen`: 0 to 4. Whole warp.
  GROSR_DEVICE unsigned valid_lines(std::uint32_t seen, const peeked& k) const {
    std::uint32_t number = seen + simt::lane_id() / line_words;
    bool valid = k.mine.w[3] == lap_of(number, mask_ + 1) && k.next == number;
    std::uint32_t votes = simt::ballot(simt::full_mask, valid);
    unsigned n = 0;
    while (n < poll_window && (votes >> (n * line_words) & 0xffu) == 0xffu) ++n;
    return n;
  }

  /// Whether no older line waits: then the holder may take line `seen` before others can see it.
  /// Whole warp; stays true while the cursor is held.
  GROSR_DEVICE bool first_is_free(std::uint32_t seen, const peeked& k) const {
    return simt::shuffle(simt::full_mask, k.claimed, 0) == seen;
  }

  /// The holder's warp takes in `count` lines: copies them to the mirror, all but the first when
  /// `take_first`, and lets claimers have them. Returns the new `seen`. Frees the cursor unless
  /// `keep`. An active count for the line taken must have been added before.
  GROSR_DEVICE std::uint32_t accept(std::uint32_t seen, unsigned count, bool take_first, bool keep,
                                    const peeked& k) const {
    unsigned lane = simt::lane_id(), mine = lane / line_words;
    std::uint32_t i = (seen + mine) & mask_;
    if (mine < count && !(take_first && mine == 0)) {
      simt::fence(simt::acquire);  // A3: pairs with R3: the last reader of the place has finished
      mirror_[std::size_t{i} * line_words + lane % line_words] = k.mine;
    }
    simt::sync_warp();
    std::uint32_t after = seen + count, quarter = (mask_ + 1) / 4;
    if (lane == 0) {
      if (take_first)
        simt::atomic_ref<std::uint32_t>(next_[i]).store(seen + mask_ + 1, simt::relaxed);
      // R2, R4: one release for the active count, the mirror and both words that follow.
      simt::fence(simt::release);
      if (take_first)
        simt::atomic_ref<std::uint32_t>(control_->claimed).store(seen + 1, simt::relaxed);
      std::uint64_t state = keep ? held : std::uint64_t{tick()} << 32;
      simt::atomic_ref<std::uint64_t>(control_->cursor).store(state | after, simt::relaxed);
      if ((after & ~(quarter - 1)) != (seen & ~(quarter - 1)))
        simt::atomic_ref<std::uint32_t, simt::scope::system>(*credit_).store(after, simt::relaxed);
    }
    return after;
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
        .store(number + mask_ + 1, simt::release);  // R3: pairs with A3 in accept()
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
