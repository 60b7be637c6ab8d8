#include <fmt/format.h>

#include <deque>

#include "grosr/flow/graph.hpp"
#include "operations.hpp"
#include "ways.hpp"

namespace grosr::composition {
namespace {

class by_flow final : public way {
 public:
  by_flow(const device& d, const work& w)
      : w_(w), executor_({.devices = {d}, .threads = 1}), graph_(executor_, {.name = w.name}) {
    const auto matrix = flow::block_template::of<float>(w.side, w.side);
    const auto compute = [this](simt::stream& s, flow::in<float> left, flow::in<float> right,
                                flow::out<float> result) {
      launch_operation(s, w_.what, w_.side, left.data, right.data, result.data);
    };
    std::vector<flow::node> nodes;
    std::vector<std::optional<flow::source<float>>> from(w.inputs);
    for (std::size_t i = 0; i < w.steps.size(); ++i) {
      nodes.push_back(graph_.on_stream(fmt::format("{} {}", name_of(w.what), i), compute,
                                       {{"left", matrix}, {"right", matrix}, {"result", matrix}},
                                       flow::stream_work::same_always));
      for (const auto& [operand, port] :
           {std::pair{w.steps[i].left, "left"}, std::pair{w.steps[i].right, "right"}}) {
        if (operand < w.inputs)
          from[operand] = graph_.source<float>(nodes[i][port], {.capacity = 2});
        else
          graph_.connect(nodes[operand - w.inputs]["result"], nodes[i][port]);
      }
    }
    for (const auto& f : from) from_.push_back(*f);
    for (const unsigned o : w.outputs)
      to_.push_back(graph_.sink<float>(nodes[o - w.inputs]["result"], {.capacity = 2}));
    graph_.compile();
    for (std::size_t set = 0; set < sets; ++set)
      for (unsigned i = 0; i < w.inputs; ++i) {
        inputs_.push_back(from_[i].make());
        const auto elements = inputs_.back().write<float>();
        for (std::size_t e = 0; e < elements.size(); ++e) elements[e] = input_element(i, e, 0);
      }
  }

  std::vector<std::vector<float>> run(unsigned first, unsigned rounds) override {
    std::vector<flow::datablock> last;
    for (unsigned pushed = first, pulled = first; pulled < first + rounds;) {
      // The next round goes in before the outputs of this one are waited for.
      if (pushed < first + rounds && pushed - pulled < sets) {
        for (unsigned i = 0; i < w_.inputs; ++i) {
          flow::datablock& b = inputs_[pushed % sets * w_.inputs + i];
          b.update<float>()[0] = input_element(i, 0, pushed);
          from_[i].push(b);
        }
        ++pushed;
        continue;
      }
      last.clear();
      for (const auto& to : to_) last.push_back(to.pull());
      for (const flow::datablock& b : last) b.read<float>();
      ++pulled;
    }
    std::vector<std::vector<float>> got;
    for (const flow::datablock& b : last) {
      const auto elements = b.read<float>();
      got.emplace_back(elements.begin(), elements.end());
    }
    return got;
  }
  std::uint64_t copied_bytes() const override { return executor_.memory().counts().bytes; }

 private:
  static constexpr unsigned sets = 3;

  const work w_;
  mutable flow::executor executor_;
  flow::graph graph_;
  std::vector<flow::source<float>> from_;
  std::vector<flow::sink<float>> to_;
  std::vector<flow::datablock> inputs_;  // of each set
};

}  // namespace

std::unique_ptr<way> make_flow(const device& d, const work& w) {
  return std::make_unique<by_flow>(d, w);
}

}  // namespace grosr::composition
