// Atomics of global memory: without the branches and the wait that a GPU needs where it has to ask
// which memory an address is of.
#pragma once

#include "grosr/simt/atomic.hpp"

namespace grosr::simt {

#if GROSR_ON_GPU
namespace detail {

// PTX of one operation, for both scopes; type and constraint are those of the operand.
#define GROSR_GLOBAL_RMW(name, operation, T, type, constraint)                         \
  template <scope S>                                                                   \
  __device__ inline T global_##name(T* p, T v) {                                       \
    T found;                                                                           \
    if constexpr (S == scope::system)                                                  \
      asm volatile("atom.relaxed.sys.global." operation "." type " %0, [%1], %2;"      \
                   : "=" constraint(found)                                             \
                   : "l"(p), constraint(v)                                             \
                   : "memory");                                                        \
    else                                                                               \
      asm volatile("atom.relaxed.gpu.global." operation "." type " %0, [%1], %2;"      \
                   : "=" constraint(found)                                             \
                   : "l"(p), constraint(v)                                             \
                   : "memory");                                                        \
    return found;                                                                      \
  }                                                                                    \
  template <scope S>                                                                   \
  __device__ inline void global_reduce_##name(T* p, T v) {                             \
    if constexpr (S == scope::system)                                                  \
      asm volatile("red.relaxed.sys.global." operation "." type " [%0], %1;" ::"l"(p), \
                   constraint(v)                                                       \
                   : "memory");                                                        \
    else                                                                               \
      asm volatile("red.relaxed.gpu.global." operation "." type " [%0], %1;" ::"l"(p), \
                   constraint(v)                                                       \
                   : "memory");                                                        \
  }                                                                                    \
  template <scope S>                                                                   \
  __device__ inline void global_reduce_##name(T* p, T v, std::uint64_t policy) {       \
    if constexpr (S == scope::system)                                                  \
      asm volatile("red.relaxed.sys.global." operation ".L2::cache_hint." type         \
                   " [%0], %1, %2;" ::"l"(p),                                          \
                   constraint(v), "l"(policy)                                          \
                   : "memory");                                                        \
    else                                                                               \
      asm volatile("red.relaxed.gpu.global." operation ".L2::cache_hint." type         \
                   " [%0], %1, %2;" ::"l"(p),                                          \
                   constraint(v), "l"(policy)                                          \
                   : "memory");                                                        \
  }
GROSR_GLOBAL_RMW(add, "add", std::uint32_t, "u32", "r")
GROSR_GLOBAL_RMW(add, "add", std::uint64_t, "u64", "l")
GROSR_GLOBAL_RMW(add, "add", float, "f32", "f")
GROSR_GLOBAL_RMW(add, "add", double, "f64", "d")
GROSR_GLOBAL_RMW(min, "min", std::uint32_t, "u32", "r")
GROSR_GLOBAL_RMW(min, "min", std::uint64_t, "u64", "l")
GROSR_GLOBAL_RMW(max, "max", std::uint32_t, "u32", "r")
GROSR_GLOBAL_RMW(max, "max", std::uint64_t, "u64", "l")
GROSR_GLOBAL_RMW(and, "and", std::uint32_t, "b32", "r")
GROSR_GLOBAL_RMW(and, "and", std::uint64_t, "b64", "l")
GROSR_GLOBAL_RMW(or, "or", std::uint32_t, "b32", "r")
GROSR_GLOBAL_RMW(or, "or", std::uint64_t, "b64", "l")
#undef GROSR_GLOBAL_RMW

