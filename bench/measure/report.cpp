#include "measure/report.hpp"

#include <memory>

#include <fmt/format.h>

#include <grosr/version.hpp>
#include <nlohmann/json.hpp>

#include "cli/errors.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"
#include "measure/driver.hpp"
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
      document_(std::make_unique<nlohmann::ordered_json>()) {
  const std::string description = where.properties().description;
  *document_ = {{"bench", title},
                {"commit", commit()},
                {"device", where.name()},
                {"device_description", description},
                {"compiler", compilers()},
                {"build_type", build().build_type},
                {"driver", driver_version(where)},
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

void report::add(const row& r) {
  ++rows_;
  invalid_ += r.valid() ? 0 : 1;
  (*document_)["rows"].push_back(as_json(r, where_.is_cuda()));
  print(style_ == style::full ? as_text(r, where_.is_cuda()) : as_line(r));
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
