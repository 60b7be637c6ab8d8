#include "grosr/flow/datablock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <deque>
#include <mutex>
#include <utility>

#include "flow/block_heap.hpp"
#include "flow/block_pool.hpp"
#include "flow/locked.hpp"

namespace grosr::flow {
namespace {

using simt::stream_point;

const char* verb(access a) {
  return a == access::read ? "read" : a == access::write ? "write" : "update";
}

}  // namespace

/// A stream that copies in one direction.
struct copier {
  explicit copier(device d) : stream(d) {}
  std::mutex mutex;
  simt::timeline stream;
};

struct memory_state {
  std::vector<device> devices;
  std::deque<block_pool> pools;                      // of the host, and of each device
  std::deque<copier> to, from;                       // each device
  std::function<void(const block_copy&)> tell_copy;  // may be empty
  // Of all blocks, as copy_counts has them.
  std::atomic<std::uint64_t> copies{0}, bytes{0}, avoided{0}, avoided_bytes{0};

  void count(const copy_counts& c) {
    if (c.copies != 0) {
      copies.fetch_add(c.copies, std::memory_order_relaxed);
      bytes.fetch_add(c.bytes, std::memory_order_relaxed);
    } else {
      avoided.fetch_add(c.avoided, std::memory_order_relaxed);
      avoided_bytes.fetch_add(c.avoided_bytes, std::memory_order_relaxed);
    }
  }
  std::string name(space_number s) const {
    return s == host_space ? "host memory" : devices[s - 1].name();
  }
};

/// What is put into `t` later begins after `p`; what has failed there uses nothing any more.
void wait_for_end(simt::timeline& t, const stream_point& p) {
  try {
    t.wait_for(p);
  } catch (...) {
  }
}

void stream_waits::put_into(simt::timeline& t) const {
  for (const stream_point& p : to_end) wait_for_end(t, p);
  std::exception_ptr thrown;
  for (const stream_point& p : to_come) try {
      t.wait_for(p);
    } catch (...) {
      thrown = std::current_exception();
    }
  if (thrown) std::rethrow_exception(thrown);
}

void stream_waits::wait() const {
  for (const stream_point& p : to_end) try {
      p.wait();
    } catch (...) {
    }
  for (const stream_point& p : to_come) p.wait();
}

bool stream_waits::have_happened() const {
  for (const stream_point& p : to_end) try {
      if (!p.has_happened()) return false;
    } catch (...) {  // its stream has failed, and uses nothing any more
    }
  for (const stream_point& p : to_come)
    if (!p.has_happened()) return false;
  return true;
}

/// Invariant: no view is valid, or one is, or several are and hold the same.
struct block_state {
  struct view {
    block_buffer buffer;
    bool valid = false;
    std::size_t holds = 0;  ///< elements, while it is valid
  };

  block_state(std::shared_ptr<memory_state> m, const block_template& t)
      : memory(std::move(m)), shape(t), count(t.count()) {
    const std::size_t n = memory->pools.size();
    if (n > few.size()) many = std::make_unique<view[]>(n);
    views = {many ? many.get() : few.data(), n};
  }
  ~block_state() {
    for (space_number s = 0; s < views.size(); ++s) give_back(s);
  }

  const std::shared_ptr<memory_state> memory;
  const block_template shape;
  std::mutex mutex;
  std::atomic<std::size_t> count;  // written with the lock
  std::array<view, 3> few;         // mostly there are no more, and nothing is allocated for them
  std::unique_ptr<view[]> many;
  std::span<view> views;  // by memory
  std::atomic<std::uint64_t> valid_in{
      0};                 // a bit for each valid view, to be asked without the lock
  bool by_count = false;  // its buffers have room for the elements that there are, not for all of
                          // its template
  unsigned readers = 0;   // that have begun, and not ended
  bool written = false;   // somebody is writing

  [[noreturn]] void refuse(access a, const std::string& why) const {
    throw error(errc::misuse, fmt::format("{} a block of {}: {}", verb(a), shape.text(), why));
  }

