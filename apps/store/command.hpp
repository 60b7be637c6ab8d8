// What a line of the protocol asks for. The protocol is the subset of memcached's text protocol
// that programs need which keep and ask for values: get, set, delete, quit.
#pragma once

#include <cstdint>

#include "grosr/simt/config.hpp"

namespace grosr::store {

inline constexpr std::uint32_t longest_key = 250;    ///< as memcached's
inline constexpr std::uint32_t longest_line = 2048;  ///< with its end

enum class asked : std::uint8_t { get, set, erase, quit, unknown, malformed };

struct word {
  const unsigned char* at = nullptr;
  std::uint32_t bytes = 0;

  GROSR_DEVICE bool is(const char* text) const {
    std::uint32_t i = 0;
    for (; text[i] != 0; ++i)
      if (i >= bytes || at[i] != static_cast<unsigned char>(text[i])) return false;
    return i == bytes;
  }
};

struct command {
  asked what = asked::unknown;
  word key;                 ///< of get: the first one
  std::uint32_t flags = 0;  ///< of set: kept with the value
  bool expires = false;     ///< of set
  std::uint32_t bytes = 0;  ///< of set: of the value, which follows
  bool no_reply = false;
};

/// Takes words off a line.
class words {
 public:
  GROSR_DEVICE words(const unsigned char* line, std::uint32_t bytes)
      : at_(line), end_(line + bytes) {}

  /// The next word; of no bytes where there is none.
  GROSR_DEVICE word next() {
    while (at_ != end_ && *at_ == ' ') ++at_;
    word w{at_, 0};
    while (at_ != end_ && *at_ != ' ') ++at_;
    w.bytes = static_cast<std::uint32_t>(at_ - w.at);
    return w;
  }

 private:
  const unsigned char *at_, *end_;
};

/// Reads a whole number of up to 10 digits. False where there is something else.
GROSR_DEVICE inline bool read_number(const word& w, std::uint64_t most, std::uint32_t& number) {
  if (w.bytes == 0 || w.bytes > 10) return false;
  std::uint64_t n = 0;
  for (std::uint32_t i = 0; i < w.bytes; ++i) {
    if (w.at[i] < '0' || w.at[i] > '9') return false;
    n = n * 10 + (w.at[i] - '0');
  }
  number = static_cast<std::uint32_t>(n);
  return n <= most;
}

GROSR_DEVICE inline bool is_key(const word& w) { return w.bytes != 0 && w.bytes <= longest_key; }

/// Reads a line without its end.
GROSR_DEVICE inline command read_command(const unsigned char* line, std::uint32_t bytes) {
  words rest(line, bytes);
  const word verb = rest.next();
  command c;
  if (verb.is("get")) {
    c.what = asked::get;
    c.key = rest.next();
    if (!is_key(c.key)) c.what = asked::malformed;
    for (word w = rest.next(); w.bytes != 0; w = rest.next())
      if (!is_key(w)) c.what = asked::malformed;
  } else if (verb.is("set")) {
    c.what = asked::set;
    c.key = rest.next();
    std::uint32_t seconds = 0;
    bool good = is_key(c.key) && read_number(rest.next(), 0xffffffffu, c.flags);
    word expiry = rest.next();
    const bool negative = expiry.bytes != 0 && *expiry.at == '-';
    if (negative) expiry = {expiry.at + 1, expiry.bytes - 1};
    good = good && read_number(expiry, 0x7fffffff, seconds);
    good = good && read_number(rest.next(), 0x7ffffffd, c.bytes);
    c.expires = seconds != 0;
    const word last = rest.next();
    c.no_reply = last.is("noreply");
    if (!good || (last.bytes != 0 && !c.no_reply) || rest.next().bytes != 0)
      c.what = asked::malformed;
  } else if (verb.is("delete")) {
    c.what = asked::erase;
    c.key = rest.next();
    const word last = rest.next();
    c.no_reply = last.is("noreply");
    if (!is_key(c.key) || (last.bytes != 0 && !c.no_reply) || rest.next().bytes != 0)
      c.what = asked::malformed;
  } else if (verb.is("quit")) {
    c.what = asked::quit;
  }
  return c;
}

}  // namespace grosr::store
