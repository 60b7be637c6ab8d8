// What a world has on its ranks, without its task types: links, arrays, and how all is found to be
// done.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "grosr/net/array.hpp"
#include "grosr/net/options.hpp"
#include "grosr/simt/owner.hpp"
#include "grosr/simt/process.hpp"

namespace grosr::net {

/// What processes do together: a world of one process does it alone.
enum class collective : std::uint8_t {
  make,
  settle,
  wait,
  end,
  refusals,
  make_array,
  end_array,
  copy
};

/// Its members may be called from any thread, one at a time for those that add and remove arrays.
/// Ranks have the numbers that they have in all of the world.
class world_core {
 public:
  /// `types`: of tasks, in words. Throws error(invalid_option, out_of_memory); error(misuse) where
  /// processes do not have the same; error(timed_out, stopped) where others do not come.
  world_core(std::vector<rank_options> ranks, const world_options& options,
             const std::string& types);
  ~world_core();

  std::uint32_t size() const;
  std::uint32_t first_here() const;
  std::uint32_t ranks_here() const;
  bool has_others() const;  ///< processes
  const rank_options& rank(std::uint32_t r) const;
  /// Throws error(invalid_option) when there is no such rank, or it is in another process.
  void check_rank(std::uint32_t r) const;
  rank_state* state(std::uint32_t r) const;

  /// All processes do something, or all throw.
  void together(const std::function<void()>& what);

  /// While no kernel of the world is on a device. A number for the array, and memory on each rank.
  std::uint32_t add_array(const layout& shape, std::uint32_t element_bytes);
  void remove_array(std::uint32_t number) noexcept;
  /// From now on the memory of arrays that are removed stays until the end: kernels may be there.
  void keep_arrays();
  /// Elements from `first` on, between the host and wherever they are. Throws error(invalid_option)
  /// when there are not so many.
  void write(std::uint32_t number, std::uint64_t first, const void* from, std::uint64_t count);
  void read(std::uint32_t number, std::uint64_t first, void* to, std::uint64_t count) const;
  /// The same of a rank's part, of a rank of this process.
  void write_part(std::uint32_t number, std::uint32_t rank, const void* from, std::uint64_t count);
  void read_part(std::uint32_t number, std::uint32_t rank, void* to, std::uint64_t count) const;

  /// Before kernels come back to the devices: they look at all links.
  void ring_all();

  /// How a wait has ranks of this process come to rest.
  struct waiting {
    /// Has rank r write its report, and take in what has come. False: the deadline passed before
    /// there was room for that.
    std::function<bool(std::uint32_t, rank_report*, run::deadline)> ask;
    /// Waits until rank r has nothing to do; false past the deadline.
    std::function<bool(std::uint32_t, run::deadline)> rests;
  };
  /// Waits until nothing is under way. `last`: the world ends then.
  bool wait_all(const waiting& how, run::deadline until, bool last) const;
  /// Throws error(misuse) when tasks asked for what there is not, since it last did.
  void throw_if_refused();

  /// Of the ranks of this process.
  std::vector<rank_stats> stats() const;
  /// "about 5 of 900 words of messages not received", of these ranks.
  std::string under_way() const;

 private:
  struct parts;
  simt::owner<parts, simt::not_in_a_fork> parts_;
};

}  // namespace grosr::net
