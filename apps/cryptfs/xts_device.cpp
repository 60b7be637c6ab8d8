// AES-XTS on a device. A lane has one AES block at a time, and a warp 32 of one sector, a unit.
//
// Tables lie in block-shared memory, a copy for each lane in a bank of its own, so that a warp's 32
// lookups are one access; a lookup takes one instruction for the address and one for the load.
// Block-shared memory serves 32 words a clock and multiprocessor: 16 bytes of AES-256 take 224.
#include <algorithm>

#include "grosr/simt/bytes.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/shared.hpp"
#include "xts.hpp"

namespace grosr::cryptfs {
namespace {

constexpr unsigned block_threads = 512, blocks_per_sm = 3;
constexpr unsigned unit_blocks = simt::warp_size;
constexpr unsigned most_units = 256;  // of the part that a block has at a time

struct alignas(16) quad {
  std::uint32_t w[4];
};

struct shared_memory {
  std::uint32_t table[256 * simt::warp_size];  // word 32 x + l: entry x for lane l
  std::uint32_t plain[256];                    // for the tweaks
  quad sector_tweaks[most_units], unit_tweaks[most_units];
};

GROSR_DEVICE inline std::uint32_t turned(std::uint32_t w, unsigned left) {
  return left == 0 ? w : w << left | w >> (32 - left);
}

/// T0[x] for byte `Byte` of a word.
struct lane_table {
  const char* table;
  std::uint32_t lane_bytes;
  template <unsigned Byte>
  GROSR_DEVICE std::uint32_t at(std::uint32_t w) const {
    const std::uint32_t offset = simt::dot_bytes(w, 128u << 8 * Byte, lane_bytes);
    return *reinterpret_cast<const std::uint32_t*>(table + offset);
  }
};
struct plain_table {
  const std::uint32_t* table;
  template <unsigned Byte>
  GROSR_DEVICE std::uint32_t at(std::uint32_t w) const {
    return table[w >> 8 * Byte & 0xff];
  }
};

/// Rows go to the left in encryption, to the right in decryption.
template <bool Encrypt>
GROSR_DEVICE constexpr unsigned from(unsigned column, unsigned row) {
  return (Encrypt ? column + row : column + 4 - row) % 4;
}

template <bool Encrypt, class Table>
GROSR_DEVICE inline quad round_of(const Table& t, const quad& s, const std::uint32_t* key) {
  quad next;
  for (unsigned c = 0; c < 4; ++c)
    next.w[c] = t.template at<0>(s.w[c]) ^ turned(t.template at<1>(s.w[from<Encrypt>(c, 1)]), 8) ^
                turned(t.template at<2>(s.w[from<Encrypt>(c, 2)]), 16) ^
                turned(t.template at<3>(s.w[from<Encrypt>(c, 3)]), 24) ^ key[c];
  return next;
}

/// What S gives for four bytes, from entries of the table. In encryption S is their second byte. In
/// decryption the sum of all four is it: 14 + 9 + 13 + 11 is 1 in GF(2^8).
template <bool Encrypt>
GROSR_DEVICE inline std::uint32_t substituted(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                              std::uint32_t d) {
  using simt::pick_bytes;
  if constexpr (Encrypt)
    return pick_bytes(pick_bytes(a, b, 0x0051), pick_bytes(c, d, 0x5100), 0x7610);
  const std::uint32_t x = pick_bytes(a, b, 0x5410) ^ pick_bytes(a, b, 0x7632);
  const std::uint32_t y = pick_bytes(c, d, 0x5410) ^ pick_bytes(c, d, 0x7632);
  return pick_bytes(x, y, 0x6420) ^ pick_bytes(x, y, 0x7531);
}

/// Rounds First to Last - 1. No loop: so round keys are operands of instructions.
template <bool Encrypt, unsigned First, unsigned Last, class Table>
GROSR_DEVICE inline quad rounds_of(const Table& t, const quad& s, const std::uint32_t* key) {
  if constexpr (First == Last)
    return s;
  else
    return rounds_of<Encrypt, First + 1, Last>(t, round_of<Encrypt>(t, s, key + 4 * First), key);
}

template <bool Encrypt, unsigned Rounds, class Table>
GROSR_DEVICE inline quad aes(const Table& t, quad s, const std::uint32_t* key) {
  for (unsigned c = 0; c < 4; ++c) s.w[c] ^= key[c];
  s = rounds_of<Encrypt, 1, Rounds>(t, s, key);
  quad last;
  for (unsigned c = 0; c < 4; ++c)
    last.w[c] =
        substituted<Encrypt>(t.template at<0>(s.w[c]), t.template at<1>(s.w[from<Encrypt>(c, 1)]),
                             t.template at<2>(s.w[from<Encrypt>(c, 2)]),
                             t.template at<3>(s.w[from<Encrypt>(c, 3)])) ^
        key[4 * Rounds + c];
  return last;
}

/// What goes out of 128 bits on the left comes back by x^128 = x^7 + x^2 + x + 1.
GROSR_DEVICE inline void fold(quad& t, std::uint32_t carry) {
  t.w[0] ^= carry ^ carry << 1 ^ carry << 2 ^ carry << 7;
  t.w[1] ^= carry >> 31 ^ carry >> 30 ^ carry >> 25;
}
/// Times x^n, n < 32.
GROSR_DEVICE inline quad times_x(const quad& t, unsigned n) {
  if (n == 0) return t;
  quad r;
  r.w[0] = t.w[0] << n;
  for (unsigned i = 1; i < 4; ++i) r.w[i] = t.w[i] << n | t.w[i - 1] >> (32 - n);
  fold(r, t.w[3] >> (32 - n));
  return r;
}
GROSR_DEVICE inline quad times_x32(const quad& t) {
  quad r{{0, t.w[0], t.w[1], t.w[2]}};
  fold(r, t.w[3]);
  return r;
}

GROSR_DEVICE inline quad sum(quad a, const quad& b) {
  for (unsigned i = 0; i < 4; ++i) a.w[i] ^= b.w[i];
  return a;
}

template <bool Encrypt, unsigned Rounds>
struct xts {
  const quad* in;
  quad* out;
  const std::uint32_t *table, *tweak_table;
  std::uint64_t file, first, all_blocks;
  std::uint32_t blocks_of_sector, units_of_sector, sectors_of_part, parts;
  std::uint32_t key[4 * (Rounds + 1)], tweak_key[4 * (Rounds + 1)];

