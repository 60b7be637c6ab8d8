#include <memory>

#include "cases/channel_programs.hpp"
#include "grosr/flow/element_graph.hpp"
#include "recursion/queens_tasks.hpp"

namespace grosr::channels {
namespace {

/// Pushes as the program says: lanes that come together share a reservation, or each makes its own.
template <class T>
struct outlet {
  channel<T> to;
  reserve_by by;

  GROSR_DEVICE void push(auto& context, const T& value) const {
    if (by == reserve_by::warp) return to.push(context, value);
    const std::uint32_t mask = simt::active_mask();
    GROSR_NO_UNROLL
    for (std::uint32_t left = mask; left != 0; left &= left - 1)
      if (simt::lane_id() == simt::lowest_bit(left)) to.push(context, value);
  }
};

/// A sum in pieces, so that not all lanes add to one word.
struct total {
  static constexpr std::uint32_t pieces = 1024;
  std::uint64_t* at;
  GROSR_DEVICE void add(std::uint64_t n) const {
    const std::uint32_t k = (simt::block_id() * 32 + simt::lane_id()) % pieces;
    simt::atomic_ref<std::uint64_t>(at[k]).fetch_add(n, simt::relaxed);
  }
};

class summing : public program {
 public:
  explicit summing(const device& d) : pieces_(d, simt::space::device, total::pieces) {}

 protected:
  total sum() const { return {pieces_.data()}; }
  void clear() { pieces_.copy_from(std::vector<std::uint64_t>(pieces_.size())); }
  std::uint64_t collect() const {
    std::vector<std::uint64_t> all(pieces_.size());
    pieces_.copy_to(all);
    std::uint64_t n = 0;
    for (std::uint64_t p : all) n += p;
    return n;
  }

 private:
  simt::buffer<std::uint64_t> pieces_;
};

/// What the programs of graphs have in common.
template <class Graph>
class graph_program : public summing {
 public:
  graph_program(const device& d, const program_options& o)
      : summing(d), graph_(d, {.runtime = o.runtime, .host_records = 32}) {}

  std::vector<channel_stats> channels() const override { return graph_.stats(); }
  runtime_stats scheduler() const override { return graph_.scheduler_stats(); }
  std::string dot() const override { return graph_.to_dot(); }

 protected:
  template <class T>
  std::uint64_t count(channel<T> first, const T& element) {
    clear();
    graph_.push(first, element);
    graph_.wait();
    return collect();
  }
  Graph graph_;
};

struct fib_node {
  using element = std::uint32_t;
  outlet<std::uint32_t> next;
  total sum;
  GROSR_DEVICE void operator()(const std::uint32_t& n, auto& context) const {
    if (n < 2) return sum.add(n);
    next.push(context, n - 1);
    next.push(context, n - 2);
  }
};

class fib_graph : public graph_program<element_graph<fib_node>> {
 public:
  fib_graph(const device& d, const program_options& o)
      : graph_program(d, o),
        calls_(graph_.channel<std::uint32_t>({.capacity = o.capacity, .name = "calls"})) {
    graph_.connect(calls_, fib_node{{calls_, o.reserve_by}, sum()});
  }
  std::uint64_t run(std::uint32_t n) override { return count(calls_, n); }

 private:
  channel<std::uint32_t> calls_;
};

struct fib_task {
  std::uint32_t n;
  total sum;
  GROSR_DEVICE void operator()(auto& context) const {
    if (n < 2) return sum.add(n);
    context.spawn(fib_task{n - 1, sum});
    context.spawn(fib_task{n - 2, sum});
  }
};

class spawned_fib : public summing {
 public:
  spawned_fib(const device& d, const program_options& o) : summing(d), runtime_(d, o.runtime) {}
  std::uint64_t run(std::uint32_t n) override {
    clear();
    runtime_.submit(fib_task{n, sum()});
    runtime_.wait_all();
    return collect();
  }
  std::vector<channel_stats> channels() const override { return {}; }
  runtime_stats scheduler() const override { return runtime_.stats(); }
  std::string dot() const override { return {}; }

 private:
  runtime<fib_task> runtime_;
};

struct board {
  recursion::queens_row row;
  std::uint32_t rows;  ///< from this one down
};

struct count_node {
  using element = board;
  std::uint32_t n;
  total sum;
  GROSR_DEVICE void operator()(const board& b, auto&) const {
    sum.add(recursion::count_queens(b.row, n, b.rows));
  }
};

struct place_node {
  using element = board;
  outlet<board> next, last;
  std::uint32_t n, base;
  GROSR_DEVICE void operator()(const board& b, auto& context) const {
    GROSR_NO_UNROLL
    for (std::uint32_t free = b.row.free(n); free != 0; free &= free - 1) {
      const board below{b.row.below(free & ~(free - 1)), b.rows - 1};
      (below.rows <= base ? last : next).push(context, below);
    }
  }
};

class queens_graph : public graph_program<element_graph<place_node, count_node>> {
 public:
  queens_graph(const device& d, const program_options& o, std::uint32_t base)
      : graph_program(d, o), options_(o), base_(base) {}