#define GROSR_GLOBAL_MOVES(T, type, bits, constraint)                                              \
  template <scope S>                                                                               \
  __device__ inline T global_cas(T* p, T expected, T v) {                                          \
    T found;                                                                                       \
    if constexpr (S == scope::system)                                                              \
      asm volatile("atom.relaxed.sys.global.cas." bits " %0, [%1], %2, %3;"                        \
                   : "=" constraint(found)                                                         \
                   : "l"(p), constraint(expected), constraint(v)                                   \
                   : "memory");                                                                    \
    else                                                                                           \
      asm volatile("atom.relaxed.gpu.global.cas." bits " %0, [%1], %2, %3;"                        \
                   : "=" constraint(found)                                                         \
                   : "l"(p), constraint(expected), constraint(v)                                   \
                   : "memory");                                                                    \
    return found;                                                                                  \
  }                                                                                                \
  template <scope S>                                                                               \
  __device__ inline T global_load(const T* p) {                                                    \
    T found;                                                                                       \
    if constexpr (S == scope::system)                                                              \
      asm volatile("ld.relaxed.sys.global." type " %0, [%1];"                                      \
                   : "=" constraint(found)                                                         \
                   : "l"(p)                                                                        \
                   : "memory");                                                                    \
    else                                                                                           \
      asm volatile("ld.relaxed.gpu.global." type " %0, [%1];"                                      \
                   : "=" constraint(found)                                                         \
                   : "l"(p)                                                                        \
                   : "memory");                                                                    \
    return found;                                                                                  \
  }                                                                                                \
  template <scope S>                                                                               \
  __device__ inline void global_store(T* p, T v) {                                                 \
    if constexpr (S == scope::system)                                                              \
      asm volatile("st.relaxed.sys.global." type " [%0], %1;" ::"l"(p), constraint(v) : "memory"); \
    else                                                                                           \
      asm volatile("st.relaxed.gpu.global." type " [%0], %1;" ::"l"(p), constraint(v) : "memory"); \
  }
GROSR_GLOBAL_MOVES(std::uint32_t, "u32", "b32", "r")
GROSR_GLOBAL_MOVES(std::uint64_t, "u64", "b64", "l")
#undef GROSR_GLOBAL_MOVES

}  // namespace detail
#endif

/// What is used by this policy leaves a GPU's L2 cache before all else: for memory that is much
/// larger than the cache and used at random. On the host it is nothing.
class evict_first {
 public:
  GROSR_DEVICE evict_first() {
#if GROSR_ON_GPU
    asm("createpolicy.fractional.L2::evict_first.b64 %0;" : "=l"(word_));
#endif
  }
#if GROSR_ON_GPU
  __device__ std::uint64_t word() const { return word_; }

 private:
  std::uint64_t word_;
#endif
};

/// As atomic_ref, of an object in global memory: of this device or another one, or pinned; not of a
/// block. T: an unsigned number, float or double.
template <class T, scope S = scope::device>
class global_ref : public atomic_ref<T, S> {
  using base = atomic_ref<T, S>;

