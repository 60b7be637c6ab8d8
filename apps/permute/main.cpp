// permute: permutes the blocks of a file with a key on the device, whose kernel reads and writes
// the files itself. With --undo it makes the file what it was.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>

#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/pick_device.hpp"
#include "cli/program.hpp"
#include "cli/progress.hpp"
#include "permute/permutation.hpp"

namespace grosr::tool {
namespace {

struct permute_options {
  std::optional<std::string> device, from;
  std::string bytes = "64M", block = "8K", rounds = "16", key = "1", mode = "relaxed", out;
  bool started = false, undo = false;
};

/// A file of the program's, closed at the end; one that it made and that is not complete is
/// removed.
class own_file {
 public:
  own_file(const std::string& path, bool makes) : path_(path) {
    struct stat before {};
    makes_ = makes && ::lstat(path.c_str(), &before) != 0;
    file_ = ::open(path.c_str(),
                   makes ? O_RDWR | O_CREAT | O_CLOEXEC : O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0666);
    if (file_ < 0 || ::fstat(file_, &stat_) != 0)
      throw usage_error(fmt::format("{}: cannot be opened to {} ({})", one_line(path),
                                    makes ? "be written" : "be read", std::strerror(errno)));
    if (makes_) interrupt::remove_when_cut_off(path);
  }
  ~own_file() {
    if (makes_) {
      ::unlink(path_.c_str());
      interrupt::keep_when_cut_off(path_);
    }
    if (file_ >= 0) ::close(file_);
  }
  own_file(const own_file&) = delete;

  int descriptor() const { return file_; }
  const struct stat& facts() const { return stat_; }
  bool is_regular() const { return S_ISREG(stat_.st_mode); }
  std::string name() const { return one_line(path_); }
  void keep() {
    makes_ = false;
    interrupt::keep_when_cut_off(path_);
  }