  std::uint64_t run(std::uint32_t n) override {
    if (n_ == 0) build(n);
    if (n != n_)
      throw error(errc::misuse, "queens: this graph was made for a board of " + std::to_string(n_));
    return count(rows_, board{{0, 0, 0}, n});
  }

 private:
  void build(std::uint32_t n) {
    n_ = n;
    rows_ = graph_.channel<board>({.capacity = options_.capacity, .name = "rows"});
    last_ = graph_.channel<board>({.capacity = options_.capacity, .name = "last rows"});
    graph_.connect(
        rows_, place_node{{rows_, options_.reserve_by}, {last_, options_.reserve_by}, n, base_});
    graph_.connect(last_, count_node{n, sum()});
  }

  program_options options_;
  std::uint32_t base_, n_ = 0;
  channel<board> rows_, last_;
};

struct relay_node {
  using element = std::uint32_t;
  channel<std::uint32_t> next;
  total sum;
  GROSR_DEVICE void operator()(const std::uint32_t& left, auto& context) const {
    sum.add(1);
    if (left != 0) next.push(context, left - 1);
  }
};

class relay_graph : public graph_program<element_graph<relay_node>> {
 public:
  relay_graph(const device& d, const program_options& o)
      : graph_program(d, o),
        there_(graph_.channel<std::uint32_t>({.capacity = o.capacity, .name = "there"})),
        back_(graph_.channel<std::uint32_t>({.capacity = o.capacity, .name = "back"})) {
    graph_.connect(there_, relay_node{back_, sum()});
    graph_.connect(back_, relay_node{there_, sum()});
  }
  std::uint64_t run(std::uint32_t n) override { return count(there_, n - 1); }

 private:
  channel<std::uint32_t> there_, back_;
};

/// Makes elements: each of a range, to where a hash of it says. Long ones are halved first.
struct range {
  std::uint32_t first, count;
};
struct scatter_node {
  using element = range;
  channel<range> halves;
  router<std::uint32_t> to;
  GROSR_DEVICE void operator()(const range& r, auto& context) const {
    if (r.count > 64) {
      halves.push(context, range{r.first, r.count / 2});
      halves.push(context, range{r.first + r.count / 2, r.count - r.count / 2});
      return;
    }
    for (std::uint32_t i = r.first; i != r.first + r.count; ++i)
      to.push(context, (i * 2654435761u >> 12) % to.size(), i);
  }
};
struct gather_node {
  using element = std::uint32_t;
  total sum;
  GROSR_DEVICE void operator()(const std::uint32_t& i, auto&) const { sum.add(i); }
};

class scatter_graph
    : public graph_program<element_graph<scatter_node, gather_node, route<std::uint32_t>>> {
 public:
  scatter_graph(const device& d, const program_options& o, std::uint32_t targets, aggregation how)
      : graph_program(d, o),
        ranges_(graph_.channel<range>({.capacity = o.capacity, .name = "ranges"})) {
    std::vector<channel<std::uint32_t>> to;
    for (std::uint32_t k = 0; k < targets; ++k) {
      to.push_back(graph_.channel<std::uint32_t>({.capacity = o.capacity}));
      graph_.connect(to[k], gather_node{sum()});
    }
    graph_.connect(
        ranges_,
        scatter_node{ranges_, graph_.router(to, {.aggregation = how, .capacity = o.capacity})});
  }
  std::uint64_t run(std::uint32_t n) override { return count(ranges_, range{0, n}); }

 private:
  channel<range> ranges_;
};

}  // namespace

std::unique_ptr<program> make_scatter(const device& d, const program_options& o,
                                      std::uint32_t targets, aggregation how) {
  return std::make_unique<scatter_graph>(d, o, targets, how);
}
std::unique_ptr<program> make_fib(const device& d, const program_options& o) {
  return std::make_unique<fib_graph>(d, o);
}
std::unique_ptr<program> make_spawned_fib(const device& d, const program_options& o) {
  return std::make_unique<spawned_fib>(d, o);
}
std::unique_ptr<program> make_queens(const device& d, const program_options& o,
                                     std::uint32_t base) {
  return std::make_unique<queens_graph>(d, o, base);
}
std::unique_ptr<program> make_relay(const device& d, const program_options& o) {
  return std::make_unique<relay_graph>(d, o);
}

}  // namespace grosr::channels
