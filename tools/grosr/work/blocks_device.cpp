#include "work/blocks.hpp"

#include <algorithm>

#include "grosr/simt/buffer.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/launch.hpp"
#include "grosr/simt/native_heap.hpp"
#include "grosr/simt/wait.hpp"

namespace grosr::tool {
namespace {

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
  std::uint32_t* got;      // by thread
  std::uint32_t* wrong;
  std::uint64_t* mail;   // by pair of threads
  std::uint64_t* began;  // by block of the grid
  std::uint64_t* ended;
  std::uint32_t threads, a_thread;
};

template <class Source>
struct kernel_base {
  Source source;
  arrays a;
  block_sizes sizes;
  std::uint32_t round;
  bool stamps;

  GROSR_DEVICE std::uint32_t thread() const {
    return simt::block_id() * simt::block_size() + simt::thread_id();
  }
  GROSR_DEVICE std::uint32_t bytes_for(std::uint32_t t, std::uint32_t i) const {
    if (sizes.least == sizes.most) return sizes.least;
    return sizes.least + mix(mix(t) + i + round * 0x9e3779b9u) % (sizes.most - sizes.least + 1);
  }
  GROSR_DEVICE void touch(void* p, std::uint32_t t) const {
    auto* w = static_cast<volatile std::uint32_t*>(p);
    for (std::uint32_t i = 0; i < sizes.touch / 4; ++i) w[i] = t;
  }
  GROSR_DEVICE static std::uint32_t* last_word(void* p, std::uint32_t bytes) {
    return static_cast<std::uint32_t*>(p) + bytes / 4 - 1;
  }
  GROSR_DEVICE void begin() const {
    if (simt::thread_id() == 0) a.began[simt::block_id()] = simt::clock_ns();
  }
  GROSR_DEVICE void end() const {
    simt::sync_block();
    if (simt::thread_id() == 0) a.ended[simt::block_id()] = simt::clock_ns();
  }
};

template <class Source>
struct fill_kernel : kernel_base<Source> {
  GROSR_DEVICE void operator()() const {
    this->begin();
    std::uint32_t t = this->thread();
    const arrays& a = this->a;
    if (t < a.threads) {
      for (std::uint32_t i = 0; i < a.a_thread; ++i) {
        std::size_t at = std::size_t{i} * a.threads + t;
        if (this->round != 0 && a.blocks[at] != nullptr) continue;
        std::uint32_t bytes = this->bytes_for(t, i);
        void* p = this->source.get(bytes);
        a.blocks[at] = p;
        if (this->stamps && p != nullptr) {
          a.lengths[at] = bytes;
          *static_cast<std::uint32_t*>(p) = mix(static_cast<std::uint32_t>(at));
          *this->last_word(p, bytes) = mix(static_cast<std::uint32_t>(at));
        }
      }
    }
    this->end();
  }
};

template <class Source>
struct release_kernel : kernel_base<Source> {
  std::uint32_t share, of;
  GROSR_DEVICE void operator()() const {
    this->begin();
    std::uint32_t t = this->thread();
    const arrays& a = this->a;
    if (t < a.threads) {
      for (std::uint32_t i = 0; i < a.a_thread; ++i) {
        std::size_t at = std::size_t{i} * a.threads + t;
        void* p = a.blocks[at];
        if (this->stamps && p != nullptr) {
          std::uint32_t stamp = mix(static_cast<std::uint32_t>(at));
          if (*static_cast<std::uint32_t*>(p) != stamp ||
              *this->last_word(p, a.lengths[at]) != stamp)
            ++a.wrong[t];
        }
        if (share < of && mix(static_cast<std::uint32_t>(at) + 77u) % of >= share) continue;
        if (p != nullptr) this->source.give(p);
        if (share < of) a.blocks[at] = nullptr;
      }
    }
    this->end();
  }
};

template <class Source>
struct churn_kernel : kernel_base<Source> {
  std::uint32_t turns;
  GROSR_DEVICE void operator()() const {
    this->begin();
    std::uint32_t t = this->thread();
    const arrays& a = this->a;
    if (t < a.threads) {
      std::uint32_t got = 0, wrong = 0;
      if (a.a_thread == 1) {
        for (std::uint32_t i = 0; i < turns; ++i) {
          void* p = this->source.get(this->bytes_for(t, i));
          if (p == nullptr) continue;
          ++got;
          this->touch(p, t);
          if (this->stamps) wrong += *static_cast<volatile std::uint32_t*>(p) != t;
          this->source.give(p);
        }
      } else {
        for (std::uint32_t i = 0; i < a.a_thread; ++i)
          a.blocks[std::size_t{i} * a.threads + t] = nullptr;
        for (std::uint32_t i = 0; i < turns; ++i) {
          void** slot = &a.blocks[std::size_t{i % a.a_thread} * a.threads + t];
          if (void* old = *slot) {
            if (this->stamps) wrong += *static_cast<volatile std::uint32_t*>(old) != t;
            this->source.give(old);
          }
          void* p = this->source.get(this->bytes_for(t, i));
          *slot = p;
          if (p == nullptr) continue;
          ++got;
          this->touch(p, t);
        }
        for (std::uint32_t i = 0; i < a.a_thread; ++i) {
          void* p = a.blocks[std::size_t{i} * a.threads + t];
          if (p != nullptr) this->source.give(p);
        }
      }
      a.got[t] = got;
      a.wrong[t] = wrong;
    }
    this->end();
  }
};

// The lower half of the grid gets blocks and stamps them, the upper half checks and frees them.
template <class Source>
struct pass_kernel : kernel_base<Source> {
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
        if (gets) {
          std::uint32_t bytes = this->bytes_for(t, i);
          auto* p = static_cast<std::uint32_t*>(this->source.get(bytes));
          if (p != nullptr) {
            ++got;
            p[0] = bytes;
            p[1] = pair;
            *this->last_word(p, bytes) = bytes == 8 ? pair : pair + i;
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
          auto* p = reinterpret_cast<std::uint32_t*>(m);
          wrong += p[1] != pair || *this->last_word(p, p[0]) != pair + i;
          this->source.give(p);
        }
      }
    }
    a.got[t] = got;
    a.wrong[t] = wrong;
    this->end();
  }
};

}  // namespace

