#include "automaton.hpp"

#include <bit>
#include <deque>

namespace grosr::wordcount {
namespace {

constexpr std::uint32_t none = ~std::uint32_t{0};

struct node {
  std::vector<std::uint32_t> to;
  std::vector<std::uint8_t> words;
  std::uint32_t fallback = 0;
};

}  // namespace

automaton::automaton(const std::vector<std::string>& given) : column(256, 0) {
  unsigned columns = 1;  // 0: all bytes that are in no word
  for (const std::string& word : given)
    for (const char c : word)
      if (auto& known = column[static_cast<unsigned char>(c)]; known == 0)
        known = static_cast<std::uint8_t>(columns++);
  row_shift = static_cast<std::uint32_t>(std::bit_width(columns - 1));

  std::vector<node> trie(1, {std::vector<std::uint32_t>(columns, none), {}, 0});
  for (std::size_t w = 0; w < given.size(); ++w) {
    std::uint32_t at = 0;
    for (const char c : given[w]) {
      const unsigned k = column[static_cast<unsigned char>(c)];
      if (trie[at].to[k] == none) {
        trie[at].to[k] = static_cast<std::uint32_t>(trie.size());
        trie.push_back({std::vector<std::uint32_t>(columns, none), {}, 0});
      }
      at = trie[at].to[k];
    }
    trie[at].words.push_back(static_cast<std::uint8_t>(w));
  }

  // In breadth first order a node's fallback, which is less deep, is complete before it.
  std::vector<std::uint32_t> order;
  std::deque<std::uint32_t> queue{0};
  while (!queue.empty()) {
    const std::uint32_t at = queue.front();
    queue.pop_front();
    order.push_back(at);
    const std::uint32_t back = trie[at].fallback;
    if (at != 0)
      trie[at].words.insert(trie[at].words.end(), trie[back].words.begin(), trie[back].words.end());
    for (unsigned k = 0; k < columns; ++k) {
      std::uint32_t& to = trie[at].to[k];
      const std::uint32_t otherwise = at == 0 ? 0 : trie[back].to[k];
      if (to == none) {
        to = otherwise;
      } else {
        trie[to].fallback = otherwise;
        queue.push_back(to);
      }
    }
  }

  std::vector<std::uint32_t> row(trie.size());
  std::uint32_t rows = 0;
  for (const std::uint32_t at : order)
    if (trie[at].words.empty()) row[at] = rows++ << row_shift;
  accepting = rows << row_shift;
  for (const std::uint32_t at : order)
    if (!trie[at].words.empty()) {
      row[at] = rows++ << row_shift;
      first_word.push_back(static_cast<std::uint32_t>(words.size()));
      words.insert(words.end(), trie[at].words.begin(), trie[at].words.end());
    }
  first_word.push_back(static_cast<std::uint32_t>(words.size()));
  next.assign(std::size_t{rows} << row_shift, 0);
  for (const std::uint32_t at : order)
    for (unsigned k = 0; k < columns; ++k) next[row[at] + k] = row[trie[at].to[k]];
}

automaton_ref automaton::ref() const {
  return {next.data(), column.data(), first_word.data(), words.data(), accepting, row_shift};
}

}  // namespace grosr::wordcount
