// Operations that can be put together freely, because each copies for itself.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <exception>
#include <mutex>
#include <thread>

#include "grosr/simt/buffer.hpp"
#include "grosr/simt/timeline.hpp"
#include "operations.hpp"
#include "ways.hpp"

namespace grosr::composition {
namespace {

/// Operations as a subroutine: host memory in, host memory out.
class subroutine {
 public:
  subroutine(const device& d, const work& w) : w_(w), stream_(d) {
    std::array<std::size_t, step::most_reads> reads{};
    std::array<std::size_t, step::most_results> results{};
    for (const step& s : w.steps) {
      for (std::size_t i = 0; i < s.reads.size(); ++i)
        reads[i] = std::max(reads[i], w.operands[s.reads[i]].elements);
      for (std::size_t i = 0; i < s.results.size(); ++i)
        results[i] = std::max(results[i], w.operands[s.results[i]].elements);
    }
    for (const std::size_t n : reads) reads_.emplace_back(d, simt::space::device, n);
    for (const std::size_t n : results) results_.emplace_back(d, simt::space::device, n);
    for (std::size_t i = 0; i < reads.size(); ++i) at_.reads[i] = reads_[i].data();
    for (std::size_t i = 0; i < results.size(); ++i) at_.results[i] = results_[i].data();
  }

  void operator()(const step& s, const places& host) {
    for (std::size_t i = 0; i < s.reads.size(); ++i)
      simt::copy_bytes(stream_, reads_[i].data(), host.reads[i], w_.operands[s.reads[i]].bytes());
    launch_step(stream_, s, at_);
    for (std::size_t i = 0; i < s.results.size(); ++i)
      simt::copy_bytes(stream_, host.results[i], results_[i].data(),
                       w_.operands[s.results[i]].bytes());
    stream_.wait();
  }

 private:
  const work& w_;
  simt::stream stream_;
  std::vector<simt::buffer<float>> reads_, results_;
  places at_;
};

/// Of all steps of a round.
std::size_t copied_by_steps(const work& w) {
  std::size_t bytes = 0;
  for (const step& s : w.steps) {
    for (const unsigned o : s.reads) bytes += w.operands[o].bytes();
    for (const unsigned o : s.results) bytes += w.operands[o].bytes();
  }
  return bytes;
}

/// Inputs and results, in pinned memory.
class host_operands {
 public:
  host_operands(const device& d, const work& w) : w_(w) {
    for (const operand& o : w.operands) all_.emplace_back(d, simt::space::pinned, o.elements);
    for (unsigned i = 0; i < w.inputs; ++i)
      for (std::size_t e = 0; e < all_[i].size(); ++e) all_[i][e] = input_element(i, e, 0);
  }
  void begin(unsigned round) {
    for (unsigned i = 0; i < w_.inputs; ++i) all_[i][0] = input_element(i, 0, round);
  }
  places of(const step& s) const {
    return places::of(s, [&](unsigned o) { return all_[o].data(); });
  }
  arrays outputs() const {
    arrays got;
    for (const unsigned o : w_.outputs)
      got.emplace_back(all_[o].data(), all_[o].data() + all_[o].size());
    return got;
  }

 private:
  const work& w_;
  std::vector<simt::buffer<float>> all_;
};

class by_one_thread final : public way {
 public:
  by_one_thread(const device& d, const work& w) : w_(w), operands_(d, w_), call_(d, w_) {}

  arrays run(unsigned first, unsigned rounds) override {
    for (unsigned r = first; r < first + rounds; ++r) {
      operands_.begin(r);
      for (const step& s : w_.steps) call_(s, operands_.of(s));
    }
    copied_ += copied_by_steps(w_) * rounds;
    return operands_.outputs();
  }
  std::uint64_t copied_bytes() const override { return copied_; }

 private:
  const work w_;
  host_operands operands_;
  subroutine call_;
  std::uint64_t copied_ = 0;
};

class by_threads final : public way {
 public:
  static constexpr unsigned threads = 8;

  by_threads(const device& d, const work& w) : w_(w), operands_(d, w_) {
    for (unsigned i = 0; i < threads; ++i) calls_.push_back(std::make_unique<subroutine>(d, w_));
  }

  arrays run(unsigned first, unsigned rounds) override {
    const std::size_t count = w_.steps.size();
    std::vector<std::atomic<bool>> done(count);
    std::atomic<std::size_t> next{0};
    std::atomic<bool> failed{false};
    std::exception_ptr thrown;
    std::mutex mutex;
    unsigned round = first;
    const auto begin = [&]() noexcept {
      for (std::atomic<bool>& d : done) d.store(false, std::memory_order_relaxed);
      next.store(0, std::memory_order_relaxed);
      operands_.begin(round++);
    };
    begin();
    std::barrier all_done(threads, begin);
    const auto serve = [&](unsigned t) {
      for (unsigned r = 0; r < rounds; ++r) {
        try {
          if (!failed.load()) serve_round(t, done, next, failed);
        } catch (...) {
          failed = true;
          std::lock_guard lock(mutex);
          thrown = std::current_exception();
        }
        if (r + 1 != rounds) all_done.arrive_and_wait();
      }
    };
    std::vector<std::thread> others;
    for (unsigned t = 1; t < threads; ++t) others.emplace_back(serve, t);
    serve(0);
    for (std::thread& t : others) t.join();
    if (thrown) std::rethrow_exception(thrown);
    copied_ += copied_by_steps(w_) * rounds;
    return operands_.outputs();
  }
  std::uint64_t copied_bytes() const override { return copied_; }

 private:
  /// Steps come in an order in which each finds what it needs, or somebody at work on it.
  void serve_round(unsigned t, std::vector<std::atomic<bool>>& done, std::atomic<std::size_t>& next,
                   const std::atomic<bool>& failed) {
    for (std::size_t i; (i = next.fetch_add(1)) < done.size();) {
      for (const unsigned o : w_.steps[i].reads)
        if (o >= w_.inputs)
          while (!done[w_.operands[o].made_by].load(std::memory_order_acquire)) {
            if (failed.load()) return;
            std::this_thread::yield();
          }
      (*calls_[t])(w_.steps[i], operands_.of(w_.steps[i]));
      done[i].store(true, std::memory_order_release);
    }
  }

  const work w_;
  host_operands operands_;
  std::vector<std::unique_ptr<subroutine>> calls_;
  std::uint64_t copied_ = 0;
};

}  // namespace

std::unique_ptr<way> make_modular_by_one_thread(const device& d, const work& w) {
  return std::make_unique<by_one_thread>(d, w);
}
std::unique_ptr<way> make_modular(const device& d, const work& w) {
  return std::make_unique<by_threads>(d, w);
}

const std::vector<named_way>& all_ways() {
  static const std::vector<named_way> all{
      {"modular-1", "each operation copies for itself; one thread", make_modular_by_one_thread},
      {"modular", "the same by eight threads", make_modular},
      {"by-hand", "one thread and one stream, copies only where needed", make_by_hand},
      {"best-by-hand", "three sets of buffers, streams and CUDA graphs", make_best_by_hand},
      {"flow", "a dataflow graph", make_flow},
  };
  return all;
}

}  // namespace grosr::composition
