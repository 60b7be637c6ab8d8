// `cryptfs compete`: what `bench --competing` measures beside.
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>

#include <memory>
#include <optional>
#include <system_error>

#include "busy.hpp"
#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/pick_device.hpp"
#include "cli/text.hpp"
#include "commands.hpp"
#include "competitors.hpp"
#include "measure/samples.hpp"
#include "own_process.hpp"

namespace grosr::cryptfs {
namespace {

struct asked {
  std::optional<std::string> device;
  std::string kernel_ms = "19", seconds = "10";
  std::uint64_t steps = 0;  ///< not 0: for `bench`, which says how long a kernel is
};

// What `bench` gives it: a pipe that is open for as long as it is to go on, and where to count.
constexpr int until_fd = 3, count_fd = 4;

/// Whether the other end of a pipe is closed, by its process or by the end of that.
bool is_closed(int fd) {
  pollfd other{fd, POLLIN, 0};
  return poll(&other, 1, 0) != 0;
}

void yield_to_all() {
  if (setpriority(PRIO_PROCESS, 0, 19) != 0)
    throw std::system_error(errno, std::generic_category(), "the priority cannot be lowered");
}

int compete_for_bench(const asked& a) {
  end_with_parent();  // also in the middle of a kernel
  yield_to_all();
  const shared_memory count = shared_memory::of(count_fd);
  if (is_closed(until_fd)) return tool::exit_ok;
  busy_kernel kernel(tool::pick_device(a.device));
  while (!is_closed(until_fd) && !tool::interrupt::requested()) {
    kernel.run(a.steps);
    ++kernels_in(count);
  }
  return tool::interrupt::requested() ? tool::exit_interrupted : tool::exit_ok;
}

int compete(const asked& a) {
  if (a.steps != 0) return compete_for_bench(a);
  const auto kernel_ms = tool::parse_number("--kernel-ms", a.kernel_ms, 1, 1000);
  const auto seconds = tool::parse_number("--seconds", a.seconds, 1, 86400);
  const device where = tool::pick_device(a.device);
  yield_to_all();
  const busy_time each = calibrate(where, static_cast<double>(kernel_ms) * 1e3);
  fmt::print("cryptfs: kernels of {:.1f} ms each keep {} busy for {} s\n", each.us * 1e-3,
             where.name(), seconds);
  std::fflush(stdout);
  busy_kernel kernel(where);
  std::uint64_t done = 0;
  const auto began = tool::clock::now();
  double us = 0;
  for (; us < static_cast<double>(seconds) * 1e6; us = tool::microseconds_since(began), ++done) {
    tool::interrupt::check();
    kernel.run(each.steps);
  }
  fmt::print("cryptfs: {:.1f} kernels/s\n", static_cast<double>(done) * 1e6 / us);
  return tool::exit_ok;
}

}  // namespace

void add_compete_command(CLI::App& program, action& chosen) {
  auto* command = program.add_subcommand(
      "compete", "Keep a device busy, to see what a file system does beside that");
  auto a = std::make_shared<asked>();
  command->add_option("--device", a->device, "Where: cuda:N or host:N; the best present by default")
      ->type_name("D");
  command->add_option("--kernel-ms", a->kernel_ms, "How long a kernel takes alone, in ms (19)")
      ->type_name("N");
  command->add_option("--seconds", a->seconds, "How long to go on (10)")->type_name("S");
  command->add_option("--steps", a->steps)->group("");
  command->footer(
      "Examples:\n"
      "  ./cryptfs compete --seconds 60 &\n"
      "  ./cryptfs compete --device cuda:1 --kernel-ms 5\n\n"
      "It runs at nice +19. Exit code: 0; 1 if the device failed; 2 if nothing could be started; "
      "130 on Ctrl-C.");
  command->callback([=, &chosen] { chosen = [=] { return compete(*a); }; });
}

}  // namespace grosr::cryptfs
