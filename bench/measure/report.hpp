// What a command found out: printed line by line as it comes, and kept for the JSON document.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "grosr/simt/device.hpp"
#include "measure/json_file.hpp"
#include "measure/row.hpp"

namespace grosr::tool {

/// The document: {"bench", "commit", "device", "device_description", "compiler", "build_type",
/// "build_flags", "driver", "host": {"cpu", "processors", "system", "kernel"}, "date", "limits":
/// {key: number}, "rows": [{"name", "valid", values..., "cpu_cores", "limits", "baselines",
/// "targets", "notes"}], "wall_seconds", "cpu_seconds"}, and "interrupted" or "error" where it
/// ended early. "cpu_cores": how many processors the program kept busy since the row before, set-up
/// and checks included. Records made before it had all of them lack some.
class report {
 public:
  enum class style { full, one_line_a_row };

  /// Prints the heading. `title` is the bench's name, or "tour".
  report(std::string title, const device& where, json_file file, style how = style::full);
  ~report();
  report(const report&) = delete;

  /// A physical limit, measured in this run. The key's last word is its unit.
  void limit(const std::string& key, double number);

  /// The run is a short one: the document says {"quick": true}, and no target is judged.
  void quick();

  /// A finished row. Targets are judged on GPUs only.
  void add(const row& r);

  /// Puts a JSON document into this one, under `key`.
  void attach(const std::string& key, const std::string& json);

  /// A line of text that the reader should know.
  void remark(const std::string& text);

  void interrupted();
  void failed(const std::string& why);

  /// Writes the document; returns the exit code: 0, or 1 when a row was not valid.
  int finish();

 private:
  void print(const std::string& text) const;

  device where_;
  bool judge_ = where_.is_cuda();
  json_file file_;
  style style_;
  std::unique_ptr<nlohmann::ordered_json> document_;
  unsigned rows_ = 0, invalid_ = 0;
  const clock::time_point began_ = clock::now();
  const double cpu_began_;
  clock::time_point row_began_ = began_;
  double cpu_row_began_;
};

}  // namespace grosr::tool
