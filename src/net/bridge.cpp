#include "net/bridge.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>

#include "grosr/net/detail/rank_state.hpp"
#include "grosr/net/transport.hpp"
#include "grosr/simt/error.hpp"

namespace grosr::net {

using simt::space;

std::uint32_t job::process_of(std::uint32_t rank) const {
  return static_cast<std::uint32_t>(std::upper_bound(first.begin(), first.end(), rank) -
                                    first.begin()) -
         1;
}

/// In packets, before what it says.
struct bridge::record {
  enum kind : std::uint32_t { words, freed, failed };
  std::uint16_t from, to;  ///< ranks, of the link
  std::uint16_t by, what;
  std::uint32_t count;  ///< chunks that follow, or bytes of text
  std::uint32_t reserved;
  std::uint64_t chunk;  ///< the first of them; freed: the first that is not free
  std::uint64_t padding;
};
/// In packets, words of the next chunk with which the last message of a chunk goes on come with it:
/// who reads that message waits for nothing.
static constexpr std::uint32_t packet_words = chunk_words + most_words - 1;
static constexpr std::size_t chunk_bytes = packet_words * sizeof(simt::bus_word);

/// How many words there are of a chunk and of its last message, where the chunk is in a packet.
static std::uint32_t words_with(const simt::bus_word* chunk) {
  for (std::uint32_t i = chunk_words - 1; i > chunk_words - most_words; --i) {
    const std::uint32_t w3 = chunk[i].w[3];
    if ((w3 & first_bit) != 0) return std::max(chunk_words, i + header_word::words_of(w3));
  }
  return chunk_words;
}

bridge::bridge(const job& all, const std::vector<device>& devices, std::uint32_t link_words,
               connection& to)
    : all_(all),
      link_words_(link_words),
      chunks_(link_words / chunk_words),
      shift_(static_cast<std::uint32_t>(std::bit_width(link_words)) - 1),
      places_(std::bit_ceil((all.ranks() - all.ranks_here()) * chunks_)),
      to_(to),
      pairs_(all.processes()),
      turn_(all.processes()) {
  static_assert(sizeof(record) % sizeof(simt::bus_word) == 0);
  const std::size_t links = std::size_t{all.ranks() - all.ranks_here()} * link_classes;
  for (const device& d : devices)
    ends_.push_back({d,
                     {d, space::pinned, links * link_words},
                     {d, space::pinned, links * link_words},
                     {d, space::pinned, links * chunks_},
                     {d, space::pinned, links * chunks_},
                     {d, space::pinned, std::size_t{link_classes} * places_},
                     {d, space::pinned, std::size_t{link_classes} * places_},
                     {d, space::pinned, link_classes}});
  for (std::uint32_t other = 0; other < all.ranks(); ++other) {
    if (all.is_here(other)) continue;
    for (std::uint32_t i = 0; i < all.ranks_here(); ++i)
      for (std::uint32_t by = 0; by < link_classes; ++by) {
        const std::uint32_t mine = all.first_here() + i;
        pairs_[all.process_of(other)].push_back(
            {mine, other, by, words_out(mine, other, by), words_in(mine, other, by),
             freed_out(mine, other, by), freed_in(mine, other, by)});
      }
  }
}

bridge::~bridge() {
  stop_.store(true);
  if (thread_.joinable()) thread_.join();
}

// ---- where links lie ----

std::size_t bridge::index(std::uint32_t other, std::uint32_t by) const {
  const std::uint32_t away = all_.ranks() - all_.ranks_here();
  return std::size_t{by} * away + (other < all_.first_here() ? other : other - all_.ranks_here());
}
simt::bus_word* bridge::words_out(std::uint32_t mine, std::uint32_t other, std::uint32_t by) const {
  return ends_[mine - all_.first_here()].out.data() + index(other, by) * link_words_;
}
simt::bus_word* bridge::words_in(std::uint32_t mine, std::uint32_t other, std::uint32_t by) const {
  return ends_[mine - all_.first_here()].in.data() + index(other, by) * link_words_;
}
std::uint64_t* bridge::freed_out(std::uint32_t mine, std::uint32_t other, std::uint32_t by) const {
  return ends_[mine - all_.first_here()].freed_out.data() + index(other, by) * chunks_;
}
std::uint64_t* bridge::freed_in(std::uint32_t mine, std::uint32_t other, std::uint32_t by) const {
  return ends_[mine - all_.first_here()].freed_in.data() + index(other, by) * chunks_;
}
void bridge::lead_to(std::uint32_t mine, std::uint32_t by, arrivals& to) const {
  const end& e = ends_[mine - all_.first_here()];
  to.far = e.arrived.data() + std::size_t{by} * places_;
  to.far_taken = e.taken.data() + std::size_t{by} * places_;
  to.far_count = e.arrived_count.data() + by;
  to.far_shift = static_cast<std::uint32_t>(std::bit_width(places_)) - 1;
}

std::uint64_t bridge::words_back(std::uint32_t mine) const {
  const simt::buffer<std::uint64_t>& freed = ends_[mine - all_.first_here()].freed_out;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < freed.size(); ++i)
    sum += chunks_freed(
        simt::atomic_ref<std::uint64_t, simt::scope::system>(freed[i]).load(simt::acquire),
        i % chunks_, chunks_);
  return sum * chunk_words;
}
std::size_t bridge::bytes() const {
  std::size_t sum = 0;
  for (const end& e : ends_)
    sum += e.out.bytes() + e.in.bytes() + e.freed_out.bytes() + e.freed_in.bytes() +
           e.arrived.bytes() + e.taken.bytes() + e.arrived_count.bytes();
  return sum;
}

