#include "grosr/graph/io/results_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "cli/errors.hpp"
#include "cli/interrupt.hpp"

namespace grosr::graphs {

results_file::results_file(std::string asked, const std::string& path)
    : asked_(std::move(asked)), path_(path), buffer_(std::size_t{1} << 20) {
  const auto refuse = [&](const char* why) {
    throw tool::usage_error(fmt::format(
        "{}: cannot write there ({}); give a file in a folder that exists and that you may write "
        "to",
        asked_, why));
  };
  if (path == "-") refuse("standard output is for the report");
  constexpr int how = O_WRONLY | O_CREAT | O_CLOEXEC;
  fd_ = open(path.c_str(), how | O_EXCL, 0666);
  made_ = fd_ >= 0;
  if (!made_) fd_ = open(path.c_str(), how, 0666);
  if (fd_ < 0) refuse(std::strerror(errno));
  struct stat s {};
  regular_ = fstat(fd_, &s) == 0 && S_ISREG(s.st_mode);
  if (made_) tool::interrupt::remove_when_cut_off(path);
}

results_file::~results_file() {
  if (!finished_ && begun_ && regular_ && fd_ >= 0)
    static_cast<void>(!ftruncate(fd_, 0));  // better no results than half of them
  if (fd_ >= 0) close(fd_);
  if (finished_ || !made_) return;
  unlink(path_.c_str());
  tool::interrupt::keep_when_cut_off(path_);
}

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
  const int fd = std::exchange(fd_, -1);
  if (close(fd) != 0) fail();
  finished_ = true;
  if (made_) tool::interrupt::keep_when_cut_off(path_);
}

void results_file::begin_field() {
  if (!std::exchange(first_in_line_, false)) buffer_[used_++] = ' ';
  if (used_ + longest_field > buffer_.size()) flush();
}

void results_file::flush() {
  if (!std::exchange(begun_, true) && regular_ && ftruncate(fd_, 0) != 0) fail();
  for (std::size_t done = 0; done < used_;) {
    tool::interrupt::check();
    const ssize_t put = write(fd_, buffer_.data() + done, used_ - done);
    if (put < 0 && errno != EINTR) fail();
    if (put > 0) done += static_cast<std::size_t>(put);
  }
  used_ = 0;
}

void results_file::fail() const {
  throw std::runtime_error(
      fmt::format("{}: writing the results failed ({}); free space or give "
                  "another file",
                  asked_, std::strerror(errno)));
}

}  // namespace grosr::graphs
