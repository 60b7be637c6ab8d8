#include <fmt/format.h>
#include <openssl/rand.h>

#include <cstring>
#include <future>
#include <thread>
#include <vector>

#include "bench.hpp"
#include "cipher.hpp"
#include "cli/interrupt.hpp"
#include "file_format.hpp"
#include "limits/limits.hpp"
#include "measure/samples.hpp"

namespace grosr::cryptfs {
namespace {

using tool::row;
using memory = simt::buffer<std::byte>;

constexpr std::uint32_t sector = 4096;

secret random_key() {
  secret key(64);
  RAND_priv_bytes(key.data(), static_cast<int>(key.size()));
  return key;
}

std::vector<std::byte> random_bytes(std::size_t n) {
  std::vector<std::byte> b(n);
  for (std::size_t at = 0; at < n; at += most_request)
    RAND_bytes(reinterpret_cast<unsigned char*>(&b[at]),
               static_cast<int>(std::min(most_request, n - at)));
  return b;
}

double gb_per_s(std::size_t bytes, double us) { return static_cast<double>(bytes) / us * 1e-3; }

std::string name_of(way how) { return how == way::encrypt ? "encrypt" : "decrypt"; }

/// What lies at `at` of a large buffer.
sectors piece(std::size_t at, std::size_t bytes) {
  return {.file = 7, .first = at / sector, .count = bytes / sector, .bytes = sector};
}

std::string in_units(std::size_t bytes) {
  return bytes < 1 << 20 ? fmt::format("{} KB", bytes >> 10) : fmt::format("{} MB", bytes >> 20);
}

/// As many as the file system has threads at most.
constexpr unsigned most_in_flight = 8;

std::string at_a_time(unsigned in_flight) {
  return in_flight == 1 ? " at a time" : fmt::format(" at a time, {} in flight", in_flight);
}

/// A median, after a first time that does not count.
template <class F>
tool::samples measured(unsigned repeats, F f) {
  f();
  std::vector<double> us;
  for (unsigned i = 0; i < repeats; ++i) {
    tool::interrupt::check();
    us.push_back(tool::timed(f));
  }
  return tool::samples(std::move(us));
}

class cipher_bench {
 public:
  cipher_bench(tool::report& out, const bench_options& o)
      : out_(out),
        o_(o),
        key_(random_key()),
        openssl_(openssl_cipher(key_)),
        plain_(random_bytes(o.bytes)),
        encrypted_(o.bytes) {
    openssl_->run(way::encrypt, piece(0, o.bytes), plain_.data(), encrypted_.data());
  }

  void run() {
    measure_openssl();
    for (const way how : {way::encrypt, way::decrypt}) {
      in_device_memory(how, o_.bytes, 1);
      if (o_.bytes == o_.request) continue;
      in_device_memory(how, o_.request, 1);
      in_device_memory(how, o_.request, most_in_flight);
    }
    for (const way how : {way::encrypt, way::decrypt}) {
      in_host_memory(how, 1);
      if (o_.bytes != o_.request) in_host_memory(how, most_in_flight);
    }
  }

 private:
  const std::vector<std::byte>& before(way how) const {
    return how == way::encrypt ? plain_ : encrypted_;
  }
  const std::vector<std::byte>& after(way how) const {
    return how == way::encrypt ? encrypted_ : plain_;
  }

  /// OpenSSL, request by request, by so many threads at a time.
  double openssl_rate(way how, unsigned threads) {
    std::vector<std::byte> got(o_.bytes);
    const std::size_t requests = o_.bytes / o_.request;
    const auto all = [&] {
      std::vector<std::jthread> team;
      for (unsigned t = 0; t < threads; ++t)
        team.emplace_back([&, t] {
          for (std::size_t r = t; r < requests; r += threads)
            openssl_->run(how, piece(r * o_.request, o_.request), &before(how)[r * o_.request],
                          &got[r * o_.request]);
        });
    };
    return gb_per_s(o_.bytes, measured(o_.repeats, all).median());
  }

  void measure_openssl() {
    all_threads_ = std::max(1u, std::thread::hardware_concurrency());
    for (const way how : {way::encrypt, way::decrypt}) {
      one_thread_rate_[how == way::encrypt] = openssl_rate(how, 1);
      all_threads_rate_[how == way::encrypt] = openssl_rate(how, all_threads_);
    }
  }

  void beside_openssl(row& r, way how) const {
    r.baseline("OpenSSL, one thread", "gb_per_s", one_thread_rate_[how == way::encrypt]);
    r.baseline(fmt::format("OpenSSL, {} threads", all_threads_), "gb_per_s",
               all_threads_rate_[how == way::encrypt]);
  }

