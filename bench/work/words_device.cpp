#include <memory>

#include "work/words.hpp"

#include "work/hosted.hpp"

namespace grosr::tool {
namespace {

/// Bit i: byte i of the word is not a space.
GROSR_DEVICE inline std::uint32_t word_bits(std::uint32_t four) {
  std::uint32_t bits = 0;
  for (unsigned i = 0; i < 4; ++i)
    bits |= (is_space(static_cast<unsigned char>(four >> (8 * i))) ? 0u : 1u) << i;
  return bits;
}

GROSR_DEVICE inline std::uint32_t word_bits(const simt::bus_word& piece) {
  std::uint32_t bits = 0;
  for (unsigned i = 0; i < 4; ++i) bits |= word_bits(piece.w[i]) << (4 * i);
  return bits;
}

}  // namespace

GROSR_DEVICE void count_file::operator()(auto& context) const {
  std::uint32_t in_front = before;
  for (std::uint32_t at = 0; at < bytes; at += chunk_bytes) {
    const std::uint32_t left = bytes - at;
    context.spawn(count_chunk{text + at, words, left < chunk_bytes ? left : chunk_bytes, in_front});
    in_front = look_in_front;
  }
}

// A warp takes 2 KB a turn, 64 bytes a lane in four coalesced loads of 512. Bytes past the end are
// spaces.
GROSR_DEVICE void count_chunk::operator()(auto& context) const {
  constexpr unsigned loads = 4, row = simt::warp_size * sizeof(simt::bus_word);
  const unsigned lane = context.rank();
  std::uint32_t found = 0;
  const std::uint32_t in_front_of_all = before == look_in_front ? text[-1] : before;
  std::uint32_t carry = is_space(static_cast<unsigned char>(in_front_of_all)) ? 0u : 1u;
  for (std::uint32_t at = 0; at < bytes; at += loads * row) {
    std::uint32_t bits[loads] = {};
    for (unsigned k = 0; k < loads; ++k) {
      const std::uint32_t mine = at + k * row + lane * sizeof(simt::bus_word);
      if (mine < bytes)
        bits[k] = word_bits(simt::bus_load(reinterpret_cast<const simt::bus_word*>(text + mine)));
    }
    for (unsigned k = 0; k < loads; ++k) {
      // Whether each lane's last byte belongs to a word, seen by the next lane.
      const std::uint32_t ends = simt::ballot(simt::full_mask, (bits[k] >> 15 & 1) != 0);
      const std::uint32_t in_front = lane == 0 ? carry : ends >> (lane - 1) & 1;
      found += simt::popcount(bits[k] & ~(bits[k] << 1 | in_front));
      carry = ends >> 31;
    }
  }
  for (unsigned step = simt::warp_size / 2; step > 0; step /= 2)
    found += simt::shuffle(simt::full_mask, found, lane ^ step);
  if (lane == 0 && found != 0)
    simt::atomic_ref<std::uint32_t>(*words).fetch_add(found, simt::relaxed);
}

std::unique_ptr<any_runtime> make_words_runtime(const device& d, const runtime_options& options) {
  return std::make_unique<hosted<count_file, count_chunk>>(d, options);
}

std::uint64_t count_words_plainly(std::string_view text, unsigned char before) {
  std::uint64_t words = 0;
  bool in_word = !is_space(before);
  for (const char c : text) {
    const bool space = is_space(static_cast<unsigned char>(c));
    words += !space && !in_word;
    in_word = !space;
  }
  return words;
}

}  // namespace grosr::tool