  /// With the lock: a view in a memory that is ready to be used so after f(place) for each place
  /// that it is given, and of one that is written over after g(place).
  template <class F, class G>
  void* begin(access a, space_number s, copy_counts* told, const stream_user& by, const F& after,
              const G& after_users) {
    if (s >= views.size())
      refuse(a, fmt::format("memory {} was asked for, and there are {}", s, views.size()));
    if (written) refuse(a, "it is being written elsewhere; wait until that has ended");
    if (a != access::read && readers != 0)
      refuse(a, fmt::format("{} others read it; wait until they have ended", readers));
    copy_counts now;
    if (a == access::write)
      take(s, by.home);
    else
      see_to(a, s, now, by);
    if (now.copies == 0) {
      now.avoided = 1;
      now.avoided_bytes = used_bytes();
    }
    view& v = views[s];
    if (a == access::write)
      after_users(v.buffer.written);
    else
      after(v.buffer.written);
    if (a == access::read) {
      ++readers;
    } else {
      for (const stream_point& p : v.buffer.read) after_users(p);
      written = true;
      // Buffers of views that hold nothing any more go back, with those who still use them.
      for (space_number other = 0; other < views.size(); ++other) {
        views[other].valid = false;
        if (other != s) give_back(other);
      }
      set_valid(s);
    }
    if (told != nullptr) *told += now;
    memory->count(now);
    return v.buffer.data;
  }

  /// `until`: when what was put into a stream meanwhile is done; none: it is. What failed holds
  /// nothing afterwards.
  void end(access a, space_number s, const stream_point* until, bool failed = false) {
    const auto lock = locked(mutex);
    block_buffer& b = views[s].buffer;
    if (a == access::read) {
      --readers;
      if (until != nullptr) b.read.add(*until);
      return;
    }
    written = false;
    // A host that has not come so far as to write has not waited for those who use the memory.
    if (!failed || until != nullptr) {
      b.read.clear();
      b.written = until != nullptr ? *until : stream_point();
    }
    if (failed) {
      views[s].valid = false;
      valid_in.store(0, std::memory_order_relaxed);
    }
  }

  /// With the lock: has a view in host memory, unless somebody writes the block or nobody has.
  void bring_to_host(const stream_user& by, copy_counts& counts) {
    if (written || holds_all(views[host_space])) return;
    copy_counts now;
    see_to(access::read, host_space, now, by);
    counts += now;
    memory->count(now);
  }

  /// Of a block that nobody else knows yet: what a memory holds for it.
  void take_in(space_number s, block_buffer b) {
    views[s].buffer = std::move(b);
    set_valid(s);
  }

  /// The same of one from a heap; without elements, it is from the pool.
  void take_in(space_number s, block_heap& h, void* data, std::size_t n) {
    by_count = true;
    count = n;
    if (data != nullptr)
      views[s].buffer = h.lend(data, used_bytes());
    else
      take(s, 0);
    set_valid(s);
  }

  bool holds_all(const view& v) const { return v.valid && v.holds >= count; }

 private:
  std::size_t used_bytes() const { return count * shape.element().bytes; }

  void give_back(space_number s) noexcept {
    memory->pools[s].give(std::exchange(views[s].buffer, {}));
  }

  void set_valid(space_number s) {
    views[s].valid = true;
    views[s].holds = count;
    std::uint64_t bits = 0;
    for (space_number i = 0; i < views.size(); ++i)
      if (views[i].valid) bits |= std::uint64_t{1} << i;
    valid_in.store(bits, std::memory_order_relaxed);
  }

  void take(space_number s, std::uint64_t home) {
    block_buffer& b = views[s].buffer;
    if (by_count && b.data != nullptr && b.bytes < used_bytes()) {
      views[s].holds = 0;
      give_back(s);
    }
    if (b.data == nullptr) b = memory->pools[s].take(buffer_bytes(), home);
  }