  /// Launches of `each` bytes into streams in turn, and one wait.
  void in_device_memory(way how, std::size_t each, unsigned in_flight) {
    const memory in(o_.where, simt::space::device, o_.bytes);
    const memory to(o_.where, simt::space::device, o_.bytes);
    simt::copy_bytes(o_.where, in.data(), before(how).data(), o_.bytes);
    const xts_keys keys{key_};
    const device_tables tables(o_.where);
    std::vector<simt::stream> streams;
    for (unsigned i = 0; i < in_flight; ++i) streams.emplace_back(o_.where);
    const tool::samples us = measured(o_.repeats, [&] {
      for (std::size_t at = 0; at < o_.bytes; at += each)
        launch_xts(streams[at / each % in_flight], keys, tables, how, piece(at, each),
                   in.data() + at, to.data() + at);
      for (const simt::stream& s : streams) s.wait();
    });
    std::vector<std::byte> got(o_.bytes);
    simt::copy_bytes(o_.where, got.data(), to.data(), o_.bytes);
    row r(name_of(how) + " in device memory, " + in_units(each) + at_a_time(in_flight));
    r.set("gb_per_s", gb_per_s(o_.bytes, us.median())).time(us);
    r.check(got == after(how), "another result than OpenSSL's");
    const auto p = o_.where.properties();
    const auto read = tool::limits::memory_read(o_.where, o_.where.is_cuda() ? 1u << 30 : 1u << 20);
    r.limit("device memory, read and written", "gb_per_s", read.number / 2);
    if (o_.where.is_cuda() && p.clock_khz != 0)
      r.limit(fmt::format("lookups in block-shared memory at {} MHz", p.clock_khz / 1000),
              "gb_per_s",
              p.sms * 1e-6 * p.clock_khz * simt::warp_size / lookups(14) * aes_block_bytes);
    beside_openssl(r, how);
    out_.add(r);
  }

  /// Requests as the file system has them, which the device reads and writes over the bus. One
  /// thread has each that is in flight, as in the file system.
  void in_host_memory(way how, unsigned in_flight) {
    const std::size_t all = in_flight * o_.request;
    const memory in(o_.where, simt::space::pinned, all), to(o_.where, simt::space::pinned, all);
    for (unsigned i = 0; i < in_flight; ++i)
      std::memcpy(in.data() + i * o_.request, before(how).data(), o_.request);
    const auto by = device_cipher(o_.where, key_);
    const unsigned turns =
        in_flight == 1 || !o_.where.is_cuda() ? 1 : 20;  // so that starting threads does not count
    const auto requests = [&](std::size_t at) {
      for (unsigned i = 0; i < turns; ++i)
        by->run(how, piece(0, o_.request), in.data() + at, to.data() + at);
    };
    const tool::samples us = measured(o_.where.is_cuda() ? 20 * o_.repeats : o_.repeats, [&] {
      std::vector<std::future<void>> others;
      for (unsigned i = 1; i < in_flight; ++i)
        others.push_back(std::async(std::launch::async, requests, i * o_.request));
      requests(0);
      for (auto& other : others) other.get();
    });
    row r(name_of(how) + " in host memory, " + in_units(o_.request) + at_a_time(in_flight));
    r.set("gb_per_s", gb_per_s(turns * all, us.median())).time(us);
    for (unsigned i = 0; i < in_flight; ++i)
      r.check(std::memcmp(to.data() + i * o_.request, after(how).data(), o_.request) == 0,
              "another result than OpenSSL's");
    if (o_.where.is_cuda()) {
      const double there = tool::limits::copy_to_device(o_.where, 1 << 28).number;
      const double back = tool::limits::copy_to_host(o_.where, 1 << 28).number;
      r.limit("the bus, in the slower direction", "gb_per_s", std::min(there, back));
    }
    beside_openssl(r, how);
    out_.add(r);
  }

  tool::report& out_;
  const bench_options& o_;
  const secret key_;
  const std::unique_ptr<cipher> openssl_;
  const std::vector<std::byte> plain_;
  std::vector<std::byte> encrypted_;
  unsigned all_threads_ = 1;
  double one_thread_rate_[2] = {}, all_threads_rate_[2] = {};
};

}  // namespace

void bench_ciphers(tool::report& out, const bench_options& o) { cipher_bench(out, o).run(); }

}  // namespace grosr::cryptfs
