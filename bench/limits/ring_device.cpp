// What a resident kernel reads of a ring of pinned memory that the CPU fills as fast as it can.
//
//   ring   places of 512 bytes: four lines, a bus word for each lane of the warp that reads them.
//          A word is a record of 16 bytes; its last four say which lap it belongs to
//   acks   a word a place: the lap that was read there last
//
// Places go to warps in turn. The kernel ends when all records have come, when it is told to stop,
// or when one does not come for 10 s.
#include <thread>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "cli/interrupt.hpp"
#include "grosr/simt/atomic.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/launch.hpp"
#include "grosr/simt/relax.hpp"
#include "grosr/simt/wait.hpp"
#include "limits/limits.hpp"

namespace grosr::tool::limits {
namespace {

using word = simt::atomic_ref<std::uint32_t, simt::scope::system>;

constexpr std::uint64_t patience_ns = 10'000'000'000;
constexpr unsigned records_a_place = simt::warp_size;

struct read_ring {
  const simt::bus_word* ring;
  std::uint32_t *acks, *stop;
  std::uint64_t* sum;
  std::uint32_t places;
  std::uint64_t turns;  // places that are filled, over all laps

  GROSR_DEVICE void operator()() const {
    std::uint64_t mine = 0;
    simt::bus_word got;
    for (std::uint64_t t = simt::block_id(); t < turns; t += simt::grid_size()) {
      const auto at = static_cast<std::uint32_t>(t % places);
      const auto lap = static_cast<std::uint32_t>(t / places) + 1;
      if (!wait_for(ring + std::size_t{at} * records_a_place + simt::lane_id(), lap, got)) break;
      mine += got.w[0];
      // R1: pairs with A1 in read(): all lanes have voted on what they read.
      if (simt::lane_id() == 0) word(acks[at]).store(lap, simt::after_result());
    }
    simt::atomic_ref<std::uint64_t>(*sum).fetch_add(mine, simt::relaxed);
  }

  /// Whole warp: false when it should end.
  GROSR_DEVICE bool wait_for(const simt::bus_word* at, std::uint32_t lap,
                             simt::bus_word& got) const {
    std::uint64_t began = 0;
    for (unsigned turn = 0;; ++turn) {
      got = simt::bus_load(at);
      if (simt::all(simt::full_mask, got.w[3] == lap)) return true;
      if (turn % 64 == 63) {
        const std::uint64_t now = simt::clock_ns();
        if (began == 0) began = now;
        const bool over = word(*stop).load(simt::relaxed) != 0 || now - began > patience_ns;
        if (simt::any(simt::full_mask, over)) return false;
      }
      simt::pause_if_host(turn, "the CPU's records");
    }
  }
};

/// How the CPU writes: through its caches, or past them where it can.
enum class stores { cached, streamed };

void write_record(simt::bus_word* to, const simt::bus_word& v, stores how) {
#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
  if (how == stores::streamed)
    return _mm_stream_si128(reinterpret_cast<__m128i*>(to),
                            _mm_load_si128(reinterpret_cast<const __m128i*>(&v)));
#endif
  (void)how;
  simt::bus_store_from_host(to, v);
}

void end_stores([[maybe_unused]] stores how) {
#if defined(__SSE2__)
  if (how == stores::streamed) _mm_sfence();
#endif
}

/// The CPU's side, and a kernel that reads.
class bare_reader {
 public:
  bare_reader(const device& d, unsigned warps, stores how, std::uint64_t turns)
      : device_(d),
        how_(how),
        places_(d.is_cuda() ? 8192 : 64),
        ring_(d, simt::space::pinned, std::size_t{places_} * records_a_place),
        words_(d, simt::space::pinned, places_ + line),
        sum_(d, simt::space::device, 1),
        stream_(d) {
    simt::launch(
        stream_, {warps, simt::warp_size},
        read_ring{ring_.data(), acks(), &words_[places_ + line - 1], sum_.data(), places_, turns});
  }
  ~bare_reader() {
    word(words_[places_ + line - 1]).store(1, simt::relaxed);
    try {
      stream_.wait();
    } catch (...) {  // whoever launches next learns of it
    }
  }
  bare_reader(const bare_reader&) = delete;

