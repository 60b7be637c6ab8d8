// Without a library: launches into a stream, and a CUDA graph.
#include "device_arrays.hpp"
#include "grosr/simt/stream_graph.hpp"
#include "ways.hpp"

namespace grosr::prk {
namespace {

class by_hand : public way {
 public:
  by_hand(const device& d, const problem& p, unsigned unrolled)
      : p_(p), unrolled_(unrolled), stream_(d), arrays_(d, p.state) {
    for (const part& a : p_.parts) {
      uses_.emplace_back();
      for (const unsigned u : a.uses) uses_.back().push_back(arrays_.at(u));
    }
  }

  void run(unsigned rounds) override {
    for (unsigned r = 0; r < rounds; ++r) put_round();
    stream_.wait();
  }
  arrays results() override { return arrays_.read(); }

 protected:
  virtual void put_round() {
    for (unsigned i = 0; i < unrolled_; ++i)
      for (std::size_t a = 0; a < p_.parts.size(); ++a) launch(stream_, a);
  }
  void launch(simt::stream& s, std::size_t part) const { p_.parts[part].launch(s, uses_[part]); }

  const problem p_;
  const unsigned unrolled_;
  simt::stream stream_;
  device_arrays arrays_;
  std::vector<std::vector<double*>> uses_;  // where they lie, of each part
};

class graph_by_hand final : public by_hand {
 public:
  graph_by_hand(const device& d, const problem& p, unsigned unrolled)
      : by_hand(d, p, unrolled), graph_(simt::stream_graph::make(d)) {
    if (graph_ && !fill()) graph_.reset();
  }

 private:
  bool fill() {
    const auto parts = static_cast<unsigned>(p_.parts.size());
    for (unsigned first = 0; first < unrolled_ * parts; first += parts)
      for (unsigned i = 0; i < parts; ++i) {
        std::vector<unsigned> after;
        for (const unsigned a : p_.parts[i].after) after.push_back(first + a);
        if (i == 0 && first != 0) after.push_back(first - 1);
        if (!graph_->add(after, [&](simt::stream& s) { launch(s, i); })) return false;
      }
    return graph_->finish();
  }
  void put_round() override {
    if (graph_)
      graph_->launch(stream_);
    else
      by_hand::put_round();
  }

  std::unique_ptr<simt::stream_graph> graph_;
};

}  // namespace

std::unique_ptr<way> make_stream(const device& d, const problem& p, unsigned unrolled) {
  return std::make_unique<by_hand>(d, p, unrolled);
}
std::unique_ptr<way> make_graph(const device& d, const problem& p, unsigned unrolled) {
  return std::make_unique<graph_by_hand>(d, p, unrolled);
}

}  // namespace grosr::prk