// ---- the thread ----

void bridge::start(std::vector<std::uint32_t*> doorbells) {
  doorbells_ = std::move(doorbells);
  thread_ = std::thread([this] { work(); });
  pthread_setname_np(thread_.native_handle(), "grosr-net");
}

void bridge::tell(const std::string& why) {
  const std::lock_guard hold(why_lock_);
  if (why_.empty()) why_ = why;
}

void bridge::work() {
  try {
    nap pause;
    while (!stop_.load()) {
      bool moved = take_in();
      for (std::uint32_t p = 0; p < all_.processes(); ++p) moved = send_to(p) || moved;
      say_why();
      if (moved)
        pause.reset();
      else
        pause.take();
    }
    say_why();
  } catch (const std::exception& e) {
    to_.give_up(e.what());
  }
}

bool bridge::take_in() {
  bool some = false;
  for (unsigned n = 0; n < 16; ++n) {
    const connection::packet p = to_.receive();
    if (p.bytes.empty()) break;
    some = true;
    if (!take(p.from, p.bytes))
      throw error(errc::stopped,
                  fmt::format("world: process {} got from process {} what is no packet of a world; "
                              "see that both run the same program",
                              all_.process, p.from));
  }
  return some;
}

/// False: the packet says what cannot be.
bool bridge::take(std::uint32_t from, std::span<const std::byte> packet) {
  std::vector<bool> rung(all_.ranks_here());
  while (!packet.empty()) {
    record r;
    if (packet.size() < sizeof r) return false;
    std::memcpy(&r, packet.data(), sizeof r);
    packet = packet.subspan(sizeof r);
    if (r.what == record::failed) {
      if (packet.size() < r.count) return false;
      throw error(
          errc::stopped,
          fmt::format("world: process {} cannot go on: {}", from,
                      std::string_view(reinterpret_cast<const char*>(packet.data()), r.count)));
    }
    pair* const p = r.what == record::freed ? find(r.from, r.to, r.by) : find(r.to, r.from, r.by);
    if (p == nullptr || all_.process_of(p->other) != from) return false;
    if (r.what == record::freed) {
      if (r.chunk < p->back || r.chunk > p->sent) return false;
      for (; p->back < r.chunk; ++p->back)
        simt::atomic_ref<std::uint64_t, simt::scope::system>(p->freed_out[p->back & (chunks_ - 1)])
            .store(freed_chunk(p->back), simt::release);
      continue;
    }
    if (r.what != record::words || r.chunk != p->came || r.count > chunks_ ||
        p->came + r.count - p->returned > chunks_ || packet.size() < r.count * chunk_bytes)
      return false;
    for (; p->came < r.chunk + r.count; ++p->came) {
      simt::bus_word chunk[packet_words];
      std::memcpy(static_cast<void*>(chunk), packet.data(), chunk_bytes);
      packet = packet.subspan(chunk_bytes);
      const std::uint32_t n = words_with(chunk);
      // There is room for the words of the next chunk: the sender had it.
      if (n > chunk_words && p->came + 1 - p->returned >= chunks_) return false;
      for (std::uint32_t i = 0; i < n; ++i)
        simt::bus_store_from_host(p->in + ((p->came * chunk_words + i) & (link_words_ - 1)),
                                  chunk[i]);
      announce(*p, p->came);
    }
    rung[p->mine - all_.first_here()] = true;
  }
  for (std::uint32_t i = 0; i < rung.size(); ++i)
    if (rung[i]) ring(i);
  return true;
}

