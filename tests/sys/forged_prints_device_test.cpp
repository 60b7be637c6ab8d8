// Records of prints that no wrapper wrote, and those that a kernel changes meanwhile, show nothing
// of the program's and do it no harm.
#include <fcntl.h>

#include <cstring>

#include "support/scale.hpp"
#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(forged_prints);

constexpr std::uint64_t text_kind = static_cast<std::uint64_t>(printed::text);
constexpr std::uint64_t number_kind = static_cast<std::uint64_t>(printed::natural);

/// What lies in memory that kernels may use: words of a print, and a format.
struct forged {
  std::uint64_t words[8];
  char format[32];
};

struct print_forged {
  server_ref sys;
  const forged* first;
  unsigned count;
  const void* text;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    for (unsigned i = 0; i < count; ++i)
      r[i] = invoke(sys, detail::make<0>(call_print, first[i].format, first[i].words, text));
  }
};

TEST_P(forged_prints, show_nothing_of_the_program) {
  const std::string secret(4096, 'S');
  own_folder f;
  const int to = ::open(f.file("out").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  const std::uint64_t own_format = 3ull << 32;
  const forged all[] = {
      {{1 | own_format, text_kind, 2 | 64ull << 32}, "{}\n"},          // the program's text
      {{1 | own_format, text_kind, 1 | 0xffffffffull << 32}, "{}\n"},  // longer than there is
      {{1 | own_format, text_kind, 0x12345 | 64ull << 32}, "{}\n"},    // no such argument
      {{0xffffffff | own_format, number_kind, 1}, "{}\n"},             // arguments without end
      {{0x10000001 | own_format, number_kind, 1}, "{}\n"},             // the same
      {{1 | 0xffffffffull << 32, number_kind, 1}, "{}\n"},             // a format without end
      {{1 | 100000ull << 32, number_kind, 1}, "{}\n"},                 // longer than any
      {{1 | own_format, number_kind, 1}, "{}\n"},                      // right
      {{1 | own_format, 0x1234567800 | number_kind, 1}, "{}\n"},       // no such kind
      {{1 | 17ull << 32, static_cast<std::uint64_t>(printed::real), 1}, "{:.2147483646f}\n\n"},
  };
  constexpr unsigned count = std::size(all);
  simt::buffer<forged> where_they_lie(where(), simt::space::pinned, count);
  std::copy_n(all, count, where_they_lie.data());
  auto r = make<std::int64_t>(count);
  {
    options o;
    o.print_to = to;
    o.use_arena = true;
    server s(where(), o);
    s.share(std::as_writable_bytes(std::span(where_they_lie.data(), count)));
    run(1, 32, print_forged{s.ref(), where_they_lie.data(), count, secret.data(), r.data()});
  }
  ::close(to);
  const auto got = contents(r);
  for (unsigned i = 0; i < 7; ++i) EXPECT_EQ(got[i], -EFAULT) << i;
  EXPECT_EQ(got[7], 0);
  const std::string text = f.read("out");
  EXPECT_TRUE(text.starts_with("1\n")) << text.substr(0, 100);
  EXPECT_EQ(text.find('S'), text.npos);
  EXPECT_LT(text.size(), 3u << 20);
}

// Some lanes print, others write over the arena.
struct print_and_scribble {
  server_ref sys;
  int file;
  std::uint32_t turns;
  GROSR_DEVICE void operator()() const {
    const view& v = sys.where();
    if (simt::warp_id() % 2 == 0) {
      for (std::uint32_t i = 0; i < turns; ++i) print(sys, "{} {}\n", "some text", i);
      return;
    }
    // The smallest chunks, which prints use.
    const std::size_t all = std::size_t{v.chunks[0].words()} * 32 * chunk_stride(0);
    for (std::uint32_t i = 0; i < turns; ++i)
      for (std::size_t at = 0; at < all; at += 65536)
        syscall(sys, SYS_pread64, file, v.arena[0] + at, all - at < 65536 ? all - at : 65536, 0);
  }
};

TEST_P(forged_prints, that_are_scribbled_over_do_no_harm) {
  own_folder f;
  // As the words of a print: six texts of 2 GiB each.
  const std::vector<std::uint64_t> words(65536 / 8, 0x7fffffff'00000006);
  f.write("in", std::string(reinterpret_cast<const char*>(words.data()), 65536));
  const int to = ::open(f.file("out").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  const int from = ::open(f.file("in").c_str(), O_RDONLY | O_CLOEXEC);
  {
    options o;
    o.threads = 3;
    o.print_to = to;
    o.use_arena = true;
    server s(where(), o);
    s.grant(from);
    const auto turns = static_cast<std::uint32_t>(testing::scaled(100, 10));
    run(2, 128, print_and_scribble{s.ref(), from, turns});
  }
  ::close(to);
  ::close(from);
}

}  // namespace
}  // namespace grosr::sys
