// Tasks of the programs on vectors: histogram, index gather and permutation.
#pragma once

#include "tasks.hpp"

namespace grosr::bale {

// ---- histogram ----

struct histogram_arrays {
  net::array_ref<std::uint64_t> bins;
  net::array_ref<std::uint32_t> numbers;  ///< of each rank, in a block
};

struct count_numbers {
  static constexpr grosr::width width = grosr::width::warp;
  warp_share some;
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    const auto& a = arrays_of<histogram_arrays>(world);
    const auto bins = a.bins;
    const std::uint32_t* const numbers = world.local(a.numbers);
    some.each(context, a.numbers.size_of(world.rank()),
              [&](std::uint32_t i) { world.add(bins, numbers[i], 1); });
  }
};

// ---- index gather ----

struct gather_arrays {
  net::array_ref<std::uint64_t> table;
  net::array_ref<std::uint32_t> indices;  ///< of each rank, in a block
  net::array_ref<std::uint64_t> values;   ///< what is there, of each index
};

/// On the rank of an element: answers.
struct look_up {
  std::uint32_t element;       ///< of this rank's part of the table
  std::uint32_t value, asker;  ///< where the value goes: of that rank's part
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    const auto& a = arrays_of<gather_arrays>(world);
    world.put(a.values, a.values.index_of({asker, value}), world.local(a.table)[element]);
  }
};

struct gather_values {
  static constexpr grosr::width width = grosr::width::warp;
  warp_share some;
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    const auto& a = arrays_of<gather_arrays>(world);
    const net::layout table = a.table;
    const std::uint64_t* const mine = world.local(a.table);
    const std::uint32_t* const indices = world.local(a.indices);
    std::uint64_t* const values = world.local(a.values);
    some.each(context, a.indices.size_of(world.rank()), [&](std::uint32_t i) {
      const net::place at = table.find(indices[i]);
      if (at.rank == world.rank())
        values[i] = mine[at.offset];
      else
        world.send(at.rank, look_up{static_cast<std::uint32_t>(at.offset), i, world.rank()});
    });
  }
};

// ---- permutation ----

struct permutation_arrays {
  net::array_ref<std::uint32_t> table;  ///< twice as large: a dart's number and one, or 0
  net::array_ref<std::uint32_t> order;  ///< of the darts
  net::array_ref<std::uint32_t> sums;   ///< of each rank: darts in pieces of its part of the table
  std::uint64_t seed;
};

/// A dart that comes to a place of the table, for the first time or again.
struct dart {
  std::uint32_t place, number, throws;
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    const auto& a = arrays_of<permutation_arrays>(world);
    if (!stays(world.local(a.table))) throw_on(world, a, number, throws);
  }
  /// Throws a dart that was thrown so often.
  GROSR_DEVICE static void throw_on(const auto& world, const permutation_arrays& a,
                                    std::uint32_t number, std::uint32_t throws) {
    GROSR_NO_UNROLL
    for (;;) {
      const net::place at = a.table.find(place_of(a, number, throws++));
      const dart d{static_cast<std::uint32_t>(at.offset), number, throws};
      if (at.rank != world.rank()) return world.send(at.rank, d);
      if (d.stays(world.local(a.table))) return;
    }
  }

 private:
  GROSR_DEVICE bool stays(std::uint32_t* table) const {
    std::uint32_t empty = 0;
    return shared(table[place]).compare_exchange(empty, number + 1, simt::relaxed);
  }
  /// A random place: the finalizer of SplitMix64, scaled.
  GROSR_DEVICE static std::uint64_t place_of(const permutation_arrays& a, std::uint32_t number,
                                             std::uint32_t throws) {
    std::uint64_t x = a.seed + (std::uint64_t{throws} << 32 | number) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return ((x ^ x >> 31) >> 32) * a.table.size() >> 32;
  }
};

struct throw_darts {
  static constexpr grosr::width width = grosr::width::warp;
  warp_share some;
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    const auto& a = arrays_of<permutation_arrays>(world);
    const std::uint64_t first = a.order.index_of({world.rank(), 0});
    some.each(context, a.order.size_of(world.rank()), [&](std::uint32_t i) {
      dart::throw_on(world, a, static_cast<std::uint32_t>(first + i), 0);
    });
  }
};

}  // namespace grosr::bale