  /// Powers of two, so that pools have few sizes.
  std::size_t buffer_bytes() const {
    return by_count ? std::bit_ceil(std::max(used_bytes(), std::size_t{256})) : shape.size_bytes();
  }

  /// Has a valid view in a memory.
  void see_to(access a, space_number s, copy_counts& counts, const stream_user& by) {
    if (holds_all(views[s])) return;
    // The host's is the source if it can be: that of a device may be busy.
    space_number from = 0;
    while (from < views.size() && !holds_all(views[from])) ++from;
    if (from == views.size()) refuse(a, "nobody has written it; write it first");
    const auto& devices = memory->devices;
    // Between a GPU and a device of the host it goes by pinned memory.
    if (from != host_space && s != host_space &&
        devices[from - 1].kind() != devices[s - 1].kind()) {
      copy(host_space, from, counts, {});
      return copy(s, host_space, counts, {.home = by.home});
    }
    copy(s, from, counts, by);
  }

  void copy(space_number to, space_number from, copy_counts& counts, const stream_user& by) {
    take(to, by.home);
    ++counts.copies;
    counts.bytes += used_bytes();
    if (by.stream != nullptr && used_bytes() <= by.copies) return copy(to, from, *by.stream, false);
    copier& c = to == host_space ? memory->from[from - 1] : memory->to[to - 1];
    std::lock_guard lock(c.mutex);
    // The host waits for one block; a stream, for all that its next function needs.
    copy(to, from, c.stream, to == host_space);
  }

