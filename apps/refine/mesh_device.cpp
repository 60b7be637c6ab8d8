#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "device_mesh.hpp"
#include "grosr/simt/launch.hpp"

namespace grosr::refine {
namespace {

constexpr unsigned threads = 256;
constexpr unsigned most_places = 512;

struct block_stage {
  std::uint32_t cell[fine_cells];
  std::uint32_t block;
  std::uint8_t was_fine;
};

// Counters, as device_mesh names them.
enum : unsigned { refined, total, given_back, next, failed, code };

struct one_step {
  sys::server_ref sys;
  mesh_shape m;
  std::uint32_t step;
  bool gives_back;
  std::uint64_t mapped;  // fine data: block b's at b * fine_bytes
  const int* file_of;    // by place
  std::uint32_t files;
  std::uint32_t* coarse;
  std::uint32_t* scratch;  // fine data of one block a place
  std::uint8_t* is_fine;
  std::uint64_t* counters;

  GROSR_DEVICE void add(unsigned counter, std::uint64_t n) const {
    simt::atomic_ref<std::uint64_t>(counters[counter]).fetch_add(n, simt::relaxed);
  }
  GROSR_DEVICE void expect(long result, long expected) const {
    if (result == expected || simt::thread_id() != 0) return;
    add(failed, 1);
    simt::atomic_ref<std::uint64_t>(counters[code])
        .store(static_cast<std::uint64_t>(result), simt::relaxed);
  }

  // Linux copies between mapped memory and a file, the server between the file and device memory.
  GROSR_DEVICE void bring(std::uint32_t b, std::uint32_t* to) const {
    const int file = file_of[simt::block_id()];
    const std::int64_t at = std::int64_t{simt::block_id() / files} * fine_bytes;
    expect(sys::syscall(sys.block(), SYS_pwrite64, file, mapped + std::uint64_t{b} * fine_bytes,
                        fine_bytes, at),
           fine_bytes);
    expect(sys::pread(sys.block(), file, to, fine_bytes, at), fine_bytes);
  }
  GROSR_DEVICE void send(std::uint32_t b, const std::uint32_t* from) const {
    const int file = file_of[simt::block_id()];
    const std::int64_t at = std::int64_t{simt::block_id() / files} * fine_bytes;
    expect(sys::pwrite(sys.block(), file, from, fine_bytes, at), fine_bytes);
    expect(sys::syscall(sys.block(), SYS_pread64, file, mapped + std::uint64_t{b} * fine_bytes,
                        fine_bytes, at),
           fine_bytes);
  }
  // Nobody waits: the host drains before the next step, which may need the memory again.
  GROSR_DEVICE void give_back(std::uint32_t b) const {
    const auto c = sys.block(sys::producer).start();
    auto t = sys::madvise(c, reinterpret_cast<void*>(mapped + std::uint64_t{b} * fine_bytes),
                          fine_bytes, MADV_DONTNEED);
    const long begun = sys::drop(c, t);
    if (begun != 0 && begun != -EINPROGRESS) expect(begun, 0);
    if (simt::thread_id() == 0) add(given_back, 1);
  }

  GROSR_DEVICE void prolong(const std::uint32_t* from, std::uint32_t* to) const {
    for (std::uint32_t i = simt::thread_id(); i < fine_words; i += simt::block_size()) {
      const std::uint32_t v = i / fine_cells, cell = i % fine_cells;
      const std::uint32_t c = from[v * coarse_cells + coarse_of(cell)];
      to[i] = c / cells_in_one + (place_in_coarse(cell) < c % cells_in_one ? 1 : 0);
    }
    simt::sync_block();
  }

