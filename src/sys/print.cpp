// Text that kernels print: formatted when its record is taken, so that it stays in order; a thread
// of its own writes it.
#include "grosr/sys/print.hpp"

#include <fmt/args.h>
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>

#include "sys/service.hpp"

namespace grosr::sys {
namespace {

/// The words of a record as print() has copied them: no kernel can change them any more.
struct words {
  std::uint64_t head = 0;  ///< arguments, and above them bytes of the format
  std::uint64_t argument[most_printed][2];

  std::uint64_t count() const { return head & 0xffffffff; }
  static std::uint64_t bytes(std::uint64_t word) { return word >> 32; }
};

/// The format, and arguments of the call that are texts, by number.
using texts = std::array<std::string, max_arguments>;

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

std::string formatted(const words& w, const texts& all) {
  fmt::dynamic_format_arg_store<fmt::format_context> values;
  for (std::uint64_t i = 0; i < w.count(); ++i) {
    const auto [kind, word] = w.argument[i];
    switch (static_cast<printed>(kind)) {
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
        values.push_back(std::cref(all[word & 0xffffffff]));
        break;
    }
  }
  const std::string& format = all[0];
  try {
    std::string text;
    fmt::vformat_to(bounded(text), format, values);
    return text;
  } catch (const std::exception& e) {  // fmt's, or of too wide a field
    return fmt::format("{} [print: {}]\n", format, e.what());
  }
}

}  // namespace

/// Copies what a print points to, once. False where it may not be had.
bool service::copy_printed(void* to, std::uint64_t at, std::size_t bytes) {
  if (copies_) return copy_in(to, at, bytes);
  std::memcpy(to, reinterpret_cast<const void*>(at), bytes);  // no server looks at pointers there
  return true;
}

/// Takes a text. Under the lock of the shard. 0, or -EFAULT: no print writes such a record.
long service::print(const call_record& c) {
  if (options_.print_to < 0) return 0;
  words w;
  const std::uint64_t at = c.argument[1];
  if (!copy_printed(&w.head, at, sizeof w.head) || w.count() > most_printed) return -EFAULT;
  if (!copy_printed(w.argument, at + sizeof w.head, 16 * w.count())) return -EFAULT;
  texts all;
  const auto bring = [&](std::uint64_t number, std::uint64_t bytes) {
    if (number == 1 || number >= max_arguments || bytes > most_of_printed_text) return false;
    const std::uint64_t from = c.argument[number];
    std::string& text = all[number] = from == 0 ? "(null)" : std::string(bytes, '\0');
    return from == 0 || bytes == 0 || copy_printed(text.data(), from, bytes);
  };
  if (!bring(0, words::bytes(w.head))) return -EFAULT;
  for (std::uint64_t i = 0; i < w.count(); ++i) {
    const auto [kind, word] = w.argument[i];
    if (static_cast<printed>(kind) != printed::text) continue;
    if ((word & 0xffffffff) == 0 || !bring(word & 0xffffffff, words::bytes(word))) return -EFAULT;
  }
  printed_.put(formatted(w, all));
  return 0;
}

}  // namespace grosr::sys