struct block_traffic::state {
  state(const device& d, const heap* from, std::uint32_t threads, std::uint32_t a_thread)
      : where(d),
        heap(from),
        stream(d),
        block(d.is_cuda() ? 256 : 64),
        grid((threads + block - 1) / block),
        blocks(d, simt::space::device, std::size_t{threads} * a_thread),
        lengths(d, simt::space::device, std::size_t{threads} * a_thread),
        got(d, simt::space::device, std::size_t{grid} * block),
        wrong(d, simt::space::device, std::size_t{grid} * block),
        mail(d, simt::space::device, std::size_t{grid} * block),
        began(d, simt::space::device, grid),
        ended(d, simt::space::device, grid),
        a{blocks.data(), lengths.data(), got.data(), wrong.data(), mail.data(),
          began.data(),  ended.data(),   threads,    a_thread} {}

  template <template <class> class Kernel, class... More>
  traffic launch(block_sizes sizes, bool stamps, std::uint32_t round, More... more) {
    if (heap != nullptr) {
      simt::launch<256, 3>(stream, {grid, block},
                           Kernel<from_heap>{{{heap->ref()}, a, sizes, round, stamps}, more...});
    } else {
      simt::launch<256, 3>(stream, {grid, block},
                           Kernel<from_device>{{{}, a, sizes, round, stamps}, more...});
    }
    stream.wait();
    std::vector<std::uint64_t> from(grid), to(grid);
    began.copy_to(from);
    ended.copy_to(to);
    traffic t;
    t.us = static_cast<double>(*std::max_element(to.begin(), to.end()) -
                               *std::min_element(from.begin(), from.end())) /
           1e3;
    return t;
  }

  static std::uint64_t sum_of(const simt::buffer<std::uint32_t>& words) {
    std::vector<std::uint32_t> all(words.size());
    words.copy_to(all);
    std::uint64_t sum = 0;
    for (std::uint32_t w : all) sum += w;
    return sum;
  }

  std::uint64_t held() const {
    std::vector<void*> all(blocks.size());
    blocks.copy_to(all);
    return all.size() - static_cast<std::uint64_t>(std::count(all.begin(), all.end(), nullptr));
  }

  device where;
  const class heap* heap;
  simt::stream stream;
  unsigned block, grid;
  simt::buffer<void*> blocks;
  simt::buffer<std::uint32_t> lengths, got, wrong;
  simt::buffer<std::uint64_t> mail, began, ended;
  arrays a;
};

block_traffic::block_traffic(const device& d, const heap* from, std::uint32_t threads,
                             std::uint32_t a_thread)
    : state_(std::make_unique<state>(d, from, threads, a_thread)) {}
block_traffic::~block_traffic() = default;

std::uint64_t block_traffic::count() const { return state_->blocks.size(); }

traffic block_traffic::allocate(block_sizes sizes, bool stamp) {
  traffic t = state_->launch<fill_kernel>(sizes, stamp, 0u);
  t.asked = count();
  t.got = state_->held();
  return t;
}

traffic block_traffic::refill(block_sizes sizes, bool stamp) {
  const std::uint64_t before = state_->held();
  traffic t = state_->launch<fill_kernel>(sizes, stamp, 1u);
  t.asked = count() - before;
  t.got = state_->held() - before;
  return t;
}

traffic block_traffic::release(std::uint32_t share, std::uint32_t of, bool check) {
  const std::uint64_t before = state_->held();
  if (check) state_->wrong.copy_from(std::vector<std::uint32_t>(state_->wrong.size()));
  traffic t = state_->launch<release_kernel>({16, 16, 4}, check, 0u, share, of);
  t.asked = t.got = share < of ? before - state_->held() : before;
  if (check) t.wrong = state::sum_of(state_->wrong);
  return t;
}

traffic block_traffic::churn(block_sizes sizes, std::uint32_t turns, bool check) {
  traffic t = state_->launch<churn_kernel>(sizes, check, 0u, turns);
  t.asked = std::uint64_t{state_->a.threads} * turns;
  t.got = state::sum_of(state_->got);
  t.wrong = state::sum_of(state_->wrong);
  return t;
}

traffic block_traffic::pass_on(block_sizes sizes, std::uint32_t turns) {
  traffic t = state_->launch<pass_kernel>(sizes, true, 0u, turns);
  t.asked = std::uint64_t{state_->grid} / 2 * state_->block * turns;
  t.got = state::sum_of(state_->got);
  t.wrong = state::sum_of(state_->wrong);
  return t;
}

}  // namespace grosr::tool