 public:
#if !GROSR_ON_GPU
  explicit global_ref(T& object) : base(object) {}
  // Without what was there: nothing comes back (as P3111, "Atomic reduction operations").
  void store_add(T value, order o) const { base::fetch_add(value, o); }
  void store_min(T value, order o) const { base::fetch_min(value, o); }
  void store_max(T value, order o) const { base::fetch_max(value, o); }
  void store_and(T value, order o) const { base::fetch_and(value, o); }
  void store_or(T value, order o) const { base::fetch_or(value, o); }
  // Relaxed, by a policy.
  void store_add(T value, evict_first) const { base::fetch_add(value, relaxed); }
  void store_min(T value, evict_first) const { base::fetch_min(value, relaxed); }
  void store_max(T value, evict_first) const { base::fetch_max(value, relaxed); }
  void store_and(T value, evict_first) const { base::fetch_and(value, relaxed); }
  void store_or(T value, evict_first) const { base::fetch_or(value, relaxed); }
#else
  __device__ explicit global_ref(T& object) : base(object), object_(&object) {}
  __device__ T load(order o) const {
    if (o != relaxed) return base::load(o);
    return from_word(detail::global_load<S>(as_word()));
  }
  __device__ void store(T value, order o) const {
    if (o != relaxed) return base::store(value, o);
    detail::global_store<S>(as_word(), to_word(value));
  }
  __device__ bool compare_exchange(T& expected, T desired, order o) const {
    if (o != relaxed) return base::compare_exchange(expected, desired, o);
    const word before = to_word(expected),
               found = detail::global_cas<S>(as_word(), before, to_word(desired));
    expected = from_word(found);
    return found == before;
  }
  __device__ T fetch_add(T value, order o) const {
    if (o != relaxed) return base::fetch_add(value, o);
    if constexpr (std::is_floating_point_v<T>)
      return detail::global_add<S>(object_, value);
    else
      return from_word(detail::global_add<S>(as_word(), to_word(value)));
  }
  __device__ T fetch_min(T value, order o) const {
    if (o != relaxed) return base::fetch_min(value, o);
    return from_word(detail::global_min<S>(as_word(), to_word(value)));
  }
  __device__ T fetch_max(T value, order o) const {
    if (o != relaxed) return base::fetch_max(value, o);
    return from_word(detail::global_max<S>(as_word(), to_word(value)));
  }
  __device__ T fetch_and(T value, order o) const {
    if (o != relaxed) return base::fetch_and(value, o);
    return from_word(detail::global_and<S>(as_word(), to_word(value)));
  }
  __device__ T fetch_or(T value, order o) const {
    if (o != relaxed) return base::fetch_or(value, o);
    return from_word(detail::global_or<S>(as_word(), to_word(value)));
  }

  __device__ void store_add(T value, order o) const {
    if (o != relaxed) return static_cast<void>(base::fetch_add(value, o));
    if constexpr (std::is_floating_point_v<T>)
      detail::global_reduce_add<S>(object_, value);
    else
      detail::global_reduce_add<S>(as_word(), to_word(value));
  }
  __device__ void store_min(T value, order o) const {
    if (o != relaxed) return static_cast<void>(base::fetch_min(value, o));
    detail::global_reduce_min<S>(as_word(), to_word(value));
  }
  __device__ void store_max(T value, order o) const {
    if (o != relaxed) return static_cast<void>(base::fetch_max(value, o));
    detail::global_reduce_max<S>(as_word(), to_word(value));
  }
  __device__ void store_and(T value, order o) const {
    if (o != relaxed) return static_cast<void>(base::fetch_and(value, o));
    detail::global_reduce_and<S>(as_word(), to_word(value));
  }
  __device__ void store_or(T value, order o) const {
    if (o != relaxed) return static_cast<void>(base::fetch_or(value, o));
    detail::global_reduce_or<S>(as_word(), to_word(value));
  }
  __device__ void store_add(T value, evict_first p) const {
    if constexpr (std::is_floating_point_v<T>)
      detail::global_reduce_add<S>(object_, value, p.word());
    else
      detail::global_reduce_add<S>(as_word(), to_word(value), p.word());
  }
  __device__ void store_min(T value, evict_first p) const {
    detail::global_reduce_min<S>(as_word(), to_word(value), p.word());
  }
  __device__ void store_max(T value, evict_first p) const {
    detail::global_reduce_max<S>(as_word(), to_word(value), p.word());
  }
  __device__ void store_and(T value, evict_first p) const {
    detail::global_reduce_and<S>(as_word(), to_word(value), p.word());
  }
  __device__ void store_or(T value, evict_first p) const {
    detail::global_reduce_or<S>(as_word(), to_word(value), p.word());
  }

 private:
  using word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  __device__ word* as_word() const { return reinterpret_cast<word*>(object_); }
  __device__ static word to_word(T v) {
    word w;
    __builtin_memcpy(&w, &v, sizeof w);
    return w;
  }
  __device__ static T from_word(word w) {
    T v;
    __builtin_memcpy(&v, &w, sizeof v);
    return v;
  }
  T* object_;
#endif
};

}  // namespace grosr::simt
