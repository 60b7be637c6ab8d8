// `grosr tour`.
#include <unistd.h>

#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/pick_device.hpp"
#include "cli/text.hpp"
#include "tour/parts.hpp"

namespace grosr::tool {
namespace {

namespace fs = std::filesystem;

/// The folder named, or the repository around the current folder, or the current folder.
std::string pick_folder(const std::optional<std::string>& name) {
  if (!name) {
    std::error_code bad;
    const fs::path here = fs::current_path(bad);
    if (bad)
      throw usage_error(
          fmt::format("tour: the current folder asked for, but it cannot be reached "
                      "({}); name a folder, or change to one that exists",
                      bad.message()));
    for (fs::path at = here;; at = at.parent_path()) {
      if (fs::exists(at / ".git", bad)) return at.string();
      if (at == at.root_path()) return here.string();
    }
  }
  const std::string& named = *name;
  const auto refuse = [&](const std::string& found) {
    throw usage_error(
        fmt::format("tour: folder \"{}\" asked for, but {}; name a folder whose text "
                    "files can be read, or none for the repository you are in",
                    one_line(named), found));
  };
  std::error_code bad;
  const fs::file_status status = fs::status(named, bad);
  if (status.type() == fs::file_type::not_found) refuse("there is none");
  if (bad) refuse("it cannot be reached: " + bad.message());
  if (!fs::is_directory(status)) refuse("that is no folder");
  if (access(named.c_str(), R_OK | X_OK) != 0) refuse("it cannot be read");
  return named;
}

int run_tour(const std::optional<std::string>& folder_named,
             const std::optional<std::string>& device_name,
             const std::optional<std::string>& json) {
  const std::string folder = pick_folder(folder_named);
  const device where = pick_device(device_name);
  report out("tour", where, json_file(json), report::style::one_line_a_row);
  if (!where.is_cuda()) {
    const std::string why = device::cuda_status();
    out.remark(fmt::format("{} checks programs, and its rates say nothing about a GPU{}",
                           where.name(), why.empty() ? "" : "; no GPU is used here: " + why));
  }
  session s{where, out, {}};
  try {
    for (const tour_part& part : tour_parts()) {
      interrupt::check();
      part.run(s, folder);
    }
  } catch (const interrupt::interrupted&) {
    out.interrupted();
    out.finish();
    return exit_interrupted;
  } catch (const std::exception& e) {
    out.failed(e.what());
    out.finish();
    throw;
  }
  const int code = out.finish();
  if (code == exit_ok)
    out.remark(fmt::format("all {} parts gave the right results", tour_parts().size()));
  return code;
}

}  // namespace

void add_tour_command(CLI::App& program, action& chosen) {
  auto* command = program.add_subcommand(
      "tour", "Real work through every part there is, each result checked, a line a part");
  struct options {
    std::optional<std::string> folder, device;
    std::optional<std::string> json;
  };
  auto o = std::make_shared<options>();
  command
      ->add_option("FOLDER", o->folder,
                   "Whose text files' words are counted; by default the repository you are in, "
                   "else the current folder")
      ->type_name("");
  command->add_option("--device", o->device, "Where: cuda:N or host:N; the best present by default")
      ->type_name("D");
  command->add_option("--json", o->json, "Also write the results to FILE; - is standard output")
      ->type_name("FILE");
  std::string parts;
  for (const tour_part& part : tour_parts())
    parts += fmt::format("  {:<10} {}\n", part.name, part.summary);
  command->footer(
      fmt::format("Parts:\n{}\nExamples:\n  grosr tour\n  grosr tour /usr/share/doc "
                  "--device host:0 --json tour.json",
                  parts));
  command->callback(
      [=, &chosen] { chosen = [=] { return run_tour(o->folder, o->device, o->json); }; });
}

}  // namespace grosr::tool
