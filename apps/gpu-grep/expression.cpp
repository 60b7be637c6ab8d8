#include "expression.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cstring>
#include <memory>

#include "cli/errors.hpp"
#include "cli/text.hpp"

namespace grosr::grep {
namespace {

constexpr unsigned most_repeats = 255, most_nesting = 200;

expression_ptr make(expression::kind what, std::vector<expression_ptr> parts = {}) {
  auto e = std::make_shared<expression>();
  e->what = what;
  e->parts = std::move(parts);
  return e;
}

symbol_set set_of(int (*is)(int)) {
  symbol_set s;
  for (unsigned c = 0; c < 128; ++c) s[c] = is(static_cast<int>(c)) != 0;
  return s;
}

symbol_set word_bytes() {
  symbol_set s = set_of(::isalnum);
  s['_'] = true;
  return s;
}

symbol_set bytes_but(const symbol_set& s) {
  symbol_set other;
  for (unsigned c = 0; c < 256; ++c) other[c] = !s[c] && c != '\n';
  return other;
}

symbol_set with_both_cases(symbol_set s) {
  for (unsigned c = 'a'; c <= 'z'; ++c) {
    const bool either = s[c] || s[c - 'a' + 'A'];
    s[c] = s[c - 'a' + 'A'] = either;
  }
  return s;
}

class parser {
 public:
  parser(const std::string& pattern, const reading& how) : text_(pattern), how_(how) {}

  expression_ptr fixed() {
    auto all = make(expression::kind::sequence);
    for (const char c : text_) all->parts.push_back(byte(static_cast<unsigned char>(c)));
    return all;
  }

  expression_ptr extended() {
    auto e = choice();
    if (at_ != text_.size()) refuse("has a ) without a (", "write \\) for the character");
    return e;
  }

 private:
  [[noreturn]] void refuse(const std::string& found, const std::string& advice) const {
    throw tool::usage_error(
        fmt::format("the pattern \"{}\" {}; {}", tool::one_line(text_), found, advice));
  }