  GROSR_DEVICE void operator()() const {
    shared_memory& shared = simt::block_shared<shared_memory>();
    const std::uint32_t thread = simt::thread_id();
    for (std::uint32_t i = thread; i < 256 * simt::warp_size; i += block_threads)
      shared.table[i] = table[i / simt::warp_size];
    for (std::uint32_t i = thread; i < 256; i += block_threads) shared.plain[i] = tweak_table[i];
    simt::sync_block();
    const std::uint64_t all_sectors = all_blocks / blocks_of_sector;
    for (std::uint32_t p = simt::block_id(); p < parts; p += simt::grid_size()) {
      const std::uint64_t begin = std::uint64_t{p} * sectors_of_part;
      const std::uint64_t left = all_sectors - begin;
      make_tweaks(shared, begin,
                  left < sectors_of_part ? static_cast<std::uint32_t>(left) : sectors_of_part);
      transform(shared, begin,
                left < sectors_of_part ? static_cast<std::uint32_t>(left) : sectors_of_part);
      simt::sync_block();
    }
  }

  /// Those of the first block of each unit.
  GROSR_DEVICE void make_tweaks(shared_memory& shared, std::uint64_t begin,
                                std::uint32_t count) const {
    const std::uint32_t thread = simt::thread_id();
    if (thread < count) {
      const std::uint64_t n = first + begin + thread;
      const quad number{{static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(n >> 32),
                         static_cast<std::uint32_t>(file), static_cast<std::uint32_t>(file >> 32)}};
      shared.sector_tweaks[thread] =
          aes<true, Rounds>(plain_table{shared.plain}, number, tweak_key);
    }
    simt::sync_block();
    if (thread < count * units_of_sector) {
      quad t = shared.sector_tweaks[thread / units_of_sector];
      for (std::uint32_t i = thread % units_of_sector; i != 0; --i) t = times_x32(t);
      shared.unit_tweaks[thread] = t;
    }
    simt::sync_block();
  }

