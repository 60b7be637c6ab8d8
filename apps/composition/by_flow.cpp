#include <fmt/format.h>

#include <utility>

#include "grosr/flow/graph.hpp"
#include "operations.hpp"
#include "ways.hpp"

namespace grosr::composition {
namespace {

/// Puts a step into a stream: a node's function, which says by its parameters how many blocks it
/// reads and writes.
template <class Reads, class Results>
struct step_in_stream;
template <std::size_t... R, std::size_t... W>
struct step_in_stream<std::index_sequence<R...>, std::index_sequence<W...>> {
  template <class View, std::size_t>
  using one_of = View;

  step what;
  void operator()(simt::stream& s, one_of<flow::in<float>, R>... reads,
                  one_of<flow::out<float>, W>... results) const {
    launch_step(s, what, {{reads.data...}, {results.data...}});
  }
};

template <std::size_t Reads = 1, std::size_t Results = 1>
flow::node add_node(flow::graph& g, const std::string& name, const step& s,
                    const std::vector<flow::port>& ports) {
  if constexpr (Reads < step::most_reads)
    if (s.reads.size() > Reads) return add_node<Reads + 1, Results>(g, name, s, ports);
  if constexpr (Results < step::most_results)
    if (s.results.size() > Results) return add_node<Reads, Results + 1>(g, name, s, ports);
  using function =
      step_in_stream<std::make_index_sequence<Reads>, std::make_index_sequence<Results>>;
  return g.on_stream(name, function{s}, ports, flow::stream_work::same_always);
}

class by_flow final : public way {
 public:
  by_flow(const device& d, const work& w)
      : w_(w),
        executor_({.devices = {d}, .threads = 0}),
        graph_(executor_, {.name = w.name, .runs_in_flight = sets}) {
    std::vector<flow::port_ref> made(w_.operands.size());
    std::vector<std::vector<flow::port_ref>> readers(w_.inputs);
    for (std::size_t i = 0; i < w_.steps.size(); ++i) {
      const step& s = w_.steps[i];
      std::vector<flow::port> ports;
      for (std::size_t r = 0; r < s.reads.size(); ++r)
        ports.push_back({fmt::format("operand {}", r), shape_of(s.reads[r])});
      for (std::size_t r = 0; r < s.results.size(); ++r)
        ports.push_back({fmt::format("result {}", r), shape_of(s.results[r])});
      const flow::node node = add_node(graph_, fmt::format("{} {}", name_of(s.what), i), s, ports);
      for (std::size_t r = 0; r < s.reads.size(); ++r) {
        const unsigned o = s.reads[r];
        if (o < w_.inputs)
          readers[o].push_back(node[ports[r].name]);
        else
          graph_.connect(made[o], node[ports[r].name]);
      }
      for (std::size_t r = 0; r < s.results.size(); ++r)
        made[s.results[r]] = node[ports[s.reads.size() + r].name];
    }
    for (const auto& ports : readers) from_.push_back(graph_.source<float>(ports, {.capacity = 2}));
    for (const unsigned o : w_.outputs) to_.push_back(graph_.sink<float>(made[o], {.capacity = 2}));
    graph_.compile();
    for (std::size_t set = 0; set < sets; ++set)
      for (unsigned i = 0; i < w.inputs; ++i) {
        inputs_.push_back(from_[i].make());
        const auto elements = inputs_.back().write<float>();
        for (std::size_t e = 0; e < elements.size(); ++e) elements[e] = input_element(i, e, 0);
      }
  }

  arrays run(unsigned first, unsigned rounds) override {
    std::vector<flow::datablock> last;
    std::vector<flow::block_for> round;
    for (unsigned pushed = first, pulled = first; pulled < first + rounds;) {
      // The next round goes in before the outputs of this one are waited for.
      if (pushed < first + rounds && pushed - pulled < sets) {
        round.clear();
        for (unsigned i = 0; i < w_.inputs; ++i) {
          flow::datablock& b = inputs_[pushed % sets * w_.inputs + i];
          b.update<float>()[0] = input_element(i, 0, pushed);
          round.push_back({from_[i], b});
        }
        flow::push_all(round);
        while (executor_.step()) {  // puts it on the device at once
        }
        ++pushed;
        continue;
      }
      last.clear();
      for (const auto& to : to_) last.push_back(to.pull());
      for (const flow::datablock& b : last) b.read<float>();
      ++pulled;
    }
    arrays got;
    for (const flow::datablock& b : last) {
      const auto elements = b.read<float>();
      got.emplace_back(elements.begin(), elements.end());
    }
    return got;
  }
  std::uint64_t copied_bytes() const override { return executor_.memory().counts().bytes; }

 private:
  static constexpr unsigned sets = 3;

  flow::block_template shape_of(unsigned o) const {
    return flow::block_template::of<float>(w_.operands[o].elements);
  }

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
