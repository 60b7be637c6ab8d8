// The program's end of a channel, for a thread that serves it to other processes.
#pragma once

#include <memory>
#include <string>

#include "grosr/flow/graph.hpp"

namespace grosr::flow {

class channel_watch;

/// Thread-safe. Errors as those of any_source and any_sink. It keeps the graph's state, so it may
/// be used after the graph.
class channel_end {
 public:
  explicit channel_end(const any_source& s) : of_(s.of_), channel_(s.channel_) {}
  explicit channel_end(const any_sink& s) : of_(s.of_), channel_(s.channel_) {}

  const block_template& shape() const;
  /// Throws error(misuse) before compile(), error(invalid_option) where the executor has no
  /// threads, and what has ended the graph.
  void check_served(const std::string& asked) const;
  /// Throws what has ended the graph.
  void check_running() const;

  void add(channel_watch& w) const;
  void remove(channel_watch& w) const noexcept;

  /// What comes by the channel is copied to the host when it is looked at there, and not before.
  void keep_from_host() const;

  datablock make() const;
  /// Throws error(invalid_option) for a device that is none of the executor.
  space_number space_of(const device& d, const std::string& asked) const;
  /// Takes the block unless it returns false.
  bool try_push(datablock& b) const;
  datablock try_pull() const;
  /// The channel has it again, before all others.
  void put_back(datablock b) const;

 private:
  std::shared_ptr<graph_core> of_;
  unsigned channel_;
};

}  // namespace grosr::flow
