#include "measure/report.hpp"

#include <memory>
#include <thread>

#include <fmt/format.h>

#include <grosr/version.hpp>
#include <nlohmann/json.hpp>

#include "cli/errors.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"
#include "measure/driver.hpp"
#include "measure/machine.hpp"
#include "measure/render.hpp"

namespace grosr::tool {
namespace {

std::string compilers() {
  const build_info b = build();
  return std::string(b.compiler) + (b.nvcc.empty() ? "" : ", " + std::string(b.nvcc));
}

}  // namespace

report::report(std::string title, const device& where, json_file file, style how)
    : where_(where),
      file_(std::move(file)),
      style_(how),
      document_(std::make_unique<nlohmann::ordered_json>()),
      cpu_began_(cpu_seconds()),
      cpu_row_began_(cpu_began_) {
  const std::string description = where.properties().description;
  *document_ = {{"bench", title},
                {"commit", commit()},
                {"device", where.name()},
                {"device_description", description},
                {"compiler", compilers()},
                {"build_type", build().build_type},
                {"build_flags", build().flags},
                {"driver", driver_version(where)},
                {"host",
                 {{"cpu", cpu_model()},
                  {"processors", std::thread::hardware_concurrency()},
                  {"system", system_name()},
                  {"kernel", kernel_version()}}},
                {"date", utc_now()},
                {"limits", nlohmann::ordered_json::object()},
                {"rows", nlohmann::ordered_json::array()}};
  print(
      fmt::format("grosr {} on {} ({}), commit {}\n", title, where.name(), description, commit()));
}

report::~report() = default;

void report::limit(const std::string& key, double number) {
  auto& limits = (*document_)["limits"];
  if (limits.contains(key)) return;
  limits[key] = number;
  if (style_ == style::full)
    print(fmt::format("  limit of this run: {}\n", with_unit(key, number)));
}

void report::quick() {
  judge_ = false;
  (*document_)["quick"] = true;
}

void report::add(const row& r) {
  ++rows_;
  invalid_ += r.valid() ? 0 : 1;
  auto& j = (*document_)["rows"].emplace_back(as_json(r, judge_));
  const double cpu = cpu_seconds(), wall = microseconds_since(row_began_) * 1e-6;
  j["cpu_cores"] = wall > 0 ? (cpu - cpu_row_began_) / wall : 0;
  cpu_row_began_ = cpu;
  row_began_ = clock::now();
  print(style_ == style::full ? as_text(r, judge_) : as_line(r));
}

void report::attach(const std::string& key, const std::string& json) {
  (*document_)[key] = nlohmann::ordered_json::parse(json);
}

void report::remark(const std::string& text) { print(fmt::format("  {}\n", text)); }

void report::interrupted() {
  (*document_)["interrupted"] = true;
  print(fmt::format("interrupted: {} done, the rest was stopped\n",
                    rows_ == 1 ? "1 row was" : fmt::format("{} rows were", rows_)));
}

void report::failed(const std::string& why) { (*document_)["error"] = why; }

int report::finish() {
  (*document_)["wall_seconds"] = microseconds_since(began_) * 1e-6;
  (*document_)["cpu_seconds"] = cpu_seconds() - cpu_began_;
  file_.write(*document_);
  if (invalid_ == 0) return exit_ok;
  print(fmt::format("! {} of {} rows are INVALID: their results were wrong, see above\n", invalid_,
                    rows_));
  return exit_failed;
}

// With `--json -` standard output belongs to the document.
void report::print(const std::string& text) const {
  progress::clear();
  std::FILE* to = file_.to_stdout() ? stderr : stdout;
  std::fwrite(text.data(), 1, text.size(), to);
  std::fflush(to);
}

}  // namespace grosr::tool
