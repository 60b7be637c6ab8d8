// Writing graphs, and reading them back without trust in what stands there.
#include "graph/io/binary.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <span>
#include <vector>

#include "graph/io/memory.hpp"
#include "graph/io/output_file.hpp"
#include "graph/io/words.hpp"
#include "grosr/simt/error.hpp"

namespace grosr::graphs {
namespace {

constexpr char magic[8] = {'G', 'R', 'O', 'S', 'R', 'C', 'S', 'R'};
constexpr std::uint32_t flag_directed = 1, flag_weighted = 2;
constexpr std::uint64_t at_once = std::uint64_t{8} << 20;  // bytes, of reading and checking

struct file_header {
  char name[8];
  std::uint32_t version, flags;
  std::uint64_t vertices, entries;
  std::uint32_t first, zero;
  std::uint64_t data_sum, header_sum, zeros;
};
static_assert(sizeof(file_header) == 64);

std::uint64_t sum_of(const void* data, std::uint64_t bytes) {
  return crc32_z(0, static_cast<const Bytef*>(data), bytes);
}
std::uint64_t sum_of_header(const file_header& h) {
  return sum_of(&h, offsetof(file_header, header_sum));
}

/// An array of the file with the zeros that pad it to 64 bytes.
struct part {
  char* data;
  std::uint64_t bytes;
  std::uint64_t padding() const { return (64 - bytes % 64) % 64; }
};

std::vector<part> parts_of(csr_graph& g) {
  const auto bytes = [](auto& array) {
    return part{reinterpret_cast<char*>(array.data()), array.size() * 4};
  };
  return {bytes(g.row), bytes(g.column), bytes(g.weight)};
}

constexpr char padding[64] = {};

/// The checksum of all that follows the header. visit(place, piece) comes before a piece of it is
/// added up.
template <class Visit>
std::uint64_t sum_of_parts(const std::vector<part>& parts, host_threads& threads, Visit&& visit) {
  std::uint64_t sum = 0, place = sizeof(file_header);
  for (const part& p : parts) {
    std::vector<std::uint64_t> sums((p.bytes + at_once - 1) / at_once);
    parallel_for(
        threads, p.bytes,
        [&](std::uint64_t first, std::uint64_t last) {
          visit(place + first, std::span(p.data + first, last - first));
          sums[first / at_once] = sum_of(p.data + first, last - first);
        },
        at_once);
    for (std::size_t i = 0; i < sums.size(); ++i)
      sum = crc32_combine(sum, sums[i],
                          static_cast<z_off_t>(std::min(at_once, p.bytes - i * at_once)));
    sum = crc32_combine(sum, sum_of(padding, p.padding()), static_cast<z_off_t>(p.padding()));
    place += p.bytes + p.padding();
  }
  return sum;
}

class reader {
 public:
  reader(source& from, const reading& how, host_threads& threads)
      : from_(from), how_(how), threads_(threads) {}

  csr_graph read() {
    const file_header h = header();
    csr_graph g;
    g.directed = (h.flags & flag_directed) != 0;
    g.first = h.first;
    g.row.resize(h.vertices + 1);
    g.column.resize(h.entries);
    if ((h.flags & flag_weighted) != 0) g.weight.resize(h.entries);
    const auto parts = parts_of(g);
    const std::uint64_t sum = from_.plain_file() >= 0 ? in_parallel(parts) : in_order(parts);
    if (sum != h.data_sum)
      refuse("its checksum does not fit: the file is damaged; write it again with graph convert");
    if (const std::string what = broken(g, threads_); !what.empty())
      refuse(what + "; write it again with graph convert");
    return g;
  }

 private:
  [[noreturn]] void refuse(std::string_view what) {
    throw error(errc::bad_input, fmt::format("{}: {}", from_.name(), what));
  }
  [[noreturn]] void cut_off() { refuse("the file is cut off; write it again with graph convert"); }