/// All words of a chunk are there. Who takes what was in the place before has claimed it, and is
/// about to.
void bridge::announce(const pair& p, std::uint64_t chunk) {
  const end& e = ends_[p.mine - all_.first_here()];
  const auto word = [](std::uint64_t& w) {
    return simt::atomic_ref<std::uint64_t, simt::scope::system>(w);
  };
  std::uint64_t& count = e.arrived_count[p.by];
  const std::uint64_t ticket = word(count).load(simt::relaxed);
  const std::size_t at = std::size_t{p.by} * places_ + (ticket & (places_ - 1));
  const std::uint64_t before = ticket < places_ ? 0 : ticket - places_ + 1;
  for (nap pause; word(e.taken[at]).load(simt::acquire) != before && !stop_.load();) pause.take();
  const auto shift = static_cast<std::uint32_t>(std::bit_width(places_)) - 1;
  word(e.arrived[at])
      .store(arrival::lap(ticket, shift) | arrival{chunk, p.other}.word(), simt::release);
  word(count).store(ticket + 1, simt::release);
}

bridge::pair* bridge::find(std::uint32_t mine, std::uint32_t other, std::uint32_t by) {
  if (!all_.is_here(mine) || other >= all_.ranks() || all_.is_here(other) || by >= link_classes)
    return nullptr;
  const std::uint32_t process = all_.process_of(other);
  return &pairs_[process][(std::size_t{other - all_.first[process]} * all_.ranks_here() +
                           (mine - all_.first_here())) *
                              link_classes +
                          by];
}

void bridge::ring(std::uint32_t i) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!ends_[i].where.is_cuda())
    return simt::atomic_ref<std::uint32_t, simt::scope::system>(*doorbells_[i])
        .store(1, simt::release);
  constexpr std::uint32_t rung = 1;
  simt::copy_bytes(ends_[i].where, doorbells_[i], &rung, sizeof rung);
}

bool bridge::send_to(std::uint32_t process) {
  if (process == all_.process) return false;
  // Asked for only where there is something to send.
  const std::vector<pair>& all = pairs_[process];
  const bool some = std::any_of(all.begin(), all.end(), [&](const pair& p) {
    if (p.returned != p.came &&
        simt::atomic_ref<std::uint64_t, simt::scope::system>(p.freed_in[p.returned & (chunks_ - 1)])
                .load(simt::relaxed) == freed_chunk(p.returned))
      return true;
    return next_chunk(p, nullptr);
  });
  if (!some) return false;
  std::byte* const packet = to_.to_fill(process);
  if (packet == nullptr) return false;
  const std::size_t bytes = fill(process, packet);
  if (bytes != 0) to_.send(process, bytes);
  return bytes != 0;
}