  void copy(space_number to, space_number from, simt::timeline& by, bool marked) {
    block_buffer &target = views[to].buffer, &source = views[from].buffer;
    by.wait_for(source.written);
    target.each_user([&](const stream_point& p) { wait_for_end(by, p); });
    const stream_point done = [&] {
      try {
        const bool told = static_cast<bool>(memory->tell_copy);
        const simt::stream_time begins = told ? by.time() : simt::stream_time();
        if (to == host_space || from == host_space)
          by.copy(target.data, source.data, used_bytes());
        else
          simt::copy_bytes(by.queue(), target.data, source.data, used_bytes());
        if (told) memory->tell_copy({to, from, used_bytes(), begins, by.time()});
        return marked ? by.mark() : by.here();
      } catch (...) {
        // It may be under way: neither buffer is for others before that is over.
        const stream_point unmarked = by.here();
        source.read.add(unmarked);
        target.read.add(unmarked);
        throw;
      }
    }();
    source.read.add(done);
    target.written = done;
    target.read.clear();
    set_valid(to);
  }
};

// ---- accesses ----

device_access::~device_access() {
  if (!block_) return;
  const stream_point until = stream_->here();
  block_->end(how_, space_, &until);
}

void block_users::end_on_device(std::vector<device_access>& all, const stream_point& until) {
  for (device_access& a : all)
    if (const auto block = std::move(a.block_)) block->end(a.how_, a.space_, &until);
  all.clear();
}

void end_on_host(block_state& b, access a) noexcept { b.end(a, host_space, nullptr); }

block_state& datablock::state() const {
  if (!block_)
    throw error(errc::misuse, "a block was asked for what it holds, and there is none; make one");
  return *block_;
}

void* datablock::on_host(access a, const element_type& as) const {
  block_state& b = state();
  const bool bytes = b.shape.layout() == block_template::records::bytes;
  if (bytes ? as.bytes != 1 : !(as == b.shape.element()))
    b.refuse(a, fmt::format("as {}, which its elements are not", as.name));
  stream_waits waits;
  void* const data = block_users::begin_on_host(*this, a, waits, nullptr);
  try {
    waits.wait();
  } catch (...) {
    block_users::end_on_host(*this, a, true);
    throw;
  }
  return data;
}

void* block_users::begin_on_host(const datablock& b, access a, stream_waits& waits,
                                 copy_counts* counts) {
  block_state& state = b.state();
  const auto lock = locked(state.mutex);
  return state.begin(
      a, host_space, counts, {}, [&](const stream_point& p) { waits.to_come.add(p); },
      [&](const stream_point& p) { waits.to_end.add(p); });
}
void block_users::bring_to_host(const datablock& b, const stream_user& by, copy_counts& counts) {
  block_state& state = b.state();
  const auto lock = locked(state.mutex);
  state.bring_to_host(by, counts);
}
void block_users::tell_copies(block_memory& m, std::function<void(const block_copy&)> f) {
  m.state_->tell_copy = std::move(f);
}
void block_users::end_on_host(const datablock& b, access a, bool failed) noexcept {
  b.block_->end(a, host_space, nullptr, failed);
}

device_access datablock::on_device(access a, const stream_user& by, space_number s,
                                   copy_counts* counts, stream_waits* later) const {
  block_state& b = state();
  simt::timeline& t = *by.stream;
  if (s != host_space && s < b.views.size()) {
    const device& d = b.memory->devices[s - 1];
    if (d != t.where() && (d.is_cuda() || t.where().is_cuda()))
      b.refuse(a, fmt::format("in memory of {}, by a stream of {}, which does not reach it",
                              d.name(), t.where().name()));
  }
  void* data = nullptr;
  {
    const auto lock = locked(b.mutex);
    data = b.begin(
        a, s, counts, by,
        [&](const stream_point& p) { later != nullptr ? later->to_come.add(p) : t.wait_for(p); },
        [&](const stream_point& p) {
          later != nullptr ? later->to_end.add(p) : wait_for_end(t, p);
        });
  }
  device_access used(block_, data, t, s, a);
  if (later == nullptr) t.queue();  // whoever has its stream already is to find the bytes there
  return used;
}

block_users::held_view block_users::hold(const datablock& b, space_number s) {
  block_state& state = b.state();
  stream_waits waits;
  void* data = nullptr;
  {
    const auto lock = locked(state.mutex);
    data = state.begin(
        access::read, s, nullptr, {}, [&](const stream_point& p) { waits.to_come.add(p); },
        [&](const stream_point& p) { waits.to_end.add(p); });
  }
  try {
    waits.wait();
  } catch (...) {
    let_go(b, s);
    throw;
  }
  return {data, state.memory->pools[s].where()};
}

void block_users::let_go(const datablock& b, space_number s) noexcept {
  b.block_->end(access::read, s, nullptr);
}

datablock block_users::adopt(block_memory& m, const block_template& shape, space_number s,
                             void* data, void* owner, void (*free)(void*)) {
  datablock b = m.make(shape);
  std::shared_ptr<bool> taken = std::make_shared<bool>(false);
  block_buffer buffer;
  buffer.data = data;
  buffer.bytes = shape.size_bytes();
  buffer.lender = std::shared_ptr<void>(owner, [free, taken](void* p) {
    if (*taken) free(p);
  });
  *taken = true;
  b.state().take_in(s, std::move(buffer));
  return b;
}

void block_users::take_from(block_heap& h, const datablock& b, space_number s, void* data,
                            std::size_t count) {
  block_state& state = b.state();
  std::lock_guard lock(state.mutex);
  state.take_in(s, h, data, count);
}

bool block_users::is_written(const datablock& b) {
  return b.state().valid_in.load(std::memory_order_relaxed) != 0;
}

std::size_t block_users::bytes_of(const datablock& b) {
  const block_state& state = b.state();
  return state.count.load(std::memory_order_relaxed) * state.shape.element().bytes;
}

datablock block_users::make_for_copy(block_memory& m, const datablock& of) {
  datablock b = m.make(of.shape());
  b.set_count(of.count());
  b.state().by_count = of.state().by_count;
  return b;
}

const block_template& datablock::shape() const { return state().shape; }

std::size_t datablock::count() const {
  block_state& b = state();
  const auto lock = locked(b.mutex);
  return b.count;
}

void datablock::set_count(std::size_t n) {
  block_state& b = state();
  const auto lock = locked(b.mutex);
  if (n == b.count) return;
  if (n > b.shape.count())
    throw error(errc::invalid_option,
                fmt::format("{} elements were set for a block of {}; set at most {}", n,
                            b.shape.text(), b.shape.count()));
  if (b.shape.layout() == block_template::records::fixed)
    throw error(errc::invalid_option,
                fmt::format("{} elements were set for a block of {}, which has all of them; make "
                            "the template variable where there may be fewer",
                            n, b.shape.text()));
  if (b.written || b.readers != 0)
    throw error(errc::misuse,
                fmt::format("{} elements were set for a block of {} that is in use; wait "
                            "until that has ended",
                            n, b.shape.text()));
  b.count = n;
}

bool datablock::is_valid_in(space_number s) const {
  return (state().valid_in.load(std::memory_order_relaxed) >> s & 1) != 0;
}

// ---- memory ----

block_memory::block_memory(const std::vector<device>& devices)
    : state_(std::make_shared<memory_state>()) {
  if (devices.empty() || devices.size() > 62)
    throw error(
        errc::invalid_option,
        fmt::format("memory for blocks was asked for on {} devices; name 1 to 62", devices.size()));
  for (const device& d : devices)
    if (std::count(devices.begin(), devices.end(), d) != 1)
      throw error(errc::invalid_option,
                  fmt::format("memory for blocks: {} is named twice; name it once", d.name()));
  state_->devices = devices;
  const auto gpu =
      std::find_if(devices.begin(), devices.end(), [](const device& d) { return d.is_cuda(); });
  state_->pools.emplace_back(gpu == devices.end() ? device() : *gpu, simt::space::pinned);
  for (const device& d : devices) {
    state_->pools.emplace_back(d, simt::space::device);
    state_->to.emplace_back(d);
    state_->from.emplace_back(d);
  }
}

block_memory::~block_memory() {
  for (block_pool& p : state_->pools) p.free_borrowed(true);
}

void block_memory::free_borrowed() noexcept {
  for (block_pool& p : state_->pools) p.free_borrowed(false);
}

datablock block_memory::make(const block_template& shape) {
  return datablock(std::make_shared<block_state>(state_, shape));
}

const std::vector<device>& block_memory::devices() const { return state_->devices; }

space_number block_memory::space_of(const device& d) const {
  const auto& all = state_->devices;
  const auto found = std::find(all.begin(), all.end(), d);
  if (found == all.end())
    throw error(
        errc::invalid_option,
        fmt::format("memory for blocks has nothing on {}; name it where that is made", d.name()));
  return static_cast<space_number>(found - all.begin()) + 1;
}

namespace {

block_pool& pool_of(memory_state& m, space_number s) {
  if (s >= m.pools.size())
    throw error(errc::invalid_option,
                fmt::format("memory {} was asked for, and there are {}", s, m.pools.size()));
  return m.pools[s];
}

}  // namespace

void block_memory::reserve(space_number s, std::size_t bytes, std::size_t buffers) {
  pool_of(*state_, s).reserve(bytes, buffers);
}
void block_memory::unreserve(space_number s, std::size_t bytes, std::size_t buffers) noexcept {
  if (s < state_->pools.size()) state_->pools[s].unreserve(bytes, buffers);
}
std::size_t block_memory::bytes(space_number s) const { return pool_of(*state_, s).bytes(); }
std::size_t block_memory::idle_buffers(space_number s) const { return pool_of(*state_, s).idle(); }
bool block_memory::made(const datablock& b) const { return b.state().memory == state_; }

copy_counts block_memory::counts() const {
  const auto of = [](const auto& n) { return n.load(std::memory_order_relaxed); };
  return {of(state_->copies), of(state_->bytes), of(state_->avoided), of(state_->avoided_bytes)};
}

}  // namespace grosr::flow