 private:
  std::string path_;
  int file_ = -1;
  bool makes_ = false;
  struct stat stat_ {};
};

class permuting {
 public:
  explicit permuting(const permute_options& o) : where_(pick_device(o.device)) {
    p_.block_bytes = static_cast<std::uint32_t>(
        parse_bytes("--block", o.block, permutation::least_block, permutation::most_block));
    if (!std::has_single_bit(p_.block_bytes))
      throw usage_error(fmt::format("--block {}: it must be a power of two", p_.block_bytes));
    p_.rounds = static_cast<std::uint32_t>(parse_number("--rounds", o.rounds, 1, 65'536));
    p_.key = parse_number("--key", o.key, 0, ~std::uint64_t{0} >> 1);
    p_.undo = o.undo;
    how_ = {o.mode == "relaxed", o.started};
    if (o.undo && !o.from) throw usage_error("--undo needs --from FILE: what is to be undone");
    if (o.from) from_.emplace(*o.from, false);
    if (from_ && !from_->is_regular())
      throw usage_error(fmt::format("{}: it is no regular file", from_->name()));
    bytes_ = from_ ? static_cast<std::uint64_t>(from_->facts().st_size)
                   : parse_bytes("--bytes", o.bytes, 0, std::uint64_t{1} << 40);
    if (bytes_ == 0 || bytes_ % p_.block_bytes != 0)
      throw usage_error(fmt::format("{}: {} bytes are not whole blocks of {}; choose --block",
                                    from_ ? from_->name() : "--bytes", grouped(bytes_),
                                    grouped(p_.block_bytes)));
    out_.emplace(o.out, true);
    if (from_ && from_->facts().st_dev == out_->facts().st_dev &&
        from_->facts().st_ino == out_->facts().st_ino)
      throw usage_error(fmt::format("{}: it is the file that is read; name another", out_->name()));
    if (out_->is_regular() && ::ftruncate(out_->descriptor(), 0) != 0)
      throw usage_error(
          fmt::format("{}: cannot be emptied ({})", out_->name(), std::strerror(errno)));
  }

  int run() {
    sys::server server(where_);
    if (from_) server.grant(from_->descriptor());
    server.grant(out_->descriptor());
    const bool gpu = where_.is_cuda();
    const auto at_once =
        std::max(1u, static_cast<std::uint32_t>((gpu ? 256u << 20 : 64u << 10) / p_.block_bytes /
                                                (p_.rounds / 1024 + 1)));
    const std::uint64_t blocks = bytes_ / p_.block_bytes;
    const unsigned places = gpu ? where_.properties().sms * 2 : 4;
    permuter on(where_, server, std::min<std::uint64_t>(at_once, blocks) * p_.block_bytes);
    progress shown("permute", blocks);
    double us = 0;
    for (std::uint64_t first = 0; first < blocks; first += at_once) {
      const auto count =
          static_cast<std::uint32_t>(std::min<std::uint64_t>(at_once, blocks - first));
      const permuted r = on.run(p_, how_, places, from_ ? from_->descriptor() : -1,
                                {out_->descriptor()}, first, count);
      us += r.us;
      complain(r, server);
      shown.at(first + count);
    }
    const bool checked = out_->is_regular();
    if (checked) verify(blocks);
    out_->keep();
    progress::clear();
    fmt::print("{}: {} blocks of {} bytes {} by {} rounds on {} in {} ms, {} GB/s, {}\n",
               out_->name(), grouped(blocks), grouped(p_.block_bytes),
               p_.undo ? "put back" : "permuted", grouped(p_.rounds), where_.name(),
               three_digits(us / 1e3), three_digits(static_cast<double>(bytes_) / us / 1e3),
               checked ? "verified" : "not verified: it is no regular file");
    return exit_ok;
  }

 private:
  void complain(const permuted& r, const sys::server& server) const {
    if (r.failed != 0)
      throw std::runtime_error(fmt::format(
          "{}: {} blocks were not written ({}); free space, or raise the limit on file sizes",
          out_->name(), grouped(r.failed), r.code != 0 ? std::strerror(-r.code) : "cut short"));
    // Nobody waited for these; the server has counted them.
    for (const sys::call_statistics& c : server.statistics().calls)
      if (c.errors != 0)
        throw std::runtime_error(
            fmt::format("{}: {} calls of {} failed; without --started it is said why", out_->name(),
                        grouped(c.errors), c.name));
  }

  void verify(std::uint64_t blocks) const {
    progress shown("verify", blocks);
    const std::uint32_t words = p_.block_bytes / 4;
    std::vector<std::uint32_t> from(words), expected(words), got(words);
    const auto read = [&](const own_file& f, std::uint64_t b, std::vector<std::uint32_t>& to) {
      if (::pread(f.descriptor(), to.data(), p_.block_bytes,
                  static_cast<off_t>(b * p_.block_bytes)) != static_cast<ssize_t>(p_.block_bytes))
        throw std::runtime_error(fmt::format("{}: block {} is not there", f.name(), grouped(b)));
    };
    for (std::uint64_t b = 0; b < blocks; ++b) {
      if (from_)
        read(*from_, b, from);
      else
        for (std::uint32_t i = 0; i < words; ++i) from[i] = sample_word(b * words + i);
      permute_on_host(p_, b, from.data(), expected.data());
      read(*out_, b, got);
      if (got != expected)
        throw std::runtime_error(
            fmt::format("{}: block {} is not what the host makes of it", out_->name(), grouped(b)));
      shown.at(b + 1);
    }
  }

  device where_;
  permutation p_;
  writing how_;
  std::uint64_t bytes_ = 0;
  std::optional<own_file> from_, out_;
};

}  // namespace
}  // namespace grosr::tool

int main(int argc, char** argv) {
  using namespace grosr::tool;
  CLI::App program{
      "Permutes the words of each block of a file with a key, on a device whose kernel reads and "
      "writes the files",
      "permute"};
  permute_options o;
  program.add_option("OUT", o.out, "The file that is written")->required();
  program.add_option("--from", o.from, "What is permuted; else data of its own")->type_name("FILE");
  program.add_option("--device", o.device, "Where: cuda:N or host:N; the best present by default")
      ->type_name("D");
  program.add_option("--bytes", o.bytes, "How much data of its own; 64M")->type_name("N");
  program.add_option("--block", o.block, "Bytes of a block, a power of two, 512 to 16K; 8K")
      ->type_name("N");
  program.add_option("--rounds", o.rounds, "How often each block is permuted, 1 to 65536; 16")
      ->type_name("N");
  program.add_option("--key", o.key, "A whole number; 1")->type_name("N");
  program.add_option("--mode", o.mode, "Ordering of the writes: strong or relaxed (default)")
      ->check(CLI::IsMember({"strong", "relaxed"}))
      ->type_name("M");
  program.add_flag("--started", o.started, "The kernel does not wait for its writes");
  program.add_flag("--undo", o.undo, "The other way: from what was written to what was read");
  program.footer(
      "Examples:\n"
      "  permute --bytes 1G shuffled\n"
      "  permute --from photo.raw --key 7 --rounds 100 --started hidden\n"
      "  permute --from hidden --key 7 --rounds 100 --undo photo.raw2\n\n"
      "Exit code: 0; 1 if a file could not be written or is wrong; 2 if nothing was started; "
      "130 on Ctrl-C.");
  return run_program(program, argc, argv, [&] { return permuting(o).run(); });
}