/// What was given back first: it is little, and lets others go on.
std::size_t bridge::fill(std::uint32_t process, std::byte* packet) {
  std::vector<pair>& all = pairs_[process];
  std::size_t n = 0;
  const auto room = [&](std::size_t bytes) { return n + bytes <= connection::most_packet; };
  const auto put = [&](const record& r) {
    std::memcpy(packet + n, &r, sizeof r);
    n += sizeof r;
  };
  const auto numbers = [](std::uint32_t rank) { return static_cast<std::uint16_t>(rank); };
  for (pair& p : all) {
    const std::uint64_t before = p.returned;
    if (!room(sizeof(record))) break;
    while (p.returned < p.came && simt::atomic_ref<std::uint64_t, simt::scope::system>(
                                      p.freed_in[p.returned & (chunks_ - 1)])
                                          .load(simt::acquire) == freed_chunk(p.returned))
      ++p.returned;
    if (p.returned != before)
      put({numbers(p.other), numbers(p.mine), numbers(p.by), record::freed, 0, 0, p.returned, 0});
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    pair& p = all[(turn_[process] + i) % all.size()];
    if (!room(sizeof(record) + chunk_bytes)) {
      turn_[process] = static_cast<std::uint32_t>((turn_[process] + i) % all.size());
      break;
    }
    const std::size_t at = n;
    record r{numbers(p.mine), numbers(p.other), numbers(p.by), record::words, 0, 0, p.sent, 0};
    n += sizeof r;
    while (room(chunk_bytes) && next_chunk(p, reinterpret_cast<simt::bus_word*>(packet + n))) {
      n += chunk_bytes;
      ++p.sent;
      ++r.count;
    }
    if (r.count == 0)
      n = at;
    else
      std::memcpy(packet + at, &r, sizeof r);
  }
  return n;
}

/// The next chunk of a link, if all of its words have come, and the rest of its last message; null:
/// whether the last word of the chunk has.
bool bridge::next_chunk(const pair& p, simt::bus_word* to) const {
  if (p.sent - p.back >= chunks_) return false;
  const std::uint64_t begin = p.sent * chunk_words;
  const auto load = [&](std::uint32_t i, simt::bus_word& w) {
    w = simt::bus_load_from_host(p.out + ((begin + i) & (link_words_ - 1)));
    return ((w.w[3] ^ lap_of(begin + i, shift_)) & lap_bit) == 0;
  };
  simt::bus_word all[packet_words] = {};
  if (!load(chunk_words - 1, all[chunk_words - 1])) return false;
  if (to == nullptr) return true;
  for (std::uint32_t i = 0; i < chunk_words; ++i)
    if (!load(i, all[i])) return false;
  const std::uint32_t n = words_with(all);
  for (std::uint32_t i = chunk_words; i < n; ++i)
    if (!load(i, all[i])) return false;
  std::memcpy(static_cast<void*>(to), all, chunk_bytes);
  return true;
}

/// Sends what tell() was told, and ends.
void bridge::say_why() {
  std::string why;
  {
    const std::lock_guard hold(why_lock_);
    why = why_.substr(0, 1000);
  }
  if (why.empty()) return;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  const auto each = [&](auto&& what) {
    for (std::uint32_t p = 0; p < all_.processes(); ++p) {
      nap pause;
      std::byte* packet = nullptr;
      if (p == all_.process) continue;
      while ((packet = to_.to_fill(p)) == nullptr && std::chrono::steady_clock::now() < until)
        pause.take();
      if (packet != nullptr) what(p, packet);
    }
  };
  each([&](std::uint32_t p, std::byte* packet) {
    const record r{0, 0, 0, record::failed, static_cast<std::uint32_t>(why.size()), 0, 0, 0};
    std::memcpy(packet, &r, sizeof r);
    std::memcpy(packet + sizeof r, why.data(), why.size());
    to_.send(p, sizeof r + why.size());
  });
  each([](std::uint32_t, std::byte*) {});  // until they are sent
  throw error(errc::stopped, why);
}

}  // namespace grosr::net
