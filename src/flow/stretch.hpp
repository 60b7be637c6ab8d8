// A stretch: nodes of a graph that run on devices alone and do the same with every block, run as
// one.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "grosr/flow/graph.hpp"
#include "grosr/flow/resident.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/stream_graph.hpp"

namespace grosr::flow {

class resident_stretch;

/// The functions of a stretch, in an order in which they can run, and the memory of what flows
/// between them, in as many sets as runs may be on a device at a time. On a GPU they are one CUDA
/// graph for each set, and one more for other places where blocks from outside lie, up to some; a
/// run with blocks elsewhere changes the parts that look at them.
/// On the host backend, or where that cannot be, they are put into a stream one by one.
/// Functions of resident nodes stay on the first device instead, and it is run on the host.
class stretch {
 public:
  static constexpr unsigned most_graphs = 3;  // of a set
  /// Where a member finds what is at one of its ports: at a port of the stretch, or in a buffer of
  /// its own.
  struct place {
    bool outside = false;
    unsigned number = 0;
    friend bool operator==(const place&, const place&) = default;
  };
  struct member {
    std::string name;
    detail::function function;  // empty: it is resident
    detail::resident_function resident;
    std::vector<block_template> shapes;             // a port each
    std::vector<place> places;                      // a port each
    std::vector<std::optional<place>> copied_from;  // a port each, before the function
    std::vector<unsigned> after;                    // members
  };

  stretch();
  ~stretch();

  std::vector<member> members;
  std::vector<std::size_t> buffer_bytes;  // of a set
  unsigned outside_ports = 0;
  unsigned sets = 1;  // of buffers: runs on a device at a time

  bool is_resident() const { return static_cast<bool>(members.front().resident); }

  std::size_t bytes() const;
  /// Makes the buffers on devices. Throws error(out_of_memory), and then has none.
  void prepare(const std::vector<device>& devices);
  /// Puts all of it into a stream of one of these devices, with what is at the stretch's ports; or
  /// waits until residents have done it. It uses set `v.number` % sets, and runs of a set are in
  /// one stream. One thread at a time for each device. Throws what functions throw.
  void run(detail::invocation& v);
  /// Whether a run has found since this was last asked that there can be no CUDA graph.
  bool has_fallen_back() { return fell_back_.exchange(false); }

 private:
  struct captured {
    std::unique_ptr<simt::stream_graph> graph;
    std::vector<void*> made_for;  // data at the ports of the stretch
  };
  struct set {
    std::vector<simt::buffer<std::byte>> buffers;
    std::deque<captured> graphs;  // the one that was used last at the end
    unsigned changes = 0;         // since the last one was made
    std::size_t most = most_graphs;
  };
  struct on_device {
    explicit on_device(const device& d) : where(d) {}
    device where;
    std::deque<set> sets;
    bool captures = true, tried = false;
  };

  void put(const member& m, const set& inside, const std::vector<void*>& outside,
           detail::invocation& scratch, simt::stream& s) const;
  bool find_graph(on_device& d, set& inside, const std::vector<void*>& outside);
  bool make_graph(on_device& d, set& inside, const std::vector<void*>& outside);
  bool change_graph(const set& inside, captured& c, const std::vector<void*>& outside);

  std::atomic<bool> fell_back_{false};
  std::deque<on_device> devices_;
  std::unique_ptr<resident_stretch> residents_;
  std::vector<unsigned> at_border_;  // members that look at blocks from outside, or make them
};

}  // namespace grosr::flow
