// `cryptfs check`: the vectors of IEEE 1619, and OpenSSL on random data.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "cipher.hpp"
#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/pick_device.hpp"
#include "cli/text.hpp"
#include "commands.hpp"
#include "vectors.hpp"

namespace grosr::cryptfs {
namespace {

using bytes = std::vector<std::uint8_t>;
using pinned = simt::buffer<std::byte>;

struct asked {
  std::optional<std::string> device;
  std::string seed = "1";
};

bytes from_hex(const char* text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  bytes b(std::strlen(text) / 2);
  for (std::size_t i = 0; i < b.size(); ++i)
    b[i] = static_cast<std::uint8_t>(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
  return b;
}

bytes plain_of(const test_vector& v) {
  if (v.plain != counting_512) return from_hex(v.plain);
  bytes b(512);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<std::uint8_t>(i);
  return b;
}

secret secret_of(const bytes& b) {
  secret s(b.size());
  std::copy(b.begin(), b.end(), s.data());
  return s;
}

bytes run(cipher& c, way how, const sectors& what, const bytes& in) {
  const pinned from(c.memory(), simt::space::pinned, in.size());
  const pinned to(c.memory(), simt::space::pinned, in.size());
  std::memcpy(from.data(), in.data(), in.size());
  c.run(how, what, from.data(), to.data());
  bytes out(in.size());
  std::memcpy(out.data(), to.data(), out.size());
  return out;
}

/// How many of the standard's vectors there are; throws for one that is not reached.
std::size_t check_vectors(const device& d) {
  for (const test_vector& v : test_vectors()) {
    const bytes plain = plain_of(v), encrypted = from_hex(v.encrypted);
    const sectors what{
        .first = v.unit, .count = 1, .bytes = static_cast<std::uint32_t>(plain.size())};
    const auto c = device_cipher(d, secret_of(from_hex(v.key)));
    if (run(*c, way::encrypt, what, plain) != encrypted ||
        run(*c, way::decrypt, what, encrypted) != plain)
      throw std::runtime_error(
          fmt::format("vector {} of IEEE 1619 comes out wrong on {}", v.number, d.name()));
  }
  return test_vectors().size();
}

/// Requests of all sizes, with both kinds of keys, beside OpenSSL; how many there were.
std::size_t check_random(const device& d, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto fill = [&](std::uint8_t* p, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) p[i] = static_cast<std::uint8_t>(random());
  };
  // Sectors of one AES block, of no power of two, and the usual ones; few and many of them.
  const std::size_t large = d.is_cuda() ? 1 << 20 : 1 << 16;
  std::size_t done = 0;
  for (const std::size_t key_bytes : {32, 64})
    for (const std::uint32_t sector : {16u, 528u, 512u, 4096u})
      for (const std::size_t count : {std::size_t{1}, std::size_t{5}, large / sector}) {
        tool::interrupt::check();
        secret key(key_bytes);
        fill(key.data(), key.size());
        const sectors what{random(), random(), std::max<std::size_t>(count, 1), sector};
        bytes plain(what.all_bytes());
        fill(plain.data(), plain.size());
        const auto ours = device_cipher(d, key), theirs = openssl_cipher(key);
        const bytes encrypted = run(*theirs, way::encrypt, what, plain);
        if (run(*ours, way::encrypt, what, plain) != encrypted ||
            run(*ours, way::decrypt, what, encrypted) != plain)
          throw std::runtime_error(
              fmt::format("{} sectors of {} bytes by a key of {} come out on {} other than by "
                          "OpenSSL; --seed {}",
                          what.count, sector, key_bytes, d.name(), seed));
        ++done;
      }
  return done;
}

int check(const asked& a) {
  const device d = tool::pick_device(a.device);
  const std::uint64_t seed = tool::parse_number("--seed", a.seed, 0, ~0u);
  const std::size_t vectors = check_vectors(d);
  const std::size_t random = check_random(d, seed);
  fmt::print(
      "cryptfs: {} vectors of IEEE 1619 come out right on {}, {} random requests as by "
      "OpenSSL\n",
      vectors, d.name(), random);
  return tool::exit_ok;
}

}  // namespace

void add_check_command(CLI::App& program, action& chosen) {
  auto* command = program.add_subcommand(
      "check", "Compare a device's AES-XTS with the vectors of IEEE 1619, and with OpenSSL");
  auto a = std::make_shared<asked>();
  command->add_option("--device", a->device, "Where: cuda:N or host:N; the best present by default")
      ->type_name("D");
  command->add_option("--seed", a->seed, "Of the random requests (1)")->type_name("N");
  command->footer(
      "Example:\n"
      "  ./cryptfs check --device host:0\n\n"
      "Exit code: 0; 1 if a result was wrong; 2 if nothing could be started; 130 on Ctrl-C.");
  command->callback([=, &chosen] { chosen = [=] { return check(*a); }; });
}

}  // namespace grosr::cryptfs
