#include <algorithm>

#include "grosr/simt/lanes.hpp"
#include "simt/backend.hpp"

namespace grosr::simt {
namespace {

constexpr unsigned threads = 256, few = 16;
/// Bytes that a block of threads copies, at least.
constexpr std::size_t chunk = 4096;

/// Several blocks of threads to a copy, all of which are within the reach of one device.
template <unsigned Most>
struct copy_all {
  void* to[Most];
  const void* from[Most];
  std::uint32_t bytes[Most];
  std::uint32_t blocks_each;

  struct alignas(16) word {
    std::uint32_t parts[4];
  };

  template <class T>
  GROSR_DEVICE void copy(unsigned i, std::uint32_t first, std::uint32_t n) const {
    const T* f = static_cast<const T*>(from[i]);
    T* t = static_cast<T*>(to[i]);
    const std::uint32_t part = block_id() % blocks_each;
    for (std::uint32_t k = first + part * block_size() + thread_id(); k < n;
         k += blocks_each * block_size())
      t[k] = f[k];
  }

  GROSR_DEVICE void operator()() const {
    const unsigned i = block_id() / blocks_each;
    const bool aligned =
        (reinterpret_cast<std::uintptr_t>(to[i]) | reinterpret_cast<std::uintptr_t>(from[i])) %
            sizeof(word) ==
        0;
    const std::uint32_t words = aligned ? bytes[i] / sizeof(word) : 0;
    copy<word>(i, 0, words);
    copy<unsigned char>(i, words * sizeof(word), bytes[i]);
  }
};

template <unsigned Most>
void launch_up_to(stream& s, const copies& all) {
  copy_all<Most> f{};
  const auto n = static_cast<unsigned>(all.bytes.size());
  for (unsigned i = 0; i < n; ++i) {
    f.to[i] = all.to[i];
    f.from[i] = all.from[i];
    f.bytes[i] = static_cast<std::uint32_t>(all.bytes[i]);
  }
  const std::size_t longest = *std::max_element(all.bytes.begin(), all.bytes.end());
  // As many as a device runs at a time, or a few times that.
  f.blocks_each = static_cast<std::uint32_t>(
      std::clamp<std::size_t>(longest / chunk, 1, std::max(512 / n, 1u)));
  launch<threads>(s, {n * f.blocks_each, threads}, f);
}

}  // namespace

void load_copies(const device& d) {
  fit<threads, 1, copy_all<few>>(d, threads);
  fit<threads, 1, copy_all<most_copies>>(d, threads);
}

void launch_copies(stream& s, const copies& all) {
  if (all.bytes.size() <= few)
    launch_up_to<few>(s, all);
  else
    launch_up_to<most_copies>(s, all);
}

}  // namespace grosr::simt