  GROSR_DEVICE void restrict_to(std::uint32_t* to, const std::uint32_t* from) const {
    constexpr unsigned n = fine_side / coarse_side;
    for (std::uint32_t i = simt::thread_id(); i < coarse_words; i += simt::block_size()) {
      const std::uint32_t v = i / coarse_cells, c = i % coarse_cells;
      const std::uint32_t x = c % coarse_side * n, y = c / coarse_side % coarse_side * n;
      const std::uint32_t z = c / coarse_side / coarse_side * n;
      std::uint32_t sum = 0;
      for (std::uint32_t k = 0; k < cells_in_one; ++k)
        sum += from[v * fine_cells + x + k % n + (y + k / n % n) * fine_side +
                    (z + k / n / n) * fine_side * fine_side];
      to[i] = sum;
    }
    simt::sync_block();
  }

  GROSR_DEVICE void advance(std::uint32_t* data, block_stage& s) const {
    for (unsigned v = 0; v < variables; ++v, data += fine_cells) {
      for (std::uint32_t i = simt::thread_id(); i < fine_cells; i += simt::block_size())
        s.cell[i] = data[i];
      simt::sync_block();
      for (std::uint32_t i = simt::thread_id(); i < fine_cells; i += simt::block_size()) {
        const std::uint32_t at[] = {i % fine_side, i / fine_side % fine_side,
                                    i / fine_side / fine_side};
        const std::uint32_t own = s.cell[i];
        std::int32_t out = 0;
        for (unsigned d = 0, far = 1; d < 3; ++d, far *= fine_side) {
          if (at[d] != 0) out += flow(own, s.cell[i - far]);
          if (at[d] != fine_side - 1) out += flow(own, s.cell[i + far]);
        }
        data[i] = own - static_cast<std::uint32_t>(out);
      }
      simt::sync_block();
    }
  }

  GROSR_DEVICE void count(const std::uint32_t* data, std::uint32_t words) const {
    std::uint64_t sum = 0;
    for (std::uint32_t i = simt::thread_id(); i < words; i += simt::block_size()) sum += data[i];
    if (sum != 0) add(total, sum);
  }