  /// Writes that many records, and waits until they were read: false when they are not in time.
  bool span(std::uint32_t records) {
    const std::uint64_t first = turn_;
    for (std::uint32_t r = 0; r < records; r += records_a_place, ++turn_) {
      if (turn_ >= places_ && !read(turn_ - places_)) return false;
      simt::bus_word* at = ring_.data() + turn_ % places_ * records_a_place;
      for (std::uint32_t k = 0; k < records_a_place; ++k)
        write_record(at + k, {{r + k, 0, 0, lap_of(turn_)}}, how_);
    }
    end_stores(how_);
    for (std::uint64_t t = std::max(first, turn_ > places_ ? turn_ - places_ : 0); t < turn_; ++t)
      if (!read(t)) return false;
    return true;
  }

  /// Once all have come: the sum of what the kernel read.
  std::uint64_t sum() {
    stream_.wait();
    std::uint64_t got = 0;
    sum_.copy_to({&got, 1});
    return got;
  }

 private:
  static constexpr std::size_t line = 32;

  std::uint32_t* acks() const { return words_.data(); }
  std::uint32_t lap_of(std::uint64_t turn) const {
    return static_cast<std::uint32_t>(turn / places_) + 1;
  }

  bool read(std::uint64_t turn) {
    const word ack(words_[turn % places_]);
    clock::time_point began;
    // A1: pairs with R1: the place may be written again.
    for (std::uint64_t looks = 1; ack.load(simt::acquire) < lap_of(turn); ++looks) {
      if (device_.is_cuda())
        simt::relax();
      else if (looks % 64 == 0)
        std::this_thread::yield();  // the lanes need the processor
      if (looks % 65536 != 0) continue;
      interrupt::check();
      if (looks == 65536) began = clock::now();
      if (clock::now() - began > std::chrono::nanoseconds(patience_ns)) return false;
    }
    return true;
  }

  device device_;
  stores how_;
  std::uint32_t places_;
  simt::buffer<simt::bus_word> ring_;
  simt::buffer<std::uint32_t> words_;  // acks, and, on a line of its own, the word that says stop
  simt::buffer<std::uint64_t> sum_;
  std::uint64_t turn_ = 0;
  simt::stream stream_;
};

times read_by(const device& d, unsigned warps, stores how, std::uint32_t records, unsigned n) {
  constexpr unsigned warm = 3;
  const std::uint64_t places = (records + records_a_place - 1) / records_a_place;
  bare_reader reader(d, warps, how, places * (n + warm));
  std::vector<double> all;
  for (unsigned i = 0; i < n + warm; ++i) {
    interrupt::check();
    bool read = false;
    const double us = timed([&] { read = reader.span(records); });
    if (!read) return {samples(std::move(all)), "the kernel did not read a record within 10 s"};
    if (i >= warm) all.push_back(us);
  }
  times t{samples(std::move(all)), ""};
  const std::uint64_t written = places * records_a_place;
  if (reader.sum() != written * (written - 1) / 2 * (n + warm))
    t.wrong = "the kernel read other records than the CPU wrote";
  return t;
}

}  // namespace

times ring_reader(const device& d, std::uint32_t records, unsigned n) {
  if (!d.is_cuda()) return read_by(d, d.properties().sms, stores::cached, records, n);
  times best;
  for (stores how : {stores::cached, stores::streamed})
    for (unsigned warps = 8; warps <= 256; warps *= 2) {
      times t = read_by(d, warps, how, records, n);
      if (!t.wrong.empty()) return t;
      if (best.us.count() == 0 || t.us.median() < best.us.median()) best = std::move(t);
    }
  return best;
}

}  // namespace grosr::tool::limits
