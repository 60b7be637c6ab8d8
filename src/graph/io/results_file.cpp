#include "grosr/graph/io/results_file.hpp"

#include <fmt/format.h>

#include <cstring>
#include <stdexcept>
#include <utility>

#include "graph/io/output_file.hpp"
#include "grosr/simt/error.hpp"

namespace grosr::graphs {

results_file::results_file(std::string asked, const std::string& path, work_watcher watch)
    : asked_(std::move(asked)),
      watch_(std::move(watch)),
      file_(std::make_unique<output_file>()),
      buffer_(std::size_t{1} << 20) {
  const auto refuse = [&](const char* why) {
    throw error(errc::write_failed, fmt::format("{}: cannot write there ({}); give a file in a "
                                                "folder that exists and that you may write "
                                                "to",
                                                asked_, why));
  };
  if (path == "-") refuse("standard output is for the report");
  if (const int bad = file_->open(path); bad != 0) refuse(std::strerror(bad));
}

results_file::~results_file() = default;

void results_file::no_field() {
  begin_field();
  buffer_[used_++] = '-';
}

void results_file::end_line() {
  buffer_[used_++] = '\n';
  first_in_line_ = true;
  if (used_ + 1024 > buffer_.size()) flush();
}

void results_file::finish() {
  flush();
  expect(file_->finish());
}

void results_file::begin_field() {
  if (!std::exchange(first_in_line_, false)) buffer_[used_++] = ' ';
  if (used_ + longest_field > buffer_.size()) flush();
}

void results_file::flush() {
  if (watch_) watch_({"writing results", 0, 0});
  expect(file_->write(buffer_.data(), used_));
  used_ = 0;
}

void results_file::expect(int bad) const {
  if (bad == 0) return;
  throw error(errc::write_failed,
              fmt::format("{}: writing the results failed ({}); free space or give "
                          "another file",
                          asked_, std::strerror(bad)));
}

}  // namespace grosr::graphs
