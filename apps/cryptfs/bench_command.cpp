// `cryptfs bench`.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "bench.hpp"
#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/pick_device.hpp"
#include "cli/text.hpp"
#include "commands.hpp"
#include "file_format.hpp"

namespace grosr::cryptfs {
namespace {

struct asked {
  std::optional<std::string> device, json, bytes;
  std::string repeats = "5", file_bytes = "200M", directory, kernel_ms = "19";
  std::vector<std::string> competing;
  bool ciphers_only = false;
};

constexpr unsigned most_competing = 8;

std::string memory_folder() {
  if (access("/dev/shm", W_OK) == 0) return "/dev/shm";
  return std::filesystem::temp_directory_path().string();
}

/// Each number once.
std::vector<unsigned> numbers_of(const std::vector<std::string>& competing) {
  std::vector<unsigned> all;
  for (const std::string& text : competing) {
    const auto n =
        static_cast<unsigned>(tool::parse_number("--competing", text, 0, most_competing));
    if (std::find(all.begin(), all.end(), n) == all.end()) all.push_back(n);
  }
  return all;
}

void run(tool::report& out, const bench_options& o, bool ciphers_only) {
  if (!o.competing.empty()) return bench_competing(out, o);
  bench_ciphers(out, o);
  if (ciphers_only) return;
  try {
    bench_files(out, o);
  } catch (const tool::usage_error& e) {
    out.remark(fmt::format("no file system was measured: {}", e.what()));
  }
}

int bench(const asked& a) {
  bench_options o;
  o.where = tool::pick_device(a.device);
  o.request = o.where.is_cuda() ? most_request : 1 << 16;
  o.bytes = tool::parse_bytes("--bytes", a.bytes.value_or(o.where.is_cuda() ? "512M" : "64K"),
                              o.request, std::uint64_t{16} << 30);
  o.bytes -= o.bytes % o.request;
  o.file_bytes = tool::parse_bytes("--file-bytes", a.file_bytes, 1, std::uint64_t{16} << 30);
  o.repeats = static_cast<unsigned>(tool::parse_number("--repeats", a.repeats, 1, 1000));
  o.directory = a.directory.empty() ? memory_folder() : a.directory;
  o.competing = numbers_of(a.competing);
  o.kernel_us = 1e3 * static_cast<double>(tool::parse_number("--kernel-ms", a.kernel_ms, 1, 1000));
  tool::report out(o.competing.empty() ? "cryptfs" : "cryptfs-competing", o.where,
                   tool::json_file(a.json));
  try {
    run(out, o, a.ciphers_only);
  } catch (const tool::interrupt::interrupted&) {
    out.interrupted();
    out.finish();
    return tool::exit_interrupted;
  } catch (const std::exception& e) {
    out.failed(e.what());
    out.finish();
    throw;
  }
  return out.finish();
}

}  // namespace

void add_bench_command(CLI::App& program, action& chosen) {
  auto* command = program.add_subcommand(
      "bench", "AES-XTS beside its limits and OpenSSL; the file system beside others");
  auto a = std::make_shared<asked>();
  command->add_option("--device", a->device, "Where: cuda:N or host:N; the best present by default")
      ->type_name("D");
  command->add_option("--bytes", a->bytes, "Encrypted in all; on GPUs 512M, else 64K")
      ->type_name("B");
  command->add_option("--file-bytes", a->file_bytes, "Of the file (200M)")->type_name("B");
  command->add_option("--repeats", a->repeats, "How often to measure (5)")->type_name("N");
  command
      ->add_option("--directory", a->directory,
                   "Where encrypted directories are made; /dev/shm by default, which is memory")
      ->type_name("DIR");
  auto* only = command->add_flag("--ciphers-only", a->ciphers_only, "No file systems");
  command
      ->add_option("--competing", a->competing,
                   "Only the file system, while N other processes keep the device busy, 0 to 8; "
                   "again for further numbers")
      ->type_name("N")
      ->allow_extra_args(false)
      ->excludes(only);
  command->add_option("--kernel-ms", a->kernel_ms, "How long a kernel of theirs takes (19)")
      ->type_name("N");
  command->add_option("--json", a->json, "Also write the results to FILE; - is standard output")
      ->type_name("FILE");
  command->footer(
      "Examples:\n"
      "  ./cryptfs bench --json cryptfs.json\n"
      "  ./cryptfs bench --device host:0 --file-bytes 10M --repeats 1\n"
      "  ./cryptfs bench --competing 0 --competing 1 --competing 2\n\n"
      "Exit code: 0; 1 if a result was wrong; 2 if nothing could be started; 130 on Ctrl-C.");
  command->callback([=, &chosen] { chosen = [=] { return bench(*a); }; });
}

}  // namespace grosr::cryptfs
