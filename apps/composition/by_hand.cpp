// Without a library: what an expert writes for one work, and cannot use for the next.
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/stream_graph.hpp"
#include "grosr/simt/timeline.hpp"
#include "operations.hpp"
#include "ways.hpp"

namespace grosr::composition {
namespace {

using simt::space;

/// Inputs side by side, then results; outputs are the last ones.
struct layout {
  std::vector<std::size_t> at;  // of each operand, in elements
  std::size_t inputs, outputs_at, all;

  explicit layout(const work& w) : at(w.operands.size()) {
    std::vector<bool> is_output(at.size());
    for (const unsigned o : w.outputs) is_output[o] = true;
    std::size_t next = 0;
    const auto put = [&](unsigned o) {
      at[o] = next;
      next += w.operands[o].elements;
    };
    for (unsigned i = 0; i < w.inputs; ++i) put(i);
    inputs = next;
    for (unsigned o = w.inputs; o < at.size(); ++o)
      if (!is_output[o]) put(o);
    outputs_at = next;
    for (const unsigned o : w.outputs) put(o);
    all = next;
  }
  std::size_t outputs() const { return all - outputs_at; }
};

/// Inputs side by side, and outputs, in host memory.
struct host_side {
  const work& w;
  const layout& l;
  simt::buffer<float> inputs, outputs;

  host_side(const device& d, const work& of, const layout& as)
      : w(of), l(as), inputs(d, space::pinned, l.inputs), outputs(d, space::pinned, l.outputs()) {
    for (unsigned i = 0; i < w.inputs; ++i)
      for (std::size_t e = 0; e < w.operands[i].elements; ++e) input(i)[e] = input_element(i, e, 0);
  }
  float* input(unsigned i) const { return inputs.data() + l.at[i]; }
  float* output(unsigned o) const { return outputs.data() + l.at[o] - l.outputs_at; }
  void begin(unsigned round) {
    for (unsigned i = 0; i < w.inputs; ++i) *input(i) = input_element(i, 0, round);
  }
  arrays results() const {
    arrays got;
    for (const unsigned o : w.outputs)
      got.emplace_back(output(o), output(o) + w.operands[o].elements);
    return got;
  }
};

/// All operands, in device memory.
struct device_side {
  const layout& l;
  simt::buffer<float> all;

  device_side(const device& d, const layout& as) : l(as), all(d, space::device, l.all) {}
  float* at(unsigned o) const { return all.data() + l.at[o]; }
  void launch(simt::stream& s, const step& what) const {
    launch_step(s, what, places::of(what, [&](unsigned o) { return at(o); }));
  }
};

class by_hand final : public way {
 public:
  by_hand(const device& d, const work& w)
      : w_(w), layout_(w_), stream_(d), here_(d, w_, layout_), there_(d, layout_) {}

  arrays run(unsigned first, unsigned rounds) override {
    for (unsigned r = first; r < first + rounds; ++r) {
      here_.begin(r);
      for (unsigned i = 0; i < w_.inputs; ++i)
        simt::copy_bytes(stream_, there_.at(i), here_.input(i), w_.operands[i].bytes());
      for (const step& s : w_.steps) there_.launch(stream_, s);
      for (const unsigned o : w_.outputs)
        simt::copy_bytes(stream_, here_.output(o), there_.at(o), w_.operands[o].bytes());
      stream_.wait();
    }
    copied_ += w_.outside_bytes() * rounds;
    return here_.results();
  }
  std::uint64_t copied_bytes() const override { return copied_; }

 private:
  const work w_;
  const layout layout_;
  simt::stream stream_;
  host_side here_;
  device_side there_;
  std::uint64_t copied_ = 0;
};

class best_by_hand final : public way {
 public:
  best_by_hand(const device& d, const work& w) : w_(w), layout_(w_), in_(d), out_(d) {
    for (int i = 0; i < 3; ++i) sets_.push_back(std::make_unique<set>(d, w_, layout_));
  }

  arrays run(unsigned first, unsigned rounds) override {
    for (unsigned r = first; r < first + rounds; ++r) {
      set& s = *sets_[r % 3];
      s.came.wait();  // its inputs have been read, and its outputs are there
      s.here.begin(r);
      in_.wait_for(s.computed);
      simt::copy_bytes(in_.queue(), s.there.all.data(), s.here.inputs.data(),
                       s.here.inputs.bytes());
      s.computes.wait_for(in_.mark());
      s.computes.wait_for(s.came);
      if (s.graph)
        s.graph->launch(s.computes.queue());
      else
        for (const step& what : w_.steps) s.there.launch(s.computes.queue(), what);
      s.computed = s.computes.mark();
      out_.wait_for(s.computed);
      simt::copy_bytes(out_.queue(), s.here.outputs.data(), s.there.all.data() + layout_.outputs_at,
                       s.here.outputs.bytes());
      s.came = out_.mark();
    }
    for (const auto& s : sets_) s->came.wait();
    copied_ += w_.outside_bytes() * rounds;
    return sets_[(first + rounds - 1) % 3]->here.results();
  }
  std::uint64_t copied_bytes() const override { return copied_; }

 private:
  struct set {
    host_side here;
    device_side there;
    simt::timeline computes;
    std::unique_ptr<simt::stream_graph> graph;
    simt::stream_point computed, came;

    set(const device& d, const work& w, const layout& l)
        : here(d, w, l), there(d, l), computes(d), graph(simt::stream_graph::make(d)) {
      bool whole = graph != nullptr;
      for (std::size_t i = 0; whole && i < w.steps.size(); ++i) {
        std::vector<unsigned> after;
        for (const unsigned o : w.steps[i].reads)
          if (o >= w.inputs) after.push_back(w.operands[o].made_by);
        whole = graph->add(after, [&](simt::stream& s) { there.launch(s, w.steps[i]); });
      }
      if (!whole || !graph->finish()) graph.reset();
    }
  };

  const work w_;
  const layout layout_;
  simt::timeline in_, out_;
  std::vector<std::unique_ptr<set>> sets_;
  std::uint64_t copied_ = 0;
};

}  // namespace

std::unique_ptr<way> make_by_hand(const device& d, const work& w) {
  return std::make_unique<by_hand>(d, w);
}
std::unique_ptr<way> make_best_by_hand(const device& d, const work& w) {
  return std::make_unique<best_by_hand>(d, w);
}

}  // namespace grosr::composition
