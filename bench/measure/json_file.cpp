#include "measure/json_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/text.hpp"

namespace grosr::tool {
namespace {

namespace fs = std::filesystem;

std::string why() { return std::strerror(errno); }

}  // namespace

json_file::json_file(const std::optional<std::string>& path, const char* option)
    : option_(option), path_(path.value_or("")) {
  if (!path || to_stdout()) return;
  const auto refuse = [&](const std::string& reason) {
    throw usage_error(
        fmt::format("{} {}: cannot write there ({}); give a path in a folder that "
                    "exists and that you may write to{}",
                    option_, one_line(path_), reason,
                    std::string_view(option_) == "--json" ? ", or - for standard output" : ""));
  };
  if (path_.empty()) refuse("the name is empty");
  std::error_code bad;
  fs::path target = fs::weakly_canonical(path_, bad);  // a link stays a link
  if (bad) refuse(bad.message());
  target_ = target.string();
  const fs::file_status status = fs::status(target, bad);
  if (fs::is_symlink(fs::symlink_status(path_, bad)) && !fs::exists(status))
    refuse("it is a link to what does not exist");
  if (fs::is_directory(status)) refuse("it is a folder");
  if (fs::exists(status) && access(target_.c_str(), W_OK) != 0) refuse(why());
  if (fs::is_fifo(status)) {
    // Held open until the results are written, lest the reader thinks that all has come.
    pipe_ = open(target_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (pipe_ < 0) refuse(errno == ENXIO ? "nobody reads this pipe" : why());
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) return;
  temporary_ = fmt::format("{}.{}.tmp", target_, getpid());
  if (!std::ofstream(temporary_)) {
    const std::string reason = why();
    temporary_.clear();
    refuse(reason);
  }
  interrupt::remove_when_cut_off(temporary_);
}

json_file::json_file(json_file&& other) noexcept
    : option_(other.option_),
      path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, "")),
      pipe_(std::exchange(other.pipe_, -1)) {
  other.path_.clear();
}

json_file::~json_file() {
  if (!temporary_.empty()) {
    unlink(temporary_.c_str());
    interrupt::keep_when_cut_off(temporary_);
  }
  if (pipe_ >= 0) close(pipe_);
}

void json_file::write(const nlohmann::ordered_json& document) {
  if (path_.empty()) return;
  using handler = nlohmann::ordered_json::error_handler_t;
  const std::string text = document.dump(2, ' ', false, handler::replace) + "\n";
  if (to_stdout()) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
      return;
    throw std::runtime_error(
        fmt::format("{} -: cannot write to standard output ({})", option_, why()));
  }
  std::ofstream out(temporary_.empty() ? target_ : temporary_);
  out << text;
  out.close();
  if (!out || (!temporary_.empty() && std::rename(temporary_.c_str(), target_.c_str()) != 0))
    throw std::runtime_error(
        fmt::format("{} {}: cannot write the results there any more ({}); "
                    "free space or give another path",
                    option_, one_line(path_), why()));
  interrupt::keep_when_cut_off(temporary_);
  temporary_.clear();
}

}  // namespace grosr::tool
