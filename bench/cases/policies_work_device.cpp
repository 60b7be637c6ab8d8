#include "cases/policies_work.hpp"

namespace grosr::tool {
namespace {

using word = std::uint32_t;  // sums and products are exact, modulo 2^32

struct multiply {
  GROSR_DEVICE void operator()(flow::point p, flow::in<word> a, flow::in<word> b,
                               flow::out<word> c) const {
    word sum = 0;
    for (std::uint32_t k = 0; k < a.extent[0]; ++k) sum += a(k, p.y) * b(p.x, k);
    c[p.index] = sum;
  }
};
struct add {
  GROSR_DEVICE void operator()(flow::point p, flow::in<word> a, flow::in<word> b,
                               flow::out<word> c) const {
    c[p.index] = a[p.index] + b[p.index];
  }
};

bool is_product(unsigned row) { return row % 2 == 0; }

word scrambled(word x) {
  x = (x ^ (x >> 16)) * 0x45d9f3bu;
  return x ^ (x >> 16);
}

std::vector<word> applied(std::span<const word> matrix, const std::vector<word>& to) {
  std::vector<word> result(to.size());
  for (std::size_t y = 0; y < to.size(); ++y)
    for (std::size_t x = 0; x < to.size(); ++x) result[y] += matrix[y * to.size() + x] * to[x];
  return result;
}

}  // namespace

rectangle::rectangle(flow::executor& e, const std::string& name, int priority,
                     const rectangle_shape& shape, unsigned room)
    : shape_(shape),
      graph_(e, {.name = name, .priority = priority, .stretches = false}),
      matrix_(flow::block_template::of<word>(shape.rows, shape.rows)) {
  const std::vector<flow::port> ports{
      {"a", matrix_}, {.name = "b", .shape = matrix_, .sticky = true}, {"c", matrix_}};
  const flow::channel_options first{.capacity = room == 0 ? 32 : room};
  const flow::channel_options last{
      .capacity = std::max(room, 1u),
      .full = room == 0 ? flow::when_full::latest : flow::when_full::block,
      .prefetch = false};
  for (unsigned column = 0; column < shape.breadth; ++column) {
    std::vector<flow::node> nodes;
    for (unsigned row = 0; row < shape.depth; ++row) {
      const std::string at = std::to_string(column) + "." + std::to_string(row);
      nodes.push_back(is_product(row) ? graph_.kernel("multiply " + at, multiply{}, ports)
                                      : graph_.kernel("add " + at, add{}, ports));
      constants_.push_back(graph_.source<word>(nodes[row]["b"]));
      if (row != 0) graph_.connect(nodes[row - 1]["c"], nodes[row]["a"]);
    }
    in_.push_back(graph_.source<word>(nodes.front()["a"], first));
    out_.push_back(graph_.sink<word>(nodes.back()["c"], last));
  }
  graph_.compile();
  constant_ = input(1);
  for (const auto& c : constants_) c.push(constant_);
}

flow::datablock rectangle::input(std::uint32_t seed) const {
  flow::datablock b = in_.front().make();
  word next = seed * 0x9e3779b9u;
  for (word& x : b.write<word>()) x = scrambled(++next);
  return b;
}

std::string rectangle::wrong(const flow::datablock& input, const flow::datablock& result) const {
  std::vector<word> vector(shape_.rows);
  for (word i = 0; i < shape_.rows; ++i) vector[i] = scrambled(i + 1) | 1;
  const auto constant = constant_.read<word>();
  const auto from = input.read<word>(), to = result.read<word>();
  const std::vector<word> got = applied({to.begin(), to.end()}, vector);
  std::vector<word> sums(shape_.rows);
  for (unsigned row = shape_.depth; row-- != 0;) {
    std::vector<word> next = applied({constant.begin(), constant.end()}, vector);
    if (is_product(row))
      vector = std::move(next);
    else
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += next[i];
  }
  const std::vector<word> all = applied({from.begin(), from.end()}, vector);
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (got[i] != all[i] + sums[i])
      return "a matrix that came out maps a vector to " + std::to_string(got[i]) + " in row " +
             std::to_string(i) + ", not to " + std::to_string(all[i] + sums[i]);
  return "";
}

double rectangle::runs() const {
  const auto nodes = graph_.nodes();
  double all = 0;
  for (unsigned c = 0; c < shape_.breadth; ++c)
    all += static_cast<double>(nodes[(c + 1) * shape_.depth - 1].runs);
  return all / shape_.breadth;
}

rectangle::moves rectangle::moved() const {
  moves all;
  for (const flow::block_channel_stats& c : graph_.channels()) {
    if (c.from == "source" || c.to == "sink") continue;
    all.inputs += static_cast<double>(c.blocks);
    all.moved += static_cast<double>(c.copies.copies);
    all.bytes += static_cast<double>(c.copies.bytes);
  }
  return all;
}

}  // namespace grosr::tool
