// Positions and what follows them (Glushkov, Russian Mathematical Surveys 16(5), 1961), then the
// subsets of positions that lines lead to. A line that matched once stays matched to its end.
#include "line_automaton.hpp"

#include <fmt/format.h>

#include <bit>
#include <map>

#include "cli/errors.hpp"

namespace grosr::grep {
namespace {

constexpr std::size_t most_positions = 4096, most_states = 1u << 14;

using places = std::vector<std::uint64_t>;  // a bit a position

void join(places& to, const places& from) {
  if (to.size() < from.size()) to.resize(from.size(), 0);
  for (std::size_t i = 0; i < from.size(); ++i) to[i] |= from[i];
}

void add(places& to, std::size_t position) {
  if (to.size() <= position / 64) to.resize(position / 64 + 1, 0);
  to[position / 64] |= std::uint64_t{1} << position % 64;
}

bool meet(const places& a, const places& b) {
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
    if ((a[i] & b[i]) != 0) return true;
  return false;
}

template <class F>
void each(const places& s, F&& f) {
  for (std::size_t i = 0; i < s.size(); ++i)
    for (std::uint64_t bits = s[i]; bits != 0; bits &= bits - 1)
      f(i * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
}

void shorten(places& s) {
  while (!s.empty() && s.back() == 0) s.pop_back();
}

struct fragment {
  bool nullable = false;
  places first, last;
};

struct positions {
  std::vector<symbol_set> set;
  std::vector<places> follow;
  fragment all;

  explicit positions(const expression& e) : all(build(e)) {}

 private:
  fragment build(const expression& e) {
    fragment f;
    switch (e.what) {
      case expression::kind::empty:
        f.nullable = true;
        return f;
      case expression::kind::one:
        if (set.size() == most_positions)
          throw tool::usage_error(fmt::format(
              "the patterns have more than {} places for a character; search for fewer at a time",
              most_positions));
        add(f.first, set.size());
        f.last = f.first;
        set.push_back(e.set);
        follow.emplace_back();
        return f;
      case expression::kind::sequence:
        f.nullable = true;
        for (const auto& part : e.parts) f = after(f, build(*part));
        return f;
      case expression::kind::choice:
        for (const auto& part : e.parts) {
          const fragment g = build(*part);
          f.nullable |= g.nullable;
          join(f.first, g.first);
          join(f.last, g.last);
        }
        return f;
      case expression::kind::repeat:
        return repeat(e);
    }
    return f;
  }

  fragment after(const fragment& a, const fragment& b) {
    each(a.last, [&](std::size_t p) { join(follow[p], b.first); });
    fragment f{a.nullable && b.nullable, a.first, b.last};
    if (a.nullable) join(f.first, b.first);
    if (b.nullable) join(f.last, a.last);
    return f;
  }

  fragment repeat(const expression& e) {
    fragment f;
    f.nullable = true;
    for (unsigned i = 0; i < e.least; ++i) f = after(f, build(*e.parts.front()));
    for (unsigned i = e.least; i < e.most; ++i) {
      fragment g = build(*e.parts.front());
      g.nullable = true;
      f = after(f, g);
    }
    if (e.most == 0) {
      fragment g = build(*e.parts.front());
      each(g.last, [&](std::size_t p) { join(follow[p], g.first); });
      g.nullable = true;
      f = after(f, g);
    }
    return f;
  }
};

class subsets {
 public:
  explicit subsets(const positions& p) : p_(p) {}

  // What can follow the places in `s`, or begin anywhere.
  places reachable(const places& s) const {
    places r = p_.all.first;
    each(s, [&](std::size_t q) { join(r, p_.follow[q]); });
    return r;
  }

  places step(const places& s, unsigned symbol) const {
    places to;
    each(reachable(s), [&](std::size_t q) {
      if (p_.set[q][symbol]) add(to, q);
    });
    return to;
  }

  // The same for an end of the line, at which many places can be passed.
  places pass(const places& s, unsigned symbol) const {
    places to = step(s, symbol);
    for (;;) {
      places more = to;
      each(to, [&](std::size_t q) {
        each(p_.follow[q], [&](std::size_t r) {
          if (p_.set[r][symbol]) add(more, r);
        });
      });
      if (more == to) return to;
      to = more;
    }
  }

  bool matches(const places& s) const { return p_.all.nullable || meet(s, p_.all.last); }

 private:
  const positions& p_;
};

}  // namespace

line_automaton::line_automaton(const expression& e) : column(256, 0) {
  const positions p(e);
  const subsets sets(p);

  // Bytes that no place tells apart share a column.
  std::map<places, unsigned> kinds;
  std::vector<unsigned> example;
  for (unsigned c = 0; c < 256; ++c) {
    places who;
    for (std::size_t q = 0; q < p.set.size(); ++q)
      if (p.set[q][c]) add(who, q);
    const auto [kind, fresh] = kinds.try_emplace(who, static_cast<unsigned>(kinds.size()));
    if (fresh) example.push_back(c);
    column[c] = static_cast<std::uint8_t>(kind->second);
  }
  const auto columns = static_cast<std::uint32_t>(example.size());

  // State 0 is that of lines that have matched.
  std::map<places, std::uint32_t> number;
  std::vector<places> states{{}};
  std::vector<std::uint32_t> to(columns, 0);
  std::vector<bool> ends{true};
  const auto number_of = [&](places s) -> std::uint32_t {
    if (sets.matches(s)) return 0;
    shorten(s);
    const auto [known, fresh] = number.try_emplace(s, static_cast<std::uint32_t>(states.size()));
    if (fresh) {
      if (states.size() == most_states)
        throw tool::usage_error(
            fmt::format("the patterns need more than {} states; search for fewer at a time, or "
                        "repeat less",
                        most_states));
      states.push_back(s);
      ends.push_back(sets.matches(sets.pass(s, line_end)));
    }
    return known->second;
  };
  const std::uint32_t first = number_of(sets.pass({}, line_begin));
  for (std::uint32_t s = 1; s < states.size(); ++s)
    for (std::uint32_t k = 0; k < columns; ++k)
      to.push_back(number_of(sets.step(states[s], example[k])));

  std::vector<std::uint32_t> row(states.size());
  std::uint32_t rows = 0;
  for (const bool end : {false, true}) {
    if (end) accepting = rows * columns;
    for (std::size_t s = 0; s < states.size(); ++s)
      if (ends[s] == end) row[s] = rows++ * columns;
  }
  start = row[first];
  next.resize(to.size());
  for (std::size_t s = 0; s < states.size(); ++s)
    for (std::uint32_t k = 0; k < columns; ++k) next[row[s] + k] = row[to[s * columns + k]];
}

}  // namespace grosr::grep
