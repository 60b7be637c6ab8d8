// The kernels of block_traffic. For files with device code.
#pragma once

#include "grosr/simt/lanes.hpp"
#include "grosr/simt/wait.hpp"
#include "work/blocks.hpp"
#include "work/native_heap.hpp"

namespace grosr::tool::block_kernels {

struct from_heap {
  heap_ref heap;
  GROSR_DEVICE void* get(std::uint32_t bytes) const { return heap.allocate(bytes); }
  GROSR_DEVICE void give(void* p) const { heap.deallocate(p); }
};

struct from_device {
  GROSR_DEVICE void* get(std::uint32_t bytes) const { return simt::native_allocate(bytes); }
  GROSR_DEVICE void give(void* p) const {
    if (p != nullptr) simt::native_free(p);
  }
};

GROSR_DEVICE inline std::uint32_t mix(std::uint32_t x) {
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

// Where threads keep what they have: entry i of thread t is [i * threads + t].
struct arrays {
  void** blocks;
  std::uint32_t* lengths;  // bytes asked for; of stamped blocks
  std::uint32_t* got;      // by thread: blocks got, or freed
  std::uint32_t* wrong;    // by thread
  std::uint64_t* mail;     // by pair of threads
  std::uint64_t* began;    // by block of the grid
  std::uint64_t* ended;
  std::uint32_t threads, a_thread;
};

template <class Source>
struct base {
  Source source;
  arrays a;
  block_sizes sizes;
  std::uint32_t round;  // sizes differ by it

  GROSR_DEVICE std::uint32_t thread() const {
    return simt::block_id() * simt::block_size() + simt::thread_id();
  }
  GROSR_DEVICE std::uint32_t bytes_for(std::uint32_t t, std::uint32_t i) const {
    if (sizes.least == sizes.most) return sizes.least;
    if (sizes.by_octave) {
      std::uint32_t random = mix(mix(t) + i + round * 0x9e3779b9u);
      std::uint32_t octave = random % simt::highest_bit(sizes.most);
      return (1u << octave) + (random >> 8) % (1u << octave);
    }
    return sizes.least + mix(mix(t) + i + round * 0x9e3779b9u) % (sizes.most - sizes.least + 1);
  }
  GROSR_DEVICE void touch(void* p, std::uint32_t t) const {
    auto* w = static_cast<volatile std::uint32_t*>(p);
    for (std::uint32_t i = 0; i < sizes.touch / 4; ++i) w[i] = t;
  }
  GROSR_DEVICE static volatile std::uint32_t& last_word(void* p, std::uint32_t bytes) {
    return static_cast<volatile std::uint32_t*>(p)[bytes / 4 - 1];
  }
  GROSR_DEVICE static void stamp(void* p, std::uint32_t bytes, std::uint32_t number) {
    *static_cast<volatile std::uint32_t*>(p) = mix(number);
    last_word(p, bytes) = mix(number);
  }
  GROSR_DEVICE static bool is_stamped(void* p, std::uint32_t bytes, std::uint32_t number) {
    return *static_cast<volatile std::uint32_t*>(p) == mix(number) &&
           last_word(p, bytes) == mix(number);
  }
  GROSR_DEVICE void begin() const {
    if (simt::thread_id() == 0) a.began[simt::block_id()] = simt::clock_ns();
  }
  GROSR_DEVICE void end() const {
    simt::sync_block();
    if (simt::thread_id() == 0) a.ended[simt::block_id()] = simt::clock_ns();
  }
};

template <class Source, bool Stamps>
struct fill : base<Source> {
  bool all;  // else only where there is none
  GROSR_DEVICE void operator()() const {
    this->begin();
    std::uint32_t t = this->thread();
    const arrays& a = this->a;
    if (t < a.threads) {
      std::uint32_t got = 0;
      for (std::uint32_t i = 0; i < a.a_thread; ++i) {
        std::size_t at = std::size_t{i} * a.threads + t;
        if (!all && a.blocks[at] != nullptr) continue;
        std::uint32_t bytes = this->bytes_for(t, i);
        void* p = this->source.get(bytes);
        a.blocks[at] = p;
        got += p != nullptr;
        if constexpr (Stamps) {
          if (p == nullptr) continue;
          a.lengths[at] = bytes;
          this->stamp(p, bytes, static_cast<std::uint32_t>(at));
        }
      }
      a.got[t] = got;
    }
    this->end();
  }
};

// What sizes fill asked for, outside of its time.
template <class Source>
struct tell_lengths : base<Source> {
  GROSR_DEVICE void operator()() const {
    std::uint32_t t = this->thread();
    const arrays& a = this->a;
    if (t >= a.threads) return;
    for (std::uint32_t i = 0; i < a.a_thread; ++i)
      a.lengths[std::size_t{i} * a.threads + t] = this->bytes_for(t, i);
  }
};

// Each thread of a warp keeps a list of the blocks that it got: its first entry is the last one,
// and each block begins with the one before.
template <class Source>
struct stuff : base<Source> {
  GROSR_DEVICE void operator()() const {
    std::uint32_t t = this->thread();
    void* last = this->round == 0 ? nullptr : this->a.blocks[t];
    std::uint32_t got = 0;
    for (;; ++got) {
      void* p = this->source.get(this->sizes.least);
      if (p == nullptr) break;
      *static_cast<void* volatile*>(p) = last;
      last = p;
    }
    this->a.blocks[t] = last;
    this->a.got[t] = got;
  }
};

template <class Source>
struct empty : base<Source> {
  GROSR_DEVICE void operator()() const {
    for (void* p = this->a.blocks[this->thread()]; p != nullptr;) {
      void* next = *static_cast<void* volatile*>(p);
      this->source.give(p);
      p = next;
    }
    this->a.blocks[this->thread()] = nullptr;
  }
};

template <class Source>
struct ask_in_vain : base<Source> {
  std::uint32_t turns;
  GROSR_DEVICE void operator()() const {
    this->begin();
    std::uint32_t t = this->thread();
    if (t < this->a.threads) {
      std::uint32_t got = 0;
      for (std::uint32_t i = 0; i < turns; ++i)
        got += this->source.get(this->sizes.least) != nullptr;
      this->a.got[t] = got;
    }
    this->end();
  }
};

template <class Source, bool Stamps>
struct release : base<Source> {
  std::uint32_t share, of;
  GROSR_DEVICE void operator()() const {
    this->begin();
    std::uint32_t t = this->thread();
    const arrays& a = this->a;
    if (t < a.threads) {
      std::uint32_t freed = 0, wrong = 0;
      for (std::uint32_t i = 0; i < a.a_thread; ++i) {
        std::size_t at = std::size_t{i} * a.threads + t;
        void* p = a.blocks[at];
        if constexpr (Stamps) {
          if (p != nullptr)
            wrong += !this->is_stamped(p, a.lengths[at], static_cast<std::uint32_t>(at));
        }
        if (share < of &&
            mix(static_cast<std::uint32_t>(at) + 77u + this->round * 0x9e3779b9u) % of >= share)
          continue;
        if (p != nullptr) this->source.give(p);
        if (share < of) {
          a.blocks[at] = nullptr;
          freed += p != nullptr;
        }
      }
      if (share < of) a.got[t] = freed;
      if constexpr (Stamps) a.wrong[t] = wrong;
    }
    this->end();
  }
};

template <class Source, bool Stamps>
struct churn : base<Source> {
  std::uint32_t turns;

  GROSR_DEVICE bool is_wrong(void* p, std::uint32_t t, std::uint32_t turn) const {
    return !this->is_stamped(p, this->bytes_for(t, turn), t * turns + turn);
  }

  GROSR_DEVICE void operator()() const {
    this->begin();
    std::uint32_t t = this->thread();
    const arrays& a = this->a;
    if (t < a.threads) {
      std::uint32_t got = 0, wrong = 0;
      if (a.a_thread == 1) {
        for (std::uint32_t i = 0; i < turns; ++i) {
          std::uint32_t bytes = this->bytes_for(t, i);
          void* p = this->source.get(bytes);
          if (p == nullptr) continue;
          ++got;
          this->touch(p, t);
          if constexpr (Stamps) {
            this->stamp(p, bytes, t * turns + i);
            wrong += is_wrong(p, t, i);
          }
          this->source.give(p);
        }
      } else {
        for (std::uint32_t i = 0; i < a.a_thread; ++i)
          a.blocks[std::size_t{i} * a.threads + t] = nullptr;
        for (std::uint32_t i = 0; i < turns; ++i) {
          void** slot = &a.blocks[std::size_t{i % a.a_thread} * a.threads + t];
          if (void* old = *slot) {
            if constexpr (Stamps) wrong += is_wrong(old, t, i - a.a_thread);
            this->source.give(old);
          }
          std::uint32_t bytes = this->bytes_for(t, i);
          void* p = this->source.get(bytes);
          *slot = p;
          if (p == nullptr) continue;
          ++got;
          this->touch(p, t);
          if constexpr (Stamps) this->stamp(p, bytes, t * turns + i);
        }
        for (std::uint32_t i = 0; i < a.a_thread; ++i) {
          void* p = a.blocks[std::size_t{i} * a.threads + t];
          if (p == nullptr) continue;
          if constexpr (Stamps) wrong += is_wrong(p, t, turns - 1 - (turns - 1 - i) % a.a_thread);
          this->source.give(p);
        }
      }
      a.got[t] = got;
      if constexpr (Stamps) a.wrong[t] = wrong;
    }
    this->end();
  }
};

// The lower half of the grid gets blocks and stamps them, the upper half checks and frees them.
template <class Source>
struct pass : base<Source> {
  std::uint32_t turns;
  GROSR_DEVICE void operator()() const {
    this->begin();
    const arrays& a = this->a;
    std::uint32_t half = simt::grid_size() / 2 * simt::block_size(), t = this->thread();
    bool gets = t < half;
    std::uint32_t pair = gets ? t : t - half, got = 0, wrong = 0;
    if (t < 2 * half) {
      simt::atomic_ref<std::uint64_t> mail(a.mail[pair]);
      for (std::uint32_t i = 0; i < turns; ++i) {
        std::uint32_t bytes = this->bytes_for(pair, i);
        if (gets) {
          void* p = this->source.get(bytes);
          if (p != nullptr) {
            ++got;
            this->stamp(p, bytes, pair * turns + i);
          }
          simt::wait_until([&] { return mail.load(simt::acquire) == 0; }, simt::forever, nullptr,
                           "the other thread to take a block");
          mail.store(p == nullptr ? 1 : reinterpret_cast<std::uint64_t>(p), simt::release);
        } else {
          std::uint64_t m = 0;
          simt::wait_until([&] { return (m = mail.load(simt::acquire)) != 0; }, simt::forever,
                           nullptr, "a block from the other thread");
          mail.store(0, simt::release);
          if (m == 1) continue;
          void* p = reinterpret_cast<void*>(m);
          wrong += !this->is_stamped(p, bytes, pair * turns + i);
          this->source.give(p);
        }
      }
    }
    a.got[t] = got;
    a.wrong[t] = wrong;
    this->end();
  }
};

// One block of any size for the first thread: its ends are stamped and checked, and it is freed.
struct one {
  heap_ref heap;
  std::size_t bytes;
  std::uint32_t* got;
  std::uint32_t* wrong;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    auto* p = static_cast<volatile std::uint32_t*>(heap.allocate(bytes));
    *got = p != nullptr;
    *wrong = 0;
    if (p == nullptr) return;
    volatile std::uint32_t* last = p + bytes / 4 - 1;
    *p = 1;
    *last = 2;
    *wrong = *p != 1 || *last != 2;
    heap.deallocate(const_cast<std::uint32_t*>(p));
  }
};

}  // namespace grosr::tool::block_kernels
