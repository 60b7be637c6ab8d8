// One connection: takes the bytes that came, answers the requests that are complete.
#pragma once

#include "command.hpp"
#include "team.hpp"

namespace grosr::store {

/// What a server did.
struct totals {
  std::uint64_t connections = 0, gets = 0, hits = 0, sets = 0, deletes = 0;
  std::uint64_t refused = 0;  ///< requests that got an error

  GROSR_DEVICE std::uint64_t requests() const { return gets + sets + deletes + refused; }
};

enum class stored : std::uint8_t { yes, no_memory };

/// Memory of a connection. A request is handled when all of it is there, so a peer that goes in the
/// middle of one leaves nothing behind.
struct buffers {
  unsigned char *in = nullptr, *out = nullptr;
  std::uint32_t longest_value = 0;

  GROSR_DEVICE static constexpr std::uint32_t longest_request(std::uint32_t value) {
    return longest_line + value + 2;
  }
  GROSR_DEVICE static constexpr std::uint32_t longest_answer(std::uint32_t value) {
    return longest_key + value + 64;
  }
  /// Room for some requests at once, so that what is left is seldom moved.
  GROSR_DEVICE static constexpr std::uint32_t in_bytes(std::uint32_t value) {
    return (2 * longest_request(value) + 255) / 256 * 256;
  }
  GROSR_DEVICE static constexpr std::uint32_t out_bytes(std::uint32_t value) {
    return (2 * longest_answer(value) + 4096 + 255) / 256 * 256;
  }
};

/// `Team` (team.hpp) runs it; each of its lanes has a copy of this. `Table` has
///   look(team, key, found): calls found(flags, value, bytes) if the key is there; whether it is
///   set(team, key, flags, value, bytes): stored
///   erase(team, key): whether it was there
template <class Team, class Table>
class session {
 public:
  GROSR_DEVICE session(Team team, Table table, const buffers& b)
      : team_(team), table_(table), b_(b) {}

  /// Where the next bytes go, and how many there is room for (more than 0 after step()).
  GROSR_DEVICE unsigned char* room() const { return b_.in + end_; }
  GROSR_DEVICE std::uint32_t room_bytes() const {
    return buffers::in_bytes(b_.longest_value) - end_;
  }
  GROSR_DEVICE void received(std::uint32_t bytes) { end_ += bytes; }

  /// What to send: all that step() wrote.
  GROSR_DEVICE const unsigned char* answer() const { return b_.out; }
  GROSR_DEVICE std::uint32_t answer_bytes() const { return written_; }
  GROSR_DEVICE void sent() { written_ = 0; }

  enum class next : std::uint8_t { receive, send, close };

  /// Answers what is complete. `send`: send, and call again; `receive`, `close`: after sending what
  /// there is.
  GROSR_DEVICE next step() {
    for (;;) {
      if (closing_) return next::close;
      if (!skip()) return wait_for_more();
      if (buffers::out_bytes(b_.longest_value) - written_ <
          buffers::longest_answer(b_.longest_value))
        return next::send;
      const std::uint32_t here = end_ - begin_;
      const std::uint32_t line =
          team_.find(b_.in + begin_, here < longest_line ? here : longest_line, '\n');
      if (line == longest_line) {
        refuse("CLIENT_ERROR line too long\r\n");
        skip_line_ = true;
        continue;
      }
      if (line >= here) return wait_for_more();
      if (!handle(line)) return waits_ ? wait_for_more() : next::send;
    }
  }

  GROSR_DEVICE const totals& counts() const { return counts_; }

 private:
  /// Passes over what is to be ignored. False: more of it is to come.
  GROSR_DEVICE bool skip() {
    const std::uint32_t here = end_ - begin_;
    const std::uint32_t now = skip_ < here ? skip_ : here;
    begin_ += now;
    skip_ -= now;
    if (skip_ != 0) return false;
    if (!skip_line_) return true;
    const std::uint32_t left = end_ - begin_, line = team_.find(b_.in + begin_, left, '\n');
    begin_ += line < left ? line + 1 : left;
    skip_line_ = line == left;
    return !skip_line_;
  }