  file_header header() {
    file_header h;
    if (from_.read(reinterpret_cast<char*>(&h), sizeof h) != sizeof h) cut_off();
    if (h.header_sum != sum_of_header(h))
      refuse("its header is damaged; write it again with graph convert");
    if (h.version != 1)
      refuse(
          fmt::format("version {} of the binary format; this program reads version 1", h.version));
    if ((h.flags & ~(flag_directed | flag_weighted)) != 0 || h.zero != 0 || h.zeros != 0)
      refuse(
          "its header has fields that version 1 does not know; write it again with graph convert");
    size_of_graph size{h.vertices, h.entries, (h.flags & flag_weighted) != 0, false};
    require(size, 0, how_.memory, from_.name());  // so that sizes do not overflow
    require(size, size.finished(), how_.memory, from_.name());
    const auto padded = [](std::uint64_t values) { return (values * 4 + 63) / 64 * 64; };
    const std::uint64_t bytes = sizeof h + padded(h.vertices + 1) +
                                padded(h.entries) * ((h.flags & flag_weighted) != 0 ? 2 : 1);
    if (from_.plain_file() >= 0 && bytes != from_.file_bytes())
      refuse(fmt::format(
          "{} vertices and {} entries make {} bytes, but the file has {}; write it "
          "again with graph convert",
          grouped(h.vertices), grouped(h.entries), grouped(bytes), grouped(from_.file_bytes())));
    return h;
  }

  std::uint64_t in_parallel(const std::vector<part>& parts) {
    return sum_of_parts(parts, threads_, [&](std::uint64_t place, std::span<char> piece) {
      while (!piece.empty()) {
        const ssize_t got =
            pread(from_.plain_file(), piece.data(), piece.size(), static_cast<off_t>(place));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) refuse(fmt::format("reading it failed: {}", std::strerror(errno)));
        if (got == 0) cut_off();
        piece = piece.subspan(static_cast<std::size_t>(got));
        place += static_cast<std::uint64_t>(got);
      }
    });
  }

  std::uint64_t in_order(const std::vector<part>& parts) {
    std::uint64_t sum = 0;
    char rest[64];
    const auto take = [&](char* to, std::uint64_t bytes) {
      if (from_.read(to, bytes) != bytes) cut_off();
      sum = crc32_z(sum, reinterpret_cast<Bytef*>(to), bytes);
    };
    for (const part& p : parts) {
      for (std::uint64_t i = 0; i < p.bytes; i += at_once) {
        threads_.look();
        take(p.data + i, std::min(at_once, p.bytes - i));
      }
      take(rest, p.padding());
    }
    if (from_.read(rest, 1) != 0)
      refuse("more bytes than its header announces; write it again with graph convert");
    return sum;
  }

  source& from_;
  const reading how_;
  host_threads& threads_;
};

/// What writes the file, and says in words why it cannot.
class writer {
 public:
  writer(const std::string& path, host_threads& threads) : path_(path), threads_(threads) {
    expect(file_.open(path), "cannot be written");
  }
  void write(const char* from, std::uint64_t bytes) {
    for (std::uint64_t i = 0; i < bytes; i += at_once) {
      threads_.look();
      expect(file_.write(from + i, std::min(bytes - i, at_once)), "writing it failed");
    }
  }
  void finish() { expect(file_.finish(), "writing it failed"); }

 private:
  void expect(int bad, std::string_view what) const {
    if (bad == 0) return;
    throw error(errc::write_failed,
                fmt::format("{}: {}: {}; give a file in a folder with room for it", one_line(path_),
                            what, std::strerror(bad)));
  }

  const std::string path_;
  host_threads& threads_;
  output_file file_;
};

}  // namespace

bool is_binary(std::string_view head) {
  return head.starts_with(std::string_view(magic, sizeof magic));
}

csr_graph read_binary(source& from, const reading& how, host_threads& threads) {
  return reader(from, how, threads).read();
}

void write_binary(const csr_graph& g, const std::string& path, const host_work& how) {
  host_threads threads(how);
  const host_threads::stage stage(threads, fmt::format("writing {}", one_line(path)));
  csr_graph empty;
  empty.row.assign(1, 0);
  auto parts = parts_of(const_cast<csr_graph&>(g.row.empty() ? empty : g));  // only read
  file_header h{};
  std::copy(std::begin(magic), std::end(magic), h.name);
  h.version = 1;
  h.flags = (g.directed ? flag_directed : 0) | (g.weighted() ? flag_weighted : 0);
  h.vertices = g.vertices();
  h.entries = g.entries();
  h.first = g.first;
  h.data_sum = sum_of_parts(parts, threads, [](std::uint64_t, std::span<char>) {});
  h.header_sum = sum_of_header(h);
  writer file(path, threads);
  file.write(reinterpret_cast<const char*>(&h), sizeof h);
  for (const part& p : parts) {
    file.write(p.data, p.bytes);
    file.write(padding, p.padding());
  }
  file.finish();
}

}  // namespace grosr::graphs
