// What a graph consists of, without its types: channels and functions.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "grosr/flow/options.hpp"
#include "grosr/queue/batch_buffer.hpp"
#include "grosr/simt/owner.hpp"

namespace grosr {

namespace flow {

/// Channels and functions of a graph, and their device memory. Built by one thread.
class graph_plan {
 public:
  static constexpr std::uint32_t most_channels = 64;

  explicit graph_plan(device d);
  ~graph_plan();

  queue::batch_buffer_state* add_channel(const grosr::channel_options& o,
                                         std::uint32_t element_bytes);
  /// A function as a plan sees it. `state`: a node_state<>, copied; the function is its first
  /// `function_bytes`.
  struct function {
    const void* state;
    std::size_t bytes, function_bytes;
    std::uint32_t kind, max_batch, default_batch;
    std::string name;
    bool on_host = false;
  };
  void connect(const queue::batch_buffer_state* input, const function& f);
  /// Throws error(invalid_option, misuse) when there can be no router to these channels.
  void check_router(const std::vector<const queue::batch_buffer_state*>& targets) const;
  /// Device memory with a copy of the channels of a router, 8 bytes each, which were checked; it
  /// stays as long as the plan. `via`: the router's own channel, or null.
  const void* add_router(const std::vector<const queue::batch_buffer_state*>& targets,
                         const queue::batch_buffer_state* via);
  /// No more may be added. Throws error(invalid_option) when a channel has no function.
  void close();
  /// Calls `begin(graph)`, once, and unless that throws the graph has started. Any thread.
  void start(void (*begin)(void*), void* graph);
  bool started() const;

  const device& where() const { return device_; }
  queue::batch_buffer_state* states() const { return states_.data(); }
  std::uint32_t channels() const;
  /// The node_state of the function that serves a channel.
  const void* server(const queue::batch_buffer_state* c) const;
  /// Counts n elements that the host pushes; the kind of who serves them.
  std::uint32_t count_from_host(const queue::batch_buffer_state* c, std::size_t n);

  /// Throws when elements were lost, or meant for other graphs, since it last did.
  void throw_if_lost();

  std::vector<channel_stats> stats() const;
  std::string to_dot() const;
  /// What to throw when it runs for longer than `limit`; `before`: the counts at its beginning.
  error still_runs(const std::vector<channel_stats>& before, std::chrono::milliseconds limit) const;

 private:
  struct entry;   // a channel
  struct router;  // its targets
  struct parts;   // the channels and routers
  const entry& at(const queue::batch_buffer_state* c) const;
  std::uint32_t number_of(const queue::batch_buffer_state* c) const;
  /// Copies of the channels' states.
  std::vector<queue::batch_buffer_state> snapshot() const;
  void check_open(const char* what) const;
  std::string name_of(std::uint32_t i) const;

  device device_;
  simt::buffer<queue::batch_buffer_state> states_;
  simt::owner<parts> parts_;
  bool closed_ = false;
  struct shared;  // among threads
  simt::owner<shared> shared_;
};

}  // namespace flow
}  // namespace grosr
