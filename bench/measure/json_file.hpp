// A JSON document that is wholly there or not at all.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace grosr::tool {

/// Takes the place of `path` when write() is called, by way of a temporary file beside it. "-" is
/// standard output; nullopt writes nothing. A path of another kind than a regular file is written
/// to directly.
class json_file {
 public:
  /// Makes the temporary file, so that a path that cannot be written is known before work starts.
  /// `option` named the path, and errors name it. Throws usage_error.
  explicit json_file(const std::optional<std::string>& path, const char* option = "--json");
  ~json_file();
  json_file(json_file&& other) noexcept;
  json_file(const json_file&) = delete;

  bool wanted() const { return !path_.empty(); }
  bool to_stdout() const { return path_ == "-"; }

  /// Throws std::runtime_error when the document cannot be written, e.g. because the disk is full.
  void write(const nlohmann::ordered_json& document);

 private:
  const char* option_;
  std::string path_, target_, temporary_;
  int pipe_ = -1;
};

}  // namespace grosr::tool
