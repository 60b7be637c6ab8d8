// Two buffers that take turns.
#include "graph/io/chunks.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <system_error>

namespace grosr::graphs {

line_chunks::line_chunks(source& from, std::size_t bytes, bool ahead, host_threads& threads)
    : from_(from), bytes_(bytes), ahead_(ahead), threads_(threads) {
  start(buffers_[0]);
}

void line_chunks::start(buffer& b) {
  if (ahead_) {
    try {
      filled_ = std::async(std::launch::async, [this, &b] { fill(b); });
      return;
    } catch (const std::system_error&) {  // no more threads
    }
  }
  filled_ = std::async(std::launch::deferred, [this, &b] { fill(b); });
}

/// Behind the beginning of a line that is there already.
void line_chunks::fill(buffer& b) {
  b.lines = 0;
  while (b.lines == 0 && !end_ && !b.too_long) {
    const std::size_t before = b.size;
    b.data.resize(before + bytes_ + 1);
    const std::size_t got = from_.read(b.data.data() + before, bytes_);
    b.size += got;
    if (got < bytes_) {
      end_ = true;
      if (b.size > 0 && b.data[b.size - 1] != '\n') b.data[b.size++] = '\n';
    }
    const void* const last = memrchr(b.data.data() + before, '\n', b.size - before);
    if (last != nullptr)
      b.lines = static_cast<std::size_t>(static_cast<const char*>(last) - b.data.data()) + 1;
    else
      b.too_long = b.size > longest;
  }
}

std::string_view line_chunks::next() {
  if (!filled_.valid()) return {};
  while (filled_.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout)
    threads_.look();
  filled_.get();
  buffer& b = buffers_[coming_];
  if (b.too_long) throw long_line{};
  if (b.lines == 0) return {};
  if (!end_) {
    coming_ ^= 1;
    buffer& other = buffers_[coming_];
    other.size = b.size - b.lines;
    other.data.resize(std::max(other.data.size(), other.size));
    std::copy_n(b.data.begin() + static_cast<std::ptrdiff_t>(b.lines), other.size,
                other.data.begin());
    start(other);
  }
  return {b.data.data(), b.lines};
}

std::string_view piece_of_lines(std::string_view lines, std::size_t i, std::size_t pieces) {
  const auto cut = [&](std::size_t k) {
    if (k == 0) return std::size_t{0};
    if (k == pieces) return lines.size();
    return lines.find('\n', lines.size() / pieces * k - 1) + 1;
  };
  return lines.substr(cut(i), cut(i + 1) - cut(i));
}

}  // namespace grosr::graphs
