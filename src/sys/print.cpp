// Text that kernels print: formatted when its record is taken, so that it stays in order; a thread
// of its own writes it.
#include "grosr/sys/print.hpp"

#include <fmt/args.h>
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <exception>
#include <iterator>
#include <stdexcept>
#include <string>

#include "sys/service.hpp"

namespace grosr::sys {
namespace {

std::uint64_t word_at(std::uint64_t at, std::uint64_t i) {
  std::uint64_t word = 0;
  std::memcpy(&word, reinterpret_cast<const char*>(at + 8 * i), sizeof word);
  return word;
}

std::uint64_t count_of(const call_record& c) { return word_at(c.argument[1], 0) & 0xffffffff; }

/// Text of `word >> 32` bytes at an argument.
std::string_view text_of(const call_record& c, std::uint64_t argument, std::uint64_t word) {
  const std::uint64_t at = c.argument[argument % max_arguments];
  return at == 0 ? "(null)" : std::string_view(reinterpret_cast<const char*>(at), word >> 32);
}

/// Takes characters, not too many: a field may be as wide as a number says.
class bounded {
 public:
  using iterator_category = std::output_iterator_tag;
  using value_type = void;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = void;

  explicit bounded(std::string& to) : to_(&to) {}
  bounded& operator*() { return *this; }
  bounded& operator++() { return *this; }
  bounded operator++(int) { return *this; }
  bounded& operator=(char c) {
    if (to_->size() < most)
      to_->push_back(c);
    else if (std::uncaught_exceptions() == 0)  // fmt gives up what it holds while it unwinds
      throw std::length_error("the text is longer than 1 MiB");
    return *this;
  }

 private:
  static constexpr std::size_t most = 1 << 20;
  std::string* to_;
};

std::string formatted(const call_record& c) {
  fmt::dynamic_format_arg_store<fmt::format_context> values;
  for (std::uint64_t i = 0; i < count_of(c); ++i) {
    const std::uint64_t word = word_at(c.argument[1], 2 + 2 * i);
    switch (static_cast<printed>(word_at(c.argument[1], 1 + 2 * i))) {
      case printed::integer:
        values.push_back(static_cast<std::int64_t>(word));
        break;
      case printed::natural:
        values.push_back(word);
        break;
      case printed::real:
        values.push_back(std::bit_cast<double>(word));
        break;
      case printed::character:
        values.push_back(static_cast<char>(word));
        break;
      case printed::boolean:
        values.push_back(word != 0);
        break;
      case printed::pointer:
        values.push_back(reinterpret_cast<const void*>(word));
        break;
      case printed::text:
        values.push_back(std::string(text_of(c, word & 0xffffffff, word)));
        break;
    }
  }
  const std::string_view format = text_of(c, 0, word_at(c.argument[1], 0));
  try {
    std::string text;
    fmt::vformat_to(bounded(text), format, values);
    return text;
  } catch (const std::exception& e) {  // fmt's, or of too wide a field
    return fmt::format("{} [print: {}]\n", format, e.what());
  }
}

}  // namespace

/// Under the lock of the shard.
void service::print(const call_record& c) {
  if (options_.print_to >= 0 && hold(c.argument[0], 1) && hold(c.argument[1], 8) &&
      hold(c.argument[1], 8 + 16 * count_of(c)))
    printed_.put(formatted(c));
}

}  // namespace grosr::sys