  bool more() const { return at_ < text_.size(); }
  unsigned char peek() const { return static_cast<unsigned char>(text_[at_]); }
  bool take(char c) {
    if (!more() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  expression_ptr one(const symbol_set& s) const {
    auto e = make(expression::kind::one);
    e->set = s;
    return e;
  }
  expression_ptr byte(unsigned char c) const {
    symbol_set s;
    s[c] = true;
    return one(how_.ignore_case ? with_both_cases(s) : s);
  }
  expression_ptr edge(unsigned symbol) const {
    symbol_set s;
    s[symbol] = true;
    return one(s);
  }

  expression_ptr choice() {
    if (++depth_ > most_nesting) refuse("nests too deeply", "use fewer parentheses");
    auto all = make(expression::kind::choice, {sequence()});
    while (take('|')) all->parts.push_back(sequence());
    --depth_;
    return all->parts.size() == 1 ? all->parts.front() : all;
  }

  expression_ptr sequence() {
    auto all = make(expression::kind::sequence);
    while (more() && peek() != '|' && !(peek() == ')' && depth_ > 1))
      all->parts.push_back(repeated(atom()));
    return all;
  }

  expression_ptr atom() {
    const unsigned char c = peek();
    ++at_;
    switch (c) {
      case '.':
        return one(bytes_but({}));
      case '[':
        return one(bracket());
      case '^':
        return edge(line_begin);
      case '$':
        return edge(line_end);
      case '(': {
        auto inner = choice();
        if (!take(')')) refuse("has a ( without a )", "write \\( for the character");
        return inner;
      }
      case ')':
        refuse("has a ) without a (", "write \\) for the character");
      case '*':
      case '+':
      case '?':
      case '{':
        refuse(fmt::format("repeats nothing with {}", char(c)),
               fmt::format("write \\{} for the character", char(c)));
      case '\\':
        return escaped();
      default:
        return byte(c);
    }
  }

  expression_ptr escaped() {
    if (!more()) refuse("ends in a backslash", "write \\\\ for the character");
    const unsigned char c = peek();
    ++at_;
    symbol_set space = set_of(::isspace);
    switch (c) {
      case 'w':
        return one(word_bytes());
      case 'W':
        return one(bytes_but(word_bytes()));
      case 's':
        space['\n'] = false;
        return one(space);
      case 'S':
        return one(bytes_but(space));
      default:
        break;
    }
    if (std::isalnum(c) || c == '<' || c == '>' || c == '`' || c == '\'')
      refuse(fmt::format("has \\{}, which is not there", char(c)),
             "use -w for whole words, and no references back");
    return byte(c);
  }

  expression_ptr repeated(expression_ptr e) {
    for (;;) {
      unsigned least = 0, most = 0;
      if (take('*')) {
      } else if (take('+')) {
        least = 1;
      } else if (take('?')) {
        most = 1;
      } else if (take('{')) {
        bounds(least, most);
      } else {
        return e;
      }
      auto r = make(expression::kind::repeat, {e});
      r->least = least;
      r->most = most;
      if (most == 0 && zero_) r->what = expression::kind::empty;
      zero_ = false;
      e = r;
    }
  }

  void bounds(unsigned& least, unsigned& most) {
    const auto number = [&](unsigned& n) {
      const std::size_t from = at_;
      for (n = 0; more() && std::isdigit(peek()) && n <= most_repeats; ++at_)
        n = n * 10 + (peek() - unsigned{'0'});
      return at_ != from;
    };
    const bool lower = number(least);
    bool upper = lower, endless = false;
    most = least;
    if (take(',')) {
      upper = number(most);
      endless = !upper;
    }
    if (!take('}') || !(lower || upper) || (upper && most < least))
      refuse("has { without a right {m,n} or }", "write \\{ for the character");
    if (least > most_repeats || most > most_repeats)
      refuse(fmt::format("repeats more than {} times", most_repeats), "repeat it less often");
    if (endless) most = 0;
    zero_ = !endless && most == 0;
  }

  symbol_set bracket() {
    const bool negated = take('^');
    symbol_set s;
    for (bool first = true;; first = false) {
      if (!more()) refuse("has a [ without a ]", "write \\[ for the character");
      if (!first && take(']')) break;
      if (text_.compare(at_, 2, "[:") == 0) {
        s |= named_class();
        continue;
      }
      if (text_.compare(at_, 2, "[.") == 0 || text_.compare(at_, 2, "[=") == 0)
        refuse("has a collating symbol, which is not there", "name the characters themselves");
      const unsigned from = peek();
      ++at_;
      unsigned to = from;
      if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
        to = static_cast<unsigned char>(text_[at_ + 1]);
        at_ += 2;
      }
      if (to < from) refuse("has a range that ends before it begins", "turn it around");
      for (unsigned c = from; c <= to; ++c) s[c] = true;
    }
    if (how_.ignore_case) s = with_both_cases(s);
    s['\n'] = false;
    return negated ? bytes_but(s) : s;
  }

  symbol_set named_class() {
    static const struct {
      const char* name;
      int (*is)(int);
    } classes[] = {{"alpha", ::isalpha}, {"digit", ::isdigit}, {"alnum", ::isalnum},
                   {"upper", ::isupper}, {"lower", ::islower}, {"space", ::isspace},
                   {"blank", ::isblank}, {"punct", ::ispunct}, {"print", ::isprint},
                   {"graph", ::isgraph}, {"cntrl", ::iscntrl}, {"xdigit", ::isxdigit}};
    const std::size_t end = text_.find(":]", at_ + 2);
    if (end != text_.npos)
      for (const auto& c : classes)
        if (text_.compare(at_ + 2, end - at_ - 2, c.name) == 0) {
          at_ = end + 2;
          return set_of(c.is);
        }
    refuse("has a [: that begins no class", "there are alpha, digit, alnum, space and so on");
  }

  const std::string& text_;
  const reading& how_;
  std::size_t at_ = 0;
  unsigned depth_ = 0;
  bool zero_ = false;  // {0}
};

}  // namespace

expression_ptr read_patterns(const std::vector<std::string>& patterns, const reading& how) {
  auto any = make(expression::kind::choice);
  for (const std::string& given : patterns)
    for (std::size_t from = 0; from <= given.size();) {
      const std::size_t end = std::min(given.find('\n', from), given.size());
      const std::string line = given.substr(from, end - from);
      parser p(line, how);
      any->parts.push_back(how.fixed ? p.fixed() : p.extended());
      from = end + 1;
    }
  if (!how.words) return any;
  symbol_set before = bytes_but(word_bytes()), after = before;
  before[line_begin] = after[line_end] = true;
  const auto one = [](const symbol_set& s) {
    auto e = make(expression::kind::one);
    e->set = s;
    return e;
  };
  return make(expression::kind::sequence, {one(before), any, one(after)});
}

}  // namespace grosr::grep
