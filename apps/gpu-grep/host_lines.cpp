#include "host_lines.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/interrupt.hpp"
#include "files/read_files.hpp"

namespace grosr::grep {
namespace {

constexpr std::size_t block = 256 * 1024;

}  // namespace

int open_file(const tool::file_list& list, std::uint32_t file) {
  const tool::source_file& f = list.files[file];
  const int folder = ::open(list.trees[f.tree].folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return -1;
  const int fd = ::openat(folder, f.below.c_str(), tool::open_flags);
  const int error = errno;
  ::close(folder);
  errno = error;
  return fd;
}

bool read_line(int file, std::uint64_t offset, const line_automaton_ref& lines, std::string& text) {
  std::uint32_t state = lines.start;
  std::vector<char> buffer(block);
  text.clear();
  for (;;) {
    tool::interrupt::check();
    const ssize_t n = ::pread(file, buffer.data(), block, static_cast<off_t>(offset));
    if (n <= 0) return lines.accepts(state);
    const char* begin = buffer.data();
    const auto* newline =
        static_cast<const char*>(std::memchr(begin, '\n', static_cast<std::size_t>(n)));
    const char* end = newline != nullptr ? newline : begin + n;
    for (const char* c = begin; c < end; ++c)
      state = lines.step(state, static_cast<unsigned char>(*c));
    text.append(begin, end);
    if (newline != nullptr) return lines.accepts(state);
    offset += static_cast<std::uint64_t>(n);
  }
}

std::string read_text(int file, std::uint64_t offset, std::uint32_t bytes) {
  std::string text(bytes, '\0');
  std::size_t got = 0;
  while (got < bytes) {
    const ssize_t n =
        ::pread(file, text.data() + got, bytes - got, static_cast<off_t>(offset + got));
    if (n <= 0) break;
    got += static_cast<std::size_t>(n);
  }
  text.resize(got);
  return text;
}

file_result search_on_host(const tool::file_list& list, std::uint32_t file,
                           const line_automaton_ref& lines, wanted what, bool numbers) {
  file_result r;
  const int fd = open_file(list, file);
  if (fd < 0) {
    r.error = errno;
    return r;
  }
  std::vector<char> buffer(block);
  std::string line;
  std::uint64_t number = 1;
  std::uint32_t state = lines.start;
  bool open_line = false;
  const auto ends = [&] {
    if (lines.accepts(state)) {
      ++r.matches;
      if (what == wanted::lines) r.lines.push_back({numbers ? number : 0, line});
    }
    ++number;
    line.clear();
    state = lines.start;
    open_line = false;
  };
  for (std::uint64_t offset = 0;;) {
    tool::interrupt::check();
    const ssize_t n = ::pread(fd, buffer.data(), block, static_cast<off_t>(offset));
    if (n < 0) r.error = errno;
    if (n <= 0) break;
    offset += static_cast<std::uint64_t>(n);
    for (ssize_t i = 0; i < n; ++i) {
      const char c = buffer[static_cast<std::size_t>(i)];
      if (c == '\n') {
        ends();
        continue;
      }
      r.binary |= c == '\0';
      state = lines.step(state, static_cast<unsigned char>(c));
      open_line = true;
      if (what == wanted::lines) line += c;
    }
    if (r.binary && r.matches != 0) r.lines.clear();  // nobody will see them
  }
  if (open_line) ends();
  ::close(fd);
  return r;
}

}  // namespace grosr::grep
