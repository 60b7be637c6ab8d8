// The host backend's warp machine: what the vocabulary of simt/ stands on when lanes run on a CPU.
// Lanes are fibers; a block's lanes share one worker thread for the length of a launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "grosr/simt/config.hpp"

namespace grosr::simt::host {

/// Where the calling lane stands. Outside a launch: lane 0 of a warp of its own.
struct position {
  unsigned lane = 0, warp = 0, block = 0;      // numbers in warp, block, grid
  unsigned warps = 1, blocks = 1, worker = 0;  // warps in the block, blocks in the grid, OS thread
};

struct launch_shape {
  unsigned blocks = 1;
  unsigned warps = 1;    // warps a block
  unsigned workers = 0;  // OS threads; 0: one a CPU, at most one a block
};

const position& current();

// Collectives. Each blocks the calling lane until all lanes in `mask` have arrived.
std::uint32_t active_mask(site where);
std::uint32_t own_or_active_mask(site where);
void sync_warp(std::uint32_t mask, site where);
void sync_task(site where);
std::uint32_t ballot(std::uint32_t mask, bool predicate, site where);
std::uint64_t shuffle(std::uint32_t mask, std::uint64_t value, unsigned source, site where);
std::uint32_t match_any(std::uint32_t mask, std::uint64_t value, site where);
void sync_block(site where);

/// One turn of a polling wait: lets other lanes run. `turn` counts the fruitless turns of this
/// wait: a worker whose lanes all poll with turn > 0 spins for about 50 us and then sleeps between
/// its rounds, 20 us growing to 1 ms. `why`, a string that outlives the launch, is shown in
/// reports.
void poll_pause(unsigned turn, const char* why, site where);

/// What the calling lane does, in words that live for ever, or null; what it did before.
const char* set_doing(const char* text);

/// A place where a seeded schedule may switch lanes; free when there is no seed.
void schedule_point();

/// Where pinned memory of the host backend lies; set before any is there.
struct address_range {
  std::uintptr_t begin, bytes;
};
extern address_range pinned_range;

inline bool is_pinned(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p) -
             __atomic_load_n(&pinned_range.begin, __ATOMIC_RELAXED) <
         __atomic_load_n(&pinned_range.bytes, __ATOMIC_RELAXED);
}

/// A read-modify-write of pinned memory: threads of the host may make one; a lane throws
/// error(misuse), which names its place.
void check_modifies(const void* object, site where);

// What simt::fence stands on under ThreadSanitizer, for the calling lane or thread.
bool& passed_release_fence();
void remember_read(void* object);  ///< a relaxed read; the newest 32 are kept
void acquire_what_was_read();

/// Storage of `size` bytes shared by the block, zeroed when the block begins, one for each `key`.
void* block_shared(const void* key, std::size_t size, std::size_t alignment);

/// The seed in force: set_seed(), else GROSR_SEED, else none.
std::optional<std::uint64_t> seed();

/// Sets or clears the seed for launches that start after the call.
void set_seed(std::optional<std::uint64_t> seed);

/// For closed tests, where no host thread feeds the lanes: after this many rounds in which every
/// lane only polled (with turn > 0) or was blocked, a launch ends with error(deadlock), which names
/// what each lane polls for. None, the default: lanes may poll for ever.
void set_poll_limit(std::optional<std::uint64_t> rounds);

/// Runs `kernel` once in each lane and returns when all have ended; the calling thread is worker 0.
/// All blocks make progress together, however many there are. With a seed, one worker runs all
/// blocks and every switch is drawn from the seed: the same seed replays the same schedule.
/// Throws error(deadlock) with each stuck lane's place when a warp can never go on, and rethrows
/// the first exception that leaves a lane. Either way the other lanes are unwound: their pending
/// call throws a type of its own, or does nothing in a lane that is unwinding already. A call in a
/// noexcept function of the kernel would end the program then; atomics throw only for pinned
/// memory. Through
/// `questions`, if not null, other threads may ask what its lanes wait for.
struct inquiry;
void run(launch_shape shape, const std::function<void()>& kernel, inquiry* questions = nullptr);

}  // namespace grosr::simt::host