  /// Makes room for the rest of a request.
  GROSR_DEVICE next wait_for_more() {
    waits_ = false;
    if (begin_ == end_) {
      begin_ = end_ = 0;
    } else if (buffers::in_bytes(b_.longest_value) - begin_ <
               buffers::longest_request(b_.longest_value)) {
      team_.sync();
      team_.move_down(b_.in, b_.in + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    return next::receive;
  }

  /// Handles the request whose line has `line` bytes. False: it is not done, because more has to
  /// come (waits_), or because what is written must be sent first.
  GROSR_DEVICE bool handle(std::uint32_t line) {
    const unsigned char* text = b_.in + begin_;
    const std::uint32_t bytes = line != 0 && text[line - 1] == '\r' ? line - 1 : line;
    const command c = read_command(text, bytes);
    switch (c.what) {
      case asked::get:
        if (!get(c.key, text, bytes)) return false;
        break;
      case asked::set:
        return set(c, line + 1);
      case asked::erase: {
        ++counts_.deletes;
        const bool was_there = table_.erase(team_, c.key);
        if (!c.no_reply) put(was_there ? "DELETED\r\n" : "NOT_FOUND\r\n");
        break;
      }
      case asked::quit:
        closing_ = true;
        break;
      case asked::unknown:
        refuse("ERROR\r\n");
        break;
      case asked::malformed:
        refuse("CLIENT_ERROR bad command line format\r\n");
        break;
    }
    begin_ += line + 1;
    return true;
  }

  /// Values of all keys on the line, from the one on that was not answered before.
  GROSR_DEVICE bool get(const word& first, const unsigned char* text, std::uint32_t bytes) {
    if (answered_ == 0) answered_ = static_cast<std::uint32_t>(first.at - text);
    words rest(text + answered_, bytes - answered_);
    for (word key = rest.next(); key.bytes != 0; key = rest.next()) {
      if (buffers::out_bytes(b_.longest_value) - written_ <
          buffers::longest_answer(b_.longest_value))
        return false;
      ++counts_.gets;
      if (table_.look(team_, key,
                      [&](std::uint32_t flags, const unsigned char* value, std::uint32_t n) {
                        put("VALUE ");
                        put(key.at, key.bytes);
                        put(" ");
                        put_number(flags);
                        put(" ");
                        put_number(n);
                        put("\r\n");
                        put(value, n);
                        put("\r\n");
                      }))
        ++counts_.hits;
      answered_ = static_cast<std::uint32_t>(key.at + key.bytes - text);
    }
    answered_ = 0;
    put("END\r\n");
    return true;
  }

  GROSR_DEVICE bool set(const command& c, std::uint32_t line) {
    if (c.bytes > b_.longest_value || c.expires) {
      refuse(c.expires ? "SERVER_ERROR values do not expire here: give 0\r\n"
                       : "SERVER_ERROR object too large for cache\r\n");
      begin_ += line;
      skip_ = c.bytes + 2;
      return true;
    }
    const std::uint32_t here = end_ - begin_ - line;
    if (here < c.bytes + 2) {
      waits_ = true;
      return false;
    }
    const unsigned char* value = b_.in + begin_ + line;
    begin_ += line + c.bytes;
    if (value[c.bytes] != '\r' || value[c.bytes + 1] != '\n') {
      refuse("CLIENT_ERROR bad data chunk\r\n");
      skip_line_ = true;
      return true;
    }
    begin_ += 2;
    ++counts_.sets;
    if (table_.set(team_, c.key, c.flags, value, c.bytes) == stored::no_memory)
      refuse("SERVER_ERROR out of memory storing object\r\n");
    else if (!c.no_reply)
      put("STORED\r\n");
    return true;
  }

  GROSR_DEVICE void refuse(const char* text) {
    ++counts_.refused;
    put(text);
  }

  GROSR_DEVICE void put(const char* text) {
    std::uint32_t n = 0;
    while (text[n] != 0) ++n;
    put(reinterpret_cast<const unsigned char*>(text), n);
  }
  GROSR_DEVICE void put(const unsigned char* text, std::uint32_t bytes) {
    team_.copy(b_.out + written_, text, bytes);
    written_ += bytes;
  }
  GROSR_DEVICE void put_number(std::uint32_t n) {
    std::uint32_t digits = 1;
    for (std::uint32_t rest = n; rest >= 10; rest /= 10) ++digits;
    for (std::uint32_t i = digits; i-- > 0; n /= 10)
      if (team_.leads()) b_.out[written_ + i] = static_cast<unsigned char>('0' + n % 10);
    written_ += digits;
  }

  Team team_;
  Table table_;
  buffers b_;
  std::uint32_t begin_ = 0, end_ = 0;  ///< of what came and is not handled
  std::uint32_t written_ = 0;
  std::uint32_t answered_ = 0;  ///< of the line of a get whose answer is being sent
  std::uint32_t skip_ = 0;      ///< bytes of a value that was refused
  bool skip_line_ = false;      ///< and the rest of a line
  bool waits_ = false, closing_ = false;
  totals counts_;
};

}  // namespace grosr::store
