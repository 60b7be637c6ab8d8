// `grosr devices`.
#include <memory>

#include <fmt/format.h>

#include <grosr/version.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/errors.hpp"
#include "cli/text.hpp"
#include "grosr/simt/device.hpp"
#include "measure/driver.hpp"
#include "measure/json_file.hpp"

namespace grosr::tool {
namespace {

nlohmann::ordered_json as_json(const device& d) {
  const device_properties p = d.properties();
  return {{"name", d.name()},
          {"description", p.description},
          {"architecture", p.architecture},
          {"sms", p.sms},
          {"max_threads_per_sm", p.max_threads_per_sm},
          {"max_threads_per_block", p.max_threads_per_block},
          {"memory_bytes", p.memory},
          {"memory_free_bytes", p.memory_free},
          {"clock_khz", p.clock_khz},
          {"l2_bytes", p.l2_bytes},
          {"driver", driver_version(d)}};
}

void print_table() {
  fmt::print("{:<8} {:<40} {:<8} {:>5} {:>10} {:>9} {:>9}\n", "device", "description", "arch",
             "SMs", "threads/SM", "memory", "free");
  for (const device& d : device::list()) {
    device_properties p;
    try {
      p = d.properties();
    } catch (const error& e) {
      fmt::print("{:<8} {}\n", d.name(), e.what());
      continue;
    }
    fmt::print("{:<8} {:<40.40} {:<8} {:>5} {:>10} {:>9} {:>9}\n", d.name(), p.description,
               p.architecture, p.sms, p.max_threads_per_sm,
               only_unit("bytes", static_cast<double>(p.memory)),
               only_unit("bytes", static_cast<double>(p.memory_free)));
  }
  if (const std::string why = device::cuda_status(); !why.empty())
    fmt::print("\nno GPU here: {}. host:0 runs the same programs on the CPU.\n", why);
}

int list_devices(bool json, const std::string& path) {
  if (!json) {
    print_table();
    return exit_ok;
  }
  json_file file(path.empty() ? "-" : path);
  nlohmann::ordered_json document{{"commit", commit()}, {"devices", nlohmann::json::array()}};
  for (const device& d : device::list()) document["devices"].push_back(as_json(d));
  document["cuda_status"] = device::cuda_status();
  file.write(document);
  if (!file.to_stdout()) print_table();
  return exit_ok;
}

}  // namespace

void add_devices_command(CLI::App& program, action& chosen) {
  auto* command = program.add_subcommand("devices", "List the devices: GPUs, and the CPU as one");
  auto path = std::make_shared<std::string>();
  auto* json = command->add_option("--json", *path,
                                   "Write JSON to FILE, or to standard output without FILE");
  json->expected(0, 1)->type_name("[FILE]");
  command->footer("Example:\n  grosr devices --json | jq '.devices[].name'");
  command->callback(
      [=, &chosen] { chosen = [=] { return list_devices(json->count() > 0, *path); }; });
}

}  // namespace grosr::tool