  GROSR_DEVICE void transform(const shared_memory& shared, std::uint64_t begin,
                              std::uint32_t count) const {
    const std::uint32_t lane = simt::lane_id();
    const lane_table t{reinterpret_cast<const char*>(shared.table), 4 * lane};
    for (std::uint32_t u = simt::warp_id(); u < count * units_of_sector;
         u += block_threads / simt::warp_size) {
      const std::uint32_t block = u % units_of_sector * unit_blocks + lane;
      if (block >= blocks_of_sector) continue;  // of a sector that is no multiple of 512 bytes
      const std::uint64_t at = (begin + u / units_of_sector) * blocks_of_sector + block;
      const quad tweak = times_x(shared.unit_tweaks[u], lane);
      out[at] = sum(aes<Encrypt, Rounds>(t, sum(in[at], tweak), key), tweak);
    }
  }
};

template <bool Encrypt, unsigned Rounds>
void launch(simt::stream& s, const xts_keys& keys, const device_tables& at, const sectors& what,
            const void* in, void* out) {
  xts<Encrypt, Rounds> k;
  k.in = static_cast<const quad*>(in);
  k.out = static_cast<quad*>(out);
  k.table = Encrypt ? at.encrypt() : at.decrypt();
  k.tweak_table = at.encrypt();
  k.file = what.file;
  k.first = what.first;
  k.blocks_of_sector = what.bytes / aes_block_bytes;
  k.all_blocks = std::uint64_t{what.count} * k.blocks_of_sector;
  k.units_of_sector = (k.blocks_of_sector + unit_blocks - 1) / unit_blocks;
  // As few turns of the blocks as can be, all about as long; a block's warps have a unit at least.
  const std::uint64_t units = std::uint64_t{what.count} * k.units_of_sector;
  const std::uint64_t most_blocks = std::uint64_t{at.sms} * blocks_per_sm;
  const std::uint64_t turns = (units + most_blocks * most_units - 1) / (most_blocks * most_units);
  const std::uint64_t fair = (units + most_blocks * turns - 1) / (most_blocks * turns);
  const auto units_of_part = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(fair, block_threads / simt::warp_size, most_units));
  k.sectors_of_part = std::clamp((units_of_part + k.units_of_sector - 1) / k.units_of_sector, 1u,
                                 most_units / k.units_of_sector);
  k.parts = static_cast<std::uint32_t>((what.count + k.sectors_of_part - 1) / k.sectors_of_part);
  const round_keys& data = Encrypt ? keys.encrypt : keys.decrypt;
  std::copy_n(data.words, 4 * (Rounds + 1), k.key);
  std::copy_n(keys.tweak.words, 4 * (Rounds + 1), k.tweak_key);
  const auto blocks = static_cast<unsigned>(std::min<std::uint64_t>(k.parts, most_blocks));
  simt::launch<block_threads, blocks_per_sm>(s, {blocks, block_threads}, k);
}

}  // namespace

void launch_xts(simt::stream& s, const xts_keys& keys, const device_tables& at, way how,
                const sectors& what, const void* in, void* out) {
  if (what.count == 0) return;
  const bool large = keys.tweak.rounds == 14;
  const auto f = how == way::encrypt ? (large ? launch<true, 14> : launch<true, 10>)
                                     : (large ? launch<false, 14> : launch<false, 10>);
  f(s, keys, at, what, in, out);
}

}  // namespace grosr::cryptfs