  GROSR_DEVICE void operator()() const {
    block_stage& s = simt::block_shared<block_stage>();
    std::uint32_t* const fine = scratch + std::size_t{simt::block_id()} * fine_words;
    for (;;) {
      if (simt::thread_id() == 0) {
        s.block = static_cast<std::uint32_t>(
            simt::atomic_ref<std::uint64_t>(counters[next]).fetch_add(1, simt::relaxed));
        if (s.block < m.blocks()) s.was_fine = is_fine[s.block];
      }
      simt::sync_block();
      const std::uint32_t b = s.block;
      const bool was = s.was_fine != 0;
      simt::sync_block();
      if (b >= m.blocks()) return;
      const bool now = is_touched(m, step, b);
      std::uint32_t* const own = coarse + std::size_t{b} * coarse_words;
      if (was)
        bring(b, fine);
      else if (now)
        prolong(own, fine);
      if (now) {
        advance(fine, s);
        send(b, fine);
        count(fine, fine_words);
      } else {
        if (was) restrict_to(own, fine);
        if (was && gives_back) give_back(b);
        count(own, coarse_words);
      }
      if (simt::thread_id() == 0) {
        is_fine[b] = now ? 1 : 0;
        if (now) add(refined, 1);
      }
    }
  }
};

struct begin_values {
  mesh_shape m;
  std::uint32_t* coarse;
  GROSR_DEVICE void operator()() const {
    const std::uint32_t all = simt::grid_size() * simt::block_size();
    for (std::uint64_t i = simt::block_id() * simt::block_size() + simt::thread_id();
         i < std::uint64_t{m.blocks()} * coarse_words; i += all)
      coarse[i] = first_value(static_cast<std::uint32_t>(i / coarse_words), i % coarse_words);
  }
};

struct map_memory {
  sys::server_ref sys;
  std::uint64_t bytes;
  std::int64_t* at;
  GROSR_DEVICE void operator()() const {
    const auto c = sys.warp();
    const long got = sys::mmap(c, nullptr, bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    // A huge page would stay while any block in it is fine. Linux may have none: no matter.
    if (got > 0) sys::madvise(c, reinterpret_cast<void*>(got), bytes, MADV_NOHUGEPAGE);
    if (simt::lane_id() == 0) *at = got;
  }
};

struct unmap_memory {
  sys::server_ref sys;
  std::uint64_t at, bytes;
  GROSR_DEVICE void operator()() const {
    sys::munmap(sys.warp(), reinterpret_cast<void*>(at), bytes);
  }
};

}  // namespace

device_mesh::device_mesh(const device& d, sys::server& server, const mesh_shape& m, bool gives_back)
    : where_(d),
      server_(server),
      shape_(m),
      gives_back_(gives_back),
      places_(d.is_cuda() ? std::min(d.properties().sms * 3, most_places) : 2),
      file_of_(d, simt::space::device, places_),
      coarse_(d, simt::space::device, std::size_t{m.blocks()} * coarse_words),
      scratch_(d, simt::space::device, std::size_t{places_} * fine_words),
      is_fine_(d, simt::space::device, m.blocks()),
      counters_(d, simt::space::device, counters) {
  // A file's lock lets one write at a time, hence several.
  for (unsigned i = 0; i < std::min(16u, places_); ++i) {
    files_.push_back(::memfd_create("refine", MFD_CLOEXEC));
    if (files_.back() < 0)
      throw error(errc::out_of_memory,
                  "make a file in memory: not possible; allow more open files (ulimit -n)");
    server.grant(files_.back());
  }
  std::vector<int> by_place;
  for (unsigned i = 0; i < places_; ++i) by_place.push_back(files_[i % files_.size()]);
  file_of_.copy_from(by_place);
  simt::buffer<std::int64_t> at(d, simt::space::device, 1);
  simt::run(d, {1, 32}, map_memory{server.ref(), m.bytes(), at.data()});
  std::int64_t got = 0;
  at.copy_to({&got, 1});
  if (got < 0)
    throw error(errc::out_of_memory,
                "map " + std::to_string(m.bytes()) + " bytes of host memory: " +
                    std::strerror(static_cast<int>(-got)) + "; choose a smaller --side");
  mapped_ = static_cast<std::uint64_t>(got);
  simt::run(d, {d.is_cuda() ? 512u : 2u, threads}, begin_values{m, coarse_.data()});
}

device_mesh::~device_mesh() {
  try {
    if (mapped_ != 0)
      simt::run(where_, {1, 32}, unmap_memory{server_.ref(), mapped_, shape_.bytes()});
  } catch (...) {  // the device is lost: the memory goes with the program
  }
  for (const int f : files_) ::close(f);
}

step_result device_mesh::step(std::uint32_t number) {
  std::uint64_t n[counters] = {};
  counters_.copy_from(n);
  simt::run(where_, {std::min(places_, shape_.blocks()), threads},
            one_step{server_.ref(), shape_, number, gives_back_, mapped_, file_of_.data(),
                     static_cast<std::uint32_t>(files_.size()), coarse_.data(), scratch_.data(),
                     is_fine_.data(), counters_.data()});
  server_.drain();
  counters_.copy_to(n);
  if (n[failed] != 0) {
    const auto result = static_cast<std::int64_t>(n[code]);
    throw std::runtime_error("step " + std::to_string(number) + ": " + std::to_string(n[failed]) +
                             " calls of the kernel failed (" +
                             (result < 0 ? std::strerror(static_cast<int>(-result)) : "short") +
                             "); free memory, or choose a smaller --side");
  }
  return {n[refined], n[total], n[given_back]};
}

std::vector<std::uint32_t> device_mesh::coarse() const {
  std::vector<std::uint32_t> all(coarse_.size());
  coarse_.copy_to(all);
  return all;
}

}  // namespace grosr::refine
