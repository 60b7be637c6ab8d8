// Histories of concurrent operations, and whether some order of them explains what they returned.
//
// A kernel records each operation with two readings of one counter, before its call and after its
// return. A history is linearizable when every operation can be given one moment between its two
// readings, so that the operations, taken in that order, are a legal run of the sequential model.
#pragma once

#include <bit>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "grosr/simt/atomic.hpp"
#include "support/devices.hpp"

namespace grosr::queue {

enum class act : std::uint32_t { push, push_full, pop, pop_empty, steal };

struct operation {
  act what;
  std::uint32_t value;
  std::uint32_t began, ended;  ///< readings of the counter
};

/// Where a kernel records; passed to it by value.
struct recorder_ref {
  std::uint32_t* words;  ///< the counter, and on another line how many operations there are
  operation* operations;

  GROSR_DEVICE std::uint32_t now() const {
    simt::fence(simt::seq_cst);
    const std::uint32_t t = simt::atomic_ref(words[0]).fetch_add(1, simt::seq_cst);
    simt::fence(simt::seq_cst);
    return t;
  }
  /// Records what began at `began` and ends here.
  GROSR_DEVICE void add(act what, std::uint32_t value, std::uint32_t began) const {
    const std::uint32_t ended = now();
    operations[simt::atomic_ref(words[32]).fetch_add(1, simt::relaxed)] = {what, value, began,
                                                                           ended};
  }
};

class recorder {
 public:
  recorder(device d, std::size_t most)
      : words_(d, simt::space::device, 64), operations_(d, simt::space::device, most) {}

  recorder_ref ref() const { return {words_.data(), operations_.data()}; }

  std::vector<operation> history() const {
    std::uint32_t words[64];
    words_.copy_to(words);
    std::vector<operation> all(words[32]);
    operations_.copy_to(all);
    return all;
  }

 private:
  simt::buffer<std::uint32_t> words_;
  simt::buffer<operation> operations_;
};

/// A bounded FIFO queue.
struct fifo_model {
  std::uint32_t capacity;
  std::deque<std::uint32_t> content = {};

  bool apply(const operation& o) {
    if (o.what == act::push) {
      if (content.size() == capacity) return false;
      content.push_back(o.value);
      return true;
    }
    if (o.what != act::pop || content.empty() || content.front() != o.value) return false;
    content.pop_front();
    return true;
  }
};

/// A bounded deque: its owner pushes and pops at the back, thieves take at the front.
struct deque_model {
  std::uint32_t capacity;
  std::deque<std::uint32_t> content = {};

  bool apply(const operation& o) {
    switch (o.what) {
      case act::push:
        if (content.size() == capacity) return false;
        content.push_back(o.value);
        return true;
      case act::push_full:
        return content.size() == capacity;
      case act::pop:
        if (content.empty() || content.back() != o.value) return false;
        content.pop_back();
        return true;
      case act::pop_empty:
        return content.empty();
      case act::steal:
        if (content.empty() || content.front() != o.value) return false;
        content.pop_front();
        return true;
    }
    return false;
  }
};

/// Whether `history`, of at most 64 operations, is linearizable. Searches all orders that respect
/// real time (Wing and Gong, "Testing and Verifying Concurrent Objects", 1993), but visits no pair
/// of operations done and state reached twice (Lowe, "Testing for Linearizability", 2017).
template <class Model>
class order_search {
 public:
  explicit order_search(const std::vector<operation>& history) : history_(history) {}

  bool find(const Model& start) { return history_.size() <= 64 && step(start, 0); }

 private:
  bool step(const Model& state, std::uint64_t done) {
    if (static_cast<std::size_t>(std::popcount(done)) == history_.size()) return true;
    std::string key(reinterpret_cast<const char*>(&done), sizeof done);
    for (std::uint32_t v : state.content) key.append(reinterpret_cast<const char*>(&v), sizeof v);
    if (!visited_.insert(std::move(key)).second) return false;
    std::uint32_t first_end = ~0u;
    for (std::size_t i = 0; i < history_.size(); ++i)
      if ((done >> i & 1) == 0) first_end = std::min(first_end, history_[i].ended);
    for (std::size_t i = 0; i < history_.size(); ++i) {
      if ((done >> i & 1) != 0 || history_[i].began > first_end) continue;
      Model next = state;
      if (next.apply(history_[i]) && step(next, done | std::uint64_t{1} << i)) return true;
    }
    return false;
  }

  const std::vector<operation>& history_;
  std::unordered_set<std::string> visited_;
};

template <class Model>
bool linearizable(const std::vector<operation>& history, const Model& start) {
  return order_search<Model>(history).find(start);
}

/// What keeps a history of pushes and pops of different values from being one of an unbounded FIFO;
/// empty if nothing does. Complete, and cheap for long histories: such a history is linearizable
/// exactly when every pop has its push, none has two pops, and no two values change their order
/// (Henzinger, Sezgin and Vafeiadis, "Aspect-Oriented Linearizability Proofs", 2013).
inline std::string fifo_violation(const std::vector<operation>& history) {
  struct life {
    const operation* push = nullptr;
    const operation* pop = nullptr;
  };
  std::map<std::uint32_t, life> lives;
  for (const operation& o : history) {
    life& l = lives[o.value];
    const operation*& slot = o.what == act::push ? l.push : l.pop;
    if (slot != nullptr)
      return "value " + std::to_string(o.value) + " was " +
             (o.what == act::push ? "pushed" : "popped") + " twice";
    slot = &o;
  }
  for (const auto& [value, l] : lives) {
    if (l.push == nullptr) return "value " + std::to_string(value) + " was popped, never pushed";
    if (l.pop != nullptr && l.pop->ended < l.push->began)
      return "value " + std::to_string(value) + " was popped before it was pushed";
  }
  for (const auto& [a, first] : lives)
    for (const auto& [b, second] : lives) {
      if (first.push->ended >= second.push->began || second.pop == nullptr) continue;
      if (first.pop == nullptr || second.pop->ended < first.pop->began)
        return "value " + std::to_string(a) + " was pushed before " + std::to_string(b) +
               ", but popped after it or not at all";
    }
  return "";
}

inline std::string text_of(const std::vector<operation>& history) {
  static constexpr const char* names[] = {"push", "push_full", "pop", "pop_empty", "steal"};
  std::string text;
  for (const operation& o : history)
    text += std::string(names[static_cast<int>(o.what)]) + " " + std::to_string(o.value) + " [" +
            std::to_string(o.began) + ", " + std::to_string(o.ended) + "]\n";
  return text;
}

}  // namespace grosr::queue
