// Atomics with a scope, fences, and 16-byte words for what crosses the bus.
//
// On the host they are the compiler's builtins: <atomic> would bring read(), write() and the rest
// of unistd.h into the global namespace of every user's file.
#pragma once

#include <type_traits>

#if defined(__CUDACC__)
#include <cuda/atomic>
#endif

#include "grosr/simt/config.hpp"
#include "grosr/simt/detail/host_machine.hpp"

namespace grosr::simt {

/// How far an operation must be seen: the block, the device, or the host and its peers too.
enum class scope { block, device, system };

/// As std::memory_order.
enum class order : int {
  relaxed = __ATOMIC_RELAXED,
  acquire = __ATOMIC_ACQUIRE,
  release = __ATOMIC_RELEASE,
  acq_rel = __ATOMIC_ACQ_REL,
  seq_cst = __ATOMIC_SEQ_CST
};
inline constexpr order relaxed = order::relaxed;
inline constexpr order acquire = order::acquire;
inline constexpr order release = order::release;
inline constexpr order acq_rel = order::acq_rel;
inline constexpr order seq_cst = order::seq_cst;

/// The order of an atomic that only has to come after an atomic of the same lane whose result
/// decides whether it is made. A GPU sends it out when that result has come back from L2, where all
/// lanes see it; other processors need a release for it.
GROSR_DEVICE constexpr order after_result() {
#if GROSR_ON_GPU
  return relaxed;
#else
  return release;
#endif
}

/// Goes on only when `answer`, an atomic's, has come, so that what follows comes after that atomic
/// on a GPU as well (see after_result()).
GROSR_DEVICE inline void await([[maybe_unused]] std::uint32_t answer) {
#if GROSR_ON_GPU
  if (answer == 0xb5e7'0a1d) __nanosleep(0);  // a branch: an empty asm is no use to the assembler
#endif
}

/// The order of a load whose value decides whether something is overwritten. A GPU does not store
/// before it knows that it is to.
GROSR_DEVICE constexpr order before_store() {
#if GROSR_ON_GPU
  return relaxed;
#else
  return acquire;
#endif
}

/// The order of read-modify-writes of which each decides whether the next one is made.
GROSR_DEVICE constexpr order in_turn() {
#if GROSR_ON_GPU
  return relaxed;
#else
  return acq_rel;
#endif
}

/// The order of a release after which another lane of the warp goes on with what others released to
/// the same word: that lane fences (acquire) first, which on a GPU holds for the whole warp.
GROSR_DEVICE constexpr order release_for_warp() {
#if GROSR_ON_GPU
  return release;
#else
  return acq_rel;
#endif
}

/// The order of a load after which a lane of the warp fences (acquire).
GROSR_DEVICE constexpr order acquire_for_warp() {
#if GROSR_ON_GPU
  return relaxed;
#else
  return acquire;
#endif
}

#if defined(__CUDACC__)
namespace detail {
static_assert(static_cast<int>(cuda::memory_order_seq_cst) == static_cast<int>(seq_cst) &&
              static_cast<int>(cuda::memory_order_acq_rel) == static_cast<int>(acq_rel));

template <scope S>
inline constexpr cuda::thread_scope cuda_scope = S == scope::block    ? cuda::thread_scope_block
                                                 : S == scope::device ? cuda::thread_scope_device
                                                                      : cuda::thread_scope_system;
GROSR_DEVICE constexpr cuda::memory_order cuda_order(order o) {
  return static_cast<cuda::memory_order>(static_cast<int>(o));
}
}  // namespace detail
#endif

#if !GROSR_ON_GPU
/// Fences for ThreadSanitizer, which knows none: after a release fence every write of the lane
/// releases, and an acquire fence acquires from what the lane read before it. As C++ has it, but
/// that what the lane does between the fence and the write is released too. Nothing in other
/// builds.
namespace fence_model {
inline void read([[maybe_unused]] void* object) {
#if defined(__SANITIZE_THREAD__)
  host::remember_read(object);
#endif
}

inline order order_of_write(order o) {
#if defined(__SANITIZE_THREAD__)
  if (host::passed_release_fence()) return o == relaxed ? release : o == acquire ? acq_rel : o;
#endif
  return o;
}
}  // namespace fence_model
#endif

namespace detail {
/// What std::atomic_ref<T> does.
template <class T>
class host_atomic {
 public:
  explicit host_atomic(T& object) : object_(&object) {}

  T load(order o) const {
    T value;
    __atomic_load(object_, &value, static_cast<int>(o));
    return value;
  }
  void store(T value, order o) const { __atomic_store(object_, &value, static_cast<int>(o)); }
  T exchange(T value, order o) const {
    T before;
    __atomic_exchange(object_, &value, &before, static_cast<int>(o));
    return before;
  }
  bool compare_exchange_strong(T& expected, T desired, order success, order failure) const {
    return __atomic_compare_exchange(object_, &expected, &desired, false, static_cast<int>(success),
                                     static_cast<int>(failure));
  }
  T fetch_add(T value, order o) const {
    if constexpr (std::is_integral_v<T>) {
      return __atomic_fetch_add(object_, value, static_cast<int>(o));
    } else {
      T found = load(relaxed);
      while (!compare_exchange_strong(found, found + value, o, relaxed)) {
      }
      return found;
    }
  }
  T fetch_or(T value, order o) const {
    return __atomic_fetch_or(object_, value, static_cast<int>(o));
  }
  T fetch_and(T value, order o) const {
    return __atomic_fetch_and(object_, value, static_cast<int>(o));
  }

 private:
  T* object_;
};
}  // namespace detail

/// Atomic operations on an object of 4 or 8 bytes that lives elsewhere: a number, or a struct that
/// is aligned to its size, for which there are loads and stores. Read-modify-writes are for device
/// memory and a block's own: of pinned host memory they are not atomic against the CPU, over PCIe.
/// On the host backend a lane that makes one there throws error(misuse).
template <class T, scope S = scope::device>
class atomic_ref {
 public:
  GROSR_DEVICE explicit atomic_ref(T& object) : object_(&object) {}

  GROSR_DEVICE T load(order o) const {
#if GROSR_ON_GPU
    if constexpr (as_rmw) return ref().fetch_or(0, detail::cuda_order(o));
    // The same for the compiler, which then sees that it is a block's memory.
    if constexpr (S == scope::block)
      if (o == relaxed) return *static_cast<const volatile T*>(object_);
    return ref().load(detail::cuda_order(o));
#else
    host::schedule_point();
    if (o == relaxed) fence_model::read(object_);
    return ref().load(o);
#endif
  }

  GROSR_DEVICE void store(T value, order o) const {
#if GROSR_ON_GPU
    if constexpr (as_rmw)
      ref().exchange(value, detail::cuda_order(o));
    else if (S == scope::block && o == relaxed)
      *static_cast<volatile T*>(object_) = value;
    else
      ref().store(value, detail::cuda_order(o));
#else
    host::schedule_point();
    ref().store(value, fence_model::order_of_write(o));
#endif
  }

  GROSR_DEVICE T exchange(T value, order o, [[maybe_unused]] site where = site::here()) const {
#if GROSR_ON_GPU
    return ref().exchange(value, detail::cuda_order(o));
#else
    may_modify(where);
    host::schedule_point();
    return ref().exchange(value, order_of_rmw(o));
#endif
  }

  /// On failure `expected` takes the value found, with acquire if `success` has it.
  GROSR_DEVICE bool compare_exchange(T& expected, T desired, order success,
                                     [[maybe_unused]] site where = site::here()) const {
    order failure = success == acq_rel ? acquire : success == release ? relaxed : success;
#if GROSR_ON_GPU
    return ref().compare_exchange_strong(expected, desired, detail::cuda_order(success),
                                         detail::cuda_order(failure));
#else
    may_modify(where);
    host::schedule_point();
    return ref().compare_exchange_strong(expected, desired, order_of_rmw(success), failure);
#endif
  }

  GROSR_DEVICE T fetch_add(T value, order o, [[maybe_unused]] site where = site::here()) const {
#if GROSR_ON_GPU
    return ref().fetch_add(value, detail::cuda_order(o));
#else
    may_modify(where);
    host::schedule_point();
    return ref().fetch_add(value, order_of_rmw(o));
#endif
  }

  GROSR_DEVICE T fetch_sub(T value, order o, site where = site::here()) const {
    return fetch_add(T(0) - value, o, where);
  }

  GROSR_DEVICE T fetch_or(T value, order o, [[maybe_unused]] site where = site::here()) const {
#if GROSR_ON_GPU
    return ref().fetch_or(value, detail::cuda_order(o));
#else
    may_modify(where);
    host::schedule_point();
    return ref().fetch_or(value, order_of_rmw(o));
#endif
  }

  GROSR_DEVICE T fetch_and(T value, order o, [[maybe_unused]] site where = site::here()) const {
#if GROSR_ON_GPU
    return ref().fetch_and(value, detail::cuda_order(o));
#else
    may_modify(where);
    host::schedule_point();
    return ref().fetch_and(value, order_of_rmw(o));
#endif
  }

  /// The lesser of both stays; for unsigned numbers.
  GROSR_DEVICE T fetch_min(T value, order o, [[maybe_unused]] site where = site::here()) const {
#if GROSR_ON_GPU
    if constexpr (S == scope::device && sizeof(T) == 8)
      if (o == relaxed)  // without the branches that ask which memory it is
        return static_cast<T>(::atomicMin(reinterpret_cast<unsigned long long*>(object_),
                                          static_cast<unsigned long long>(value)));
    return ref().fetch_min(value, detail::cuda_order(o));
#else
    T found = load(relaxed);
    while (value < found && !compare_exchange(found, value, o, where)) {
    }
    return found;
#endif
  }

  /// The greater of both stays; for unsigned numbers.
  GROSR_DEVICE T fetch_max(T value, order o, [[maybe_unused]] site where = site::here()) const {
#if GROSR_ON_GPU
    if constexpr (S == scope::device && sizeof(T) == 8)
      if (o == relaxed)  // without the branches that ask which memory it is
        return static_cast<T>(::atomicMax(reinterpret_cast<unsigned long long*>(object_),
                                          static_cast<unsigned long long>(value)));
    return ref().fetch_max(value, detail::cuda_order(o));
#else
    T found = load(relaxed);
    while (found < value && !compare_exchange(found, value, o, where)) {
    }
    return found;
#endif
  }

 private:
#if defined(GROSR_RACECHECK)
  // racecheck takes plain atomic loads and stores of block-shared memory for races.
  static constexpr bool as_rmw = S == scope::block;
#else
  static constexpr bool as_rmw = false;
#endif
#if GROSR_ON_GPU
  __device__ cuda::atomic_ref<T, detail::cuda_scope<S>> ref() const {
    return cuda::atomic_ref<T, detail::cuda_scope<S>>(*object_);
  }
#else
  detail::host_atomic<T> ref() const { return detail::host_atomic<T>(*object_); }
  void may_modify(site where) const {
    if (host::is_pinned(object_)) [[unlikely]]
      host::check_modifies(object_, where);
  }
  order order_of_rmw(order o) const {
    if (o == relaxed || o == release) fence_model::read(object_);
    return fence_model::order_of_write(o);
  }
#endif
  T* object_;
};

/// Orders the calling lane's accesses to all memory, as std::atomic_thread_fence.
template <scope S = scope::device>
GROSR_DEVICE inline void fence(order o) {
#if GROSR_ON_GPU
  cuda::atomic_thread_fence(detail::cuda_order(o), detail::cuda_scope<S>);
#else
  host::schedule_point();
#if defined(__SANITIZE_THREAD__)
  if (o != release) host::acquire_what_was_read();
  if (o != acquire) host::passed_release_fence() = true;
#else
  __atomic_thread_fence(static_cast<int>(o));
#endif
#endif
}

/// Between an atomic whose answer has come and a load: nobody who does the same with the two the
/// other way round can miss both. What is seq_cst elsewhere comes with the answer on a GPU.
GROSR_DEVICE inline void fence_after_answer() {
#if !GROSR_ON_GPU
  fence(seq_cst);
#endif
}

/// 16 bytes that cross the bus in one piece. `w[3]` is the validity word: writers set it to what
/// no reader takes for the present lap until the other three are there.
struct alignas(16) bus_word {
  std::uint32_t w[4];
};

/// Reads a bus_word past every cache. When the returned w[3] is the one the writer published
/// last, w[0..2] are the words published with it.
GROSR_DEVICE inline bus_word bus_load(const bus_word* p) {
  bus_word v;
#if GROSR_ON_GPU
  asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
               : "l"(p)
               : "memory");
#else
  auto* q = const_cast<std::uint32_t*>(p->w);
  v.w[3] = atomic_ref<std::uint32_t, scope::system>(q[3]).load(acquire);
  for (int i = 0; i < 3; ++i) v.w[i] = detail::host_atomic<std::uint32_t>(q[i]).load(relaxed);
#endif
  return v;
}

/// Reads 16 bytes of host memory past every cache; on the host, plainly. What orders it after the
/// writes of those bytes is the caller's business.
GROSR_DEVICE inline bus_word bus_load_16(const void* p) {
#if GROSR_ON_GPU
  return bus_load(static_cast<const bus_word*>(p));
#else
  return *static_cast<const bus_word*>(p);
#endif
}

/// bus_load for threads that are no lanes: one vector load where the processor has one.
inline bus_word bus_load_from_host(const bus_word* p) {
  bus_word v;
#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
  using vector = std::uint32_t __attribute__((vector_size(16)));
  vector x = *reinterpret_cast<const volatile vector*>(p->w);
  __atomic_signal_fence(__ATOMIC_ACQUIRE);  // x86 keeps the order of loads
  for (int i = 0; i < 4; ++i) v.w[i] = x[i];
#else
  auto* q = const_cast<std::uint32_t*>(p->w);
  v.w[3] = detail::host_atomic<std::uint32_t>(q[3]).load(acquire);
  for (int i = 0; i < 3; ++i) v.w[i] = detail::host_atomic<std::uint32_t>(q[i]).load(relaxed);
#endif
  return v;
}

/// bus_store for threads that are no lanes: one vector store where the processor has one.
inline void bus_store_from_host(bus_word* p, const bus_word& v) {
#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
  using vector = std::uint32_t __attribute__((vector_size(16)));
  __atomic_signal_fence(__ATOMIC_RELEASE);  // x86 keeps the order of stores
  *reinterpret_cast<volatile vector*>(p->w) = vector{v.w[0], v.w[1], v.w[2], v.w[3]};
#else
  for (int i = 0; i < 3; ++i) detail::host_atomic<std::uint32_t>(p->w[i]).store(v.w[i], relaxed);
  detail::host_atomic<std::uint32_t>(p->w[3]).store(v.w[3], release);
#endif
}

/// Writes a bus_word so that no reader sees w[3] without w[0..2].
GROSR_DEVICE inline void bus_store(bus_word* p, const bus_word& v) {
#if GROSR_ON_GPU
  asm volatile("st.volatile.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(p), "r"(v.w[0]), "r"(v.w[1]),
               "r"(v.w[2]), "r"(v.w[3])
               : "memory");
#else
  for (int i = 0; i < 3; ++i) detail::host_atomic<std::uint32_t>(p->w[i]).store(v.w[i], relaxed);
  atomic_ref<std::uint32_t, scope::system>(p->w[3]).store(v.w[3], release);
#endif
}

}  // namespace grosr::simt
