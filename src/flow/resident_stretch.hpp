// A stretch of resident nodes: what the host does for it.
#pragma once

#include <exception>
#include <vector>

#include "flow/stretch.hpp"
#include "grosr/flow/resident.hpp"
#include "grosr/simt/buffer.hpp"

namespace grosr::flow {

/// The memory that the members share with each other and with the host, and their streams. They are
/// launched by the first run, and again by one that finds that they have left. The destructor has
/// them leave, and waits for that.
class resident_stretch {
 public:
  /// Throws error(out_of_memory).
  resident_stretch(const std::vector<stretch::member>& members,
                   const std::vector<std::size_t>& buffer_bytes, const device& d,
                   unsigned outside_ports);
  ~resident_stretch();

  /// Says where the blocks at the stretch's ports lie, in host memory that the device reaches, and
  /// waits until all members have run. One thread at a time. Throws error(device_lost) when the
  /// device has failed, and what launches throw; then no member looks at the blocks any more, and
  /// later runs throw the same.
  void run(const detail::invocation& v);

 private:
  struct resident {
    const stretch::member* is;
    simt::stream queue;
    detail::resident_links links;
    std::vector<detail::resident_place> places;
    bool tells = false;
  };

  void run_all(const detail::invocation& v);
  void launch_those_who_left();
  void have_all_leave() noexcept;

  device where_;
  std::vector<simt::buffer<std::byte>> buffers_;   // on the device: of what flows inside
  simt::buffer<std::uint64_t> counts_;             // on the device: of members and their blocks
  simt::buffer<detail::resident_counter> before_;  // on the device
  simt::buffer<std::uint64_t> told_, addresses_;   // pinned
  simt::buffer<std::uint32_t> stops_, left_;       // pinned
  std::vector<resident> residents_;
  std::uint64_t run_ = 0;
  std::exception_ptr failure_;
};

}  // namespace grosr::flow
