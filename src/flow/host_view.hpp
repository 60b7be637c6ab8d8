// A block's view on the host, while whoever serves a port copies it.
#pragma once

#include "grosr/flow/datablock.hpp"
#include "grosr/queue/completion.hpp"

namespace grosr::flow {

/// Waits until the view is there. Throws as datablock::read().
class host_view {
 public:
  host_view(const datablock& b, access a) : block_(b), access_(a) {
    stream_waits waits;
    data_ = block_users::begin_on_host(b, a, waits, nullptr);
    try {
      if (!waits.have_happened()) queue::hand_over_kept();
      waits.wait();
    } catch (...) {
      block_users::end_on_host(b, a, true);
      throw;
    }
  }
  ~host_view() { block_users::end_on_host(block_, access_, false); }
  host_view(const host_view&) = delete;
  void* data() const { return data_; }

 private:
  const datablock& block_;
  const access access_;
  void* data_;
};

}  // namespace grosr::flow
