// Functions of graphs that tests run, and what goes through them.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "grosr/flow/graph.hpp"
#include "support/errors.hpp"

namespace grosr::flow::tested {

using word = std::uint32_t;

struct times {
  word by;
  GROSR_DEVICE void operator()(point p, in<word> a, out<word> b) const {
    b[p.index] = a[p.index] * by;
  }
};
struct plus {
  word what;
  GROSR_DEVICE void operator()(point p, in<word> a, out<word> b) const {
    b[p.index] = a[p.index] + what;
  }
};
struct sum_of_two {
  GROSR_DEVICE void operator()(point p, in<word> a, in<word> b, out<word> c) const {
    c[p.index] = a[p.index] + b[p.index];
  }
};
struct add_in_place {
  word what;
  GROSR_DEVICE void operator()(point p, inout<word> a) const { a[p.index] += what; }
};

inline std::vector<word> numbers(word first, std::size_t count) {
  std::vector<word> all(count);
  std::iota(all.begin(), all.end(), first);
  return all;
}

inline executor_options on(const device& d, unsigned threads = 2) {
  executor_options o;
  o.devices = {d};
  o.threads = threads;
  return o;
}

template <class Call>
void expect_error(Call&& call, const std::string& part) {
  const error e = testing::error_of(call);
  EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
}

}  // namespace grosr::flow::tested
