// Without a library: what an expert writes for one work, and cannot use for the next.
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/stream_graph.hpp"
#include "grosr/simt/timeline.hpp"
#include "operations.hpp"
#include "ways.hpp"

namespace grosr::composition {
namespace {

using simt::space;

/// Inputs side by side, and outputs, in host memory.
struct host_side {
  simt::buffer<float> inputs, outputs;

  host_side(const device& d, const work& w)
      : inputs(d, space::pinned, w.inputs * w.elements()),
        outputs(d, space::pinned, w.outputs.size() * w.elements()) {
    for (unsigned i = 0; i < w.inputs; ++i)
      for (std::size_t e = 0; e < w.elements(); ++e)
        inputs[i * w.elements() + e] = input_element(i, e, 0);
  }
  void begin(const work& w, unsigned round) {
    for (unsigned i = 0; i < w.inputs; ++i) inputs[i * w.elements()] = input_element(i, 0, round);
  }
  std::vector<std::vector<float>> results(const work& w) const {
    std::vector<std::vector<float>> got;
    for (std::size_t o = 0; o < w.outputs.size(); ++o) {
      const float* first = outputs.data() + o * w.elements();
      got.emplace_back(first, first + w.elements());
    }
    return got;
  }
};

/// Inputs side by side, then results; outputs are the last ones.
struct device_side {
  simt::buffer<float> all;
  device_side(const device& d, const work& w)
      : all(d, space::device, (w.inputs + w.steps.size()) * w.elements()) {}
  float* at(const work& w, unsigned operand) const { return all.data() + operand * w.elements(); }
};

void launch_step(simt::stream& s, const work& w, const device_side& on, unsigned i) {
  launch_operation(s, w.what, w.side, on.at(w, w.steps[i].left), on.at(w, w.steps[i].right),
                   on.at(w, w.inputs + i));
}

class by_hand final : public way {
 public:
  by_hand(const device& d, const work& w) : w_(w), stream_(d), here_(d, w), there_(d, w) {}

  std::vector<std::vector<float>> run(unsigned first, unsigned rounds) override {
    for (unsigned r = first; r < first + rounds; ++r) {
      here_.begin(w_, r);
      for (unsigned i = 0; i < w_.inputs; ++i)
        simt::copy_bytes(stream_, there_.at(w_, i), here_.inputs.data() + i * w_.elements(),
                         w_.bytes());
      for (unsigned i = 0; i < w_.steps.size(); ++i) launch_step(stream_, w_, there_, i);
      for (std::size_t o = 0; o < w_.outputs.size(); ++o)
        simt::copy_bytes(stream_, here_.outputs.data() + o * w_.elements(),
                         there_.at(w_, w_.outputs[o]), w_.bytes());
      stream_.wait();
    }
    copied_ += (w_.inputs + w_.outputs.size()) * w_.bytes() * rounds;
    return here_.results(w_);
  }
  std::uint64_t copied_bytes() const override { return copied_; }

 private:
  const work w_;
  simt::stream stream_;
  host_side here_;
  device_side there_;
  std::uint64_t copied_ = 0;
};

class best_by_hand final : public way {
 public:
  best_by_hand(const device& d, const work& w) : w_(w), in_(d), computes_(d), out_(d) {
    for (int i = 0; i < 3; ++i) sets_.push_back(std::make_unique<set>(d, w_));
  }

  std::vector<std::vector<float>> run(unsigned first, unsigned rounds) override {
    for (unsigned r = first; r < first + rounds; ++r) {
      set& s = *sets_[r % 3];
      s.came.wait();  // its inputs have been read, and its outputs are there
      s.here.begin(w_, r);
      in_.wait_for(s.computed);
      simt::copy_bytes(in_.queue(), s.there.all.data(), s.here.inputs.data(),
                       w_.inputs * w_.bytes());
      computes_.wait_for(in_.mark());
      computes_.wait_for(s.came);
      if (s.graph)
        s.graph->launch(computes_.queue());
      else
        for (unsigned i = 0; i < w_.steps.size(); ++i)
          launch_step(computes_.queue(), w_, s.there, i);
      s.computed = computes_.mark();
      out_.wait_for(s.computed);
      simt::copy_bytes(out_.queue(), s.here.outputs.data(), s.there.at(w_, w_.outputs.front()),
                       w_.outputs.size() * w_.bytes());
      s.came = out_.mark();
    }
    for (const auto& s : sets_) s->came.wait();
    copied_ += (w_.inputs + w_.outputs.size()) * w_.bytes() * rounds;
    return sets_[(first + rounds - 1) % 3]->here.results(w_);
  }
  std::uint64_t copied_bytes() const override { return copied_; }

 private:
  struct set {
    host_side here;
    device_side there;
    std::unique_ptr<simt::stream_graph> graph;
    simt::stream_point computed, came;

    set(const device& d, const work& w)
        : here(d, w), there(d, w), graph(simt::stream_graph::make(d)) {
      bool whole = graph != nullptr;
      for (unsigned i = 0; whole && i < w.steps.size(); ++i) {
        std::vector<unsigned> after;
        for (const unsigned o : {w.steps[i].left, w.steps[i].right})
          if (o >= w.inputs) after.push_back(o - w.inputs);
        whole = graph->add(after, [&, i](simt::stream& s) { launch_step(s, w, there, i); });
      }
      if (!whole || !graph->finish()) graph.reset();
    }
  };

  const work w_;
  simt::timeline in_, computes_, out_;
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
