#include "flow/port_server.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "flow/host_view.hpp"

namespace grosr::flow {
namespace {

constexpr std::chrono::nanoseconds nap_without_descriptors = std::chrono::milliseconds(100);
/// While copies are under way: how long they are looked at without sleep, and between looks then.
constexpr std::chrono::nanoseconds copy_spin = std::chrono::microseconds(20),
                                   copy_nap = std::chrono::microseconds(50);

}  // namespace

shared_port::server::server(port_side side, channel_end end, const std::string& name,
                            const shared_port_options& o)
    : side_(side), end_(std::move(end)), name_(name), options_(o), thread_(end_) {
  const std::string asked = fmt::format("share port '{}'", name);
  if (o.slots == 0 || o.slots > most_port_slots)
    throw error(errc::invalid_option, fmt::format("{}: {} slots were asked for; ask for 1 to {}",
                                                  asked, o.slots, most_port_slots));
  if (o.clients == 0)
    throw error(errc::invalid_option,
                fmt::format("{}: 0 clients were allowed; allow at least 1", asked));
  end_.check_served(asked);
  if (o.slots_on) {
    space_ = end_.space_of(*o.slots_on, asked);
    simt::shareable_memory::make(*o.slots_on, slot_bytes(), false);  // now rather than for a client
    copies_.emplace(*o.slots_on);
    slots_are_on_ = simt::identity_of(*o.slots_on);
  }
  const bool others = o.users && std::any_of(o.users->begin(), o.users->end(),
                                             [](auto user) { return user != geteuid(); });
  name_held_.emplace(folder_of_ports(o.folder, std::nullopt), name, others);
  if (o.slots_on && side == port_side::sink) end_.keep_from_host();
  thread_.start([this] { work(); });
}

shared_port::server::~server() { thread_.stop(); }

template <class F>
void shared_port::server::count(const F& f) {
  std::lock_guard lock(mutex_);
  f(stats_);
}

shared_port_stats shared_port::server::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

std::string shared_port::server::why_ended() const {
  std::lock_guard lock(mutex_);
  return why_ended_;
}

// ---- the thread ----

void shared_port::server::work() {
  try {
    for (;;) {
      thread_.arm();
      end_.check_running();
      move_blocks();
      forget_who_left();
      sleep();
      if (thread_.stops()) return end(errc::stopped, "the program has ended the port");
    }
  } catch (const error& e) {
    end_for(e);
  } catch (const std::exception& e) {
    end(errc::out_of_memory, e.what());
  }
}

/// Where a copy has failed, the graph knows why.
void shared_port::server::end_for(const error& e) {
  try {
    end_.check_running();
  } catch (const error& graph) {
    return end(static_cast<errc>(graph.code().value()), graph.what());
  }
  end(static_cast<errc>(e.code().value()), e.what());
}

/// Until a client, the channel, a copy or the program has something; then hears all clients.
void shared_port::server::sleep() {
  if (sees_copy_end()) return;
  std::vector<pollfd> all;
  all.push_back({thread_.event(), POLLIN, 0});
  all.push_back({lacks_descriptors_ ? -1 : name_held_->socket(), POLLIN, 0});
  for (const auto& c : clients_) all.push_back({c->gone ? -1 : c->socket.get(), POLLIN, 0});
  const timespec nap{0, (copied_.empty() ? nap_without_descriptors : copy_nap).count()};
  const bool naps = lacks_descriptors_ || !copied_.empty();
  const int ready = ppoll(all.data(), all.size(), naps ? &nap : nullptr, nullptr);
  if (ready < 0 && errno != EINTR)
    throw std::system_error(errno, std::generic_category(), "a shared port: poll");
  lacks_descriptors_ = false;
  if (ready <= 0) return;
  thread_.clear_event();
  for (std::size_t i = 0; i + 2 < all.size(); ++i)
    if (all[i + 2].revents != 0) read_from(*clients_[i]);
  if (all[1].revents != 0) let_in();
}

void shared_port::server::end(errc code, const std::string& why) {
  name_held_.reset();  // who connects anew finds nobody
  for (const auto& c : clients_)
    if (!c->gone) send_text(c->socket.get(), port_word::ended, code, why);
  for (const auto& c : clients_)
    ::shutdown(c->socket.get(), SHUT_RDWR);  // a child may have it, too
  end_copies();
  put_back();
  hand_ = {};
  copied_.clear();
  wants_.clear();
  clients_.clear();
  std::lock_guard lock(mutex_);
  stats_.clients = 0;
  why_ended_ = why;
}

// ---- blocks ----

void shared_port::server::move_blocks() {
  if (side_ == port_side::source)
    take_from_clients();
  else
    give_to_clients();
}

void shared_port::server::take_from_clients() {
  see_to_copied();
  while (hand_.block || take_next()) {
    if (!end_.try_push(hand_.block)) return;
    copied_.push_back(std::exchange(hand_, {}));
    see_to_copied();
  }
}

/// Copies the next block that a client has pushed; false: there is none.
bool shared_port::server::take_next() {
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    client& c = *clients_[(turn_ + i) % clients_.size()];
    if (c.pushes.empty()) continue;
    turn_ = (turn_ + i + 1) % clients_.size();
    const pushed p = c.pushes.front();
    c.pushes.pop_front();
    hand_ = {end_.make(), &c, p.slot, {}};
    hand_.block.set_count(p.count);
    copy_into_block(hand_, p.count);
    count([](auto& s) { ++s.blocks; });
    return true;
  }
  return false;
}

void shared_port::server::copy_into_block(in_hand& b, std::size_t elements) {
  const std::size_t bytes = elements * end_.shape().element().bytes;
  if (!copies_) {
    const host_view to(b.block, access::write);
    return read_shared(b.of->memory, b.slot * slot_bytes(), to.data(), bytes);
  }
  {
    const device_access to = b.block.write(*copies_, space_);
    if (bytes != 0) simt::copy_bytes(copies_->queue(), to.data(), at(b), bytes);
  }
  b.copied = copies_->mark();
}

void shared_port::server::copy_into_slot(in_hand& b) {
  const std::size_t bytes = b.block.count() * end_.shape().element().bytes;
  if (bytes == 0) return;
  if (!copies_) {
    const host_view from(b.block, access::read);
    std::memcpy(at(b), from.data(), bytes);
    return;
  }
  {
    const device_access from = b.block.read(*copies_, space_);
    simt::copy_bytes(copies_->queue(), at(b), from.data(), bytes);
  }
  b.copied = copies_->mark();
}

void shared_port::server::give_to_clients() {
  see_to_copied();
  for (std::size_t i = 0; i < wants_.size();) {
    client& c = *wants_[i];
    const auto slot = std::find(c.has.begin(), c.has.end(), false);
    if (slot == c.has.end()) {  // it waits until it releases one
      ++i;
      continue;
    }
    put_back_untaken();
    hand_.block = end_.try_pull();
    if (!hand_.block) return;
    hand_.of = &c;
    hand_.slot = static_cast<unsigned>(slot - c.has.begin());
    copy_into_slot(hand_);
    *slot = true;
    wants_.erase(wants_.begin() + static_cast<std::ptrdiff_t>(i));
    copied_.push_back(std::exchange(hand_, {}));
    see_to_copied();
  }
}

/// Says what follows from copies that have happened.
void shared_port::server::see_to_copied() {
  while (!copied_.empty() && copied_.front().copied.has_happened()) {
    in_hand b = std::move(copied_.front());
    copied_.pop_front();
    if (side_ == port_side::source)
      free_slot(b);
    else
      hand_over(std::move(b));
  }
  if (copied_.empty()) put_back_untaken();
}

void shared_port::server::free_slot(const in_hand& b) {
  if (b.of == nullptr) return;
  b.of->has[b.slot] = true;
  const port_message freed{port_word::freed, b.slot};
  if (!b.of->gone && send_message(b.of->socket.get(), &freed, sizeof freed) == port_sent::full)
    expel(*b.of, "it does not read what is sent to it");
}

/// A block that its client does not take is for the next one, before those that came after it.
void shared_port::server::hand_over(in_hand b) {
  client& c = *b.of;
  if (!c.gone) {
    const port_message m{port_word::block, b.slot, b.block.count()};
    count([](auto& s) { ++s.blocks; });  // before the client can say that it has come
    const port_sent sent = send_message(c.socket.get(), &m, sizeof m);
    c.wants = false;
    if (sent == port_sent::yes) return;
    count([](auto& s) { --s.blocks; });
    if (sent == port_sent::gone)
      leave(c);
    else
      expel(c, "it does not read what is sent to it");
  }
  untaken_.push_back(std::move(b.block));
}

void shared_port::server::put_back_untaken() {
  for (; !untaken_.empty(); untaken_.pop_back()) end_.put_back(std::move(untaken_.back()));
}

/// Whether one of them ends, if that is soon.
bool shared_port::server::sees_copy_end() {
  if (copied_.empty()) return false;
  for (const auto until = port_clock::now() + copy_spin; port_clock::now() < until;) {
    if (copied_.front().copied.has_happened()) return true;
    std::this_thread::yield();
  }
  return false;
}

/// Nobody has memory that a copy still uses.
void shared_port::server::end_copies() noexcept {
  if (copies_) try {
      copies_->here().wait();
    } catch (...) {  // its stream has failed, and uses nothing any more
    }
}

bool shared_port::server::is_being_copied(const client& c) const {
  return hand_.of == &c ||
         std::any_of(copied_.begin(), copied_.end(), [&](const in_hand& b) { return b.of == &c; });
}

/// At the end: blocks of a sink that nobody was given.
void shared_port::server::put_back() {
  if (side_ != port_side::sink) return;
  if (hand_.block) end_.put_back(std::move(hand_.block));
  for (; !copied_.empty(); copied_.pop_back()) end_.put_back(std::move(copied_.back().block));
  put_back_untaken();
}

std::size_t shared_port::server::slot_bytes() const {
  return (end_.shape().size_bytes() + port_slot_alignment - 1) / port_slot_alignment *
         port_slot_alignment;
}

// ---- clients ----

void shared_port::server::let_in() {
  // Those who come without end do not keep the others waiting.
  for (int i = 0; i < 8; ++i) {
    owned_descriptor s(accept4(name_held_->socket(), nullptr, nullptr, SOCK_CLOEXEC));
    if (s) {
      let_in(std::move(s));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    lacks_descriptors_ = errno != EAGAIN;
    return;
  }
}

void shared_port::server::let_in(owned_descriptor socket) {
  const port_peer peer = peer_of(socket.get());
  const auto refuse = [&](errc code, const std::string& why) {
    count([](auto& s) { ++s.refused; });
    send_text(socket.get(), port_word::refused, code, why);
  };
  if (!is_among(options_.users, peer.user))
    return refuse(errc::misuse, fmt::format("user {} may not connect; name that user where the "
                                            "port is shared",
                                            peer.user));
  if (clients_.size() >= options_.clients) {  // some may have gone meanwhile
    for (const auto& c : clients_)
      if (!c->gone) read_from(*c);
    forget_who_left();
  }
  if (clients_.size() >= options_.clients)
    return refuse(errc::misuse, fmt::format("{} clients are connected, and it serves no more at a "
                                            "time; end one, or allow more",
                                            clients_.size()));
  simt::shareable_memory memory;
  try {
    memory =
        simt::shareable_memory::make(options_.slots_on.value_or(device()),
                                     options_.slots * slot_bytes(), side_ == port_side::source);
  } catch (const std::system_error& e) {
    return refuse(errc::out_of_memory,
                  fmt::format("it has no memory for {} slots of {} ({}); end other programs, or "
                              "share fewer slots",
                              options_.slots, simt::in_units(slot_bytes()), e.what()));
  }
  const port_welcome w = make_welcome();
  if (send_message(socket.get(), &w, sizeof w, memory.file()) != port_sent::yes) return;
  clients_.push_back(std::make_unique<client>(std::move(socket), std::move(memory), options_.slots,
                                              side_ == port_side::source));
  count([](auto& s) {
    ++s.connects;
    ++s.clients;
  });
}

port_welcome shared_port::server::make_welcome() const {
  const block_template& t = end_.shape();
  port_welcome w = {};
  w.head.word = port_word::welcome;
  w.magic = port_magic;
  w.version = port_version;
  w.side = side_;
  if (options_.slots_on) {
    w.place = port_place::device;
    w.device_kind = static_cast<std::uint32_t>(slots_are_on_.kind);
    std::copy(slots_are_on_.uuid.begin(), slots_are_on_.uuid.end(), w.device_uuid);
  }
  w.slots = options_.slots;
  w.slot_bytes = slot_bytes();
  for (std::size_t i = 0; i < 3; ++i) w.extents[i] = t.extents()[i];
  w.element_bytes = t.element().bytes;
  w.element_kind = static_cast<std::uint32_t>(t.element().is);
  w.layout = static_cast<std::uint32_t>(t.layout());
  std::string(t.element().name).copy(w.element_name, sizeof w.element_name - 1);
  return w;
}

void shared_port::server::read_from(client& c) {
  // One that sends without end does not keep the others waiting.
  for (unsigned n = 0; n < 2 * options_.slots + 2 && !c.gone; ++n) {
    port_message m;
    const ssize_t bytes = receive_message(c.socket.get(), &m, sizeof m).bytes;
    if (bytes < 0) return;
    if (bytes == 0)
      leave(c);
    else if (bytes != sizeof m)
      expel(c, fmt::format("it sent a message of {} bytes", bytes));
    else
      handle(c, m);
  }
}

void shared_port::server::handle(client& c, const port_message& m) {
  const bool is_slot = m.slot < c.has.size();
  const std::size_t most = end_.shape().count();
  const bool is_count =
      end_.shape().layout() == block_template::records::fixed ? m.count == most : m.count <= most;
  if (side_ == port_side::source) {
    if (m.word == port_word::push && is_slot && c.has[m.slot] && is_count) {
      c.has[m.slot] = false;
      c.pushes.push_back({m.slot, m.count});
      return;
    }
  } else if (m.word == port_word::want && !c.wants) {
    c.wants = true;
    wants_.push_back(&c);
    return give_to_clients();  // before it can be cancelled
  } else if (m.word == port_word::cancel) {
    return cancel(c);
  } else if (m.word == port_word::release && is_slot && c.has[m.slot]) {
    c.has[m.slot] = false;
    return;
  }
  expel(c, fmt::format("it sent message {} with slot {} and {} elements, which does not belong "
                       "there",
                       static_cast<unsigned>(m.word), m.slot, m.count));
}

void shared_port::server::cancel(client& c) {
  if (std::erase(wants_, &c) == 0) return;  // it has been answered, or its block is being copied
  c.wants = false;
  const port_message none{port_word::none};
  if (send_message(c.socket.get(), &none, sizeof none) == port_sent::full)
    expel(c, "it does not read what is sent to it");
}

/// What it has pushed goes into the channel still.
void shared_port::server::leave(client& c) {
  c.gone = true;
  c.wants = false;
  std::erase(wants_, &c);
}

void shared_port::server::expel(client& c, const std::string& why) {
  if (!c.gone) send_text(c.socket.get(), port_word::ended, errc::bad_input, why);
  leave(c);
  c.pushes.clear();
  // Of a source: the block is in hand until the channel has room, and needs the slot no more.
  if (hand_.of == &c && hand_.copied.has_happened()) hand_.of = nullptr;
  count([](auto& s) { ++s.expelled; });
}

void shared_port::server::forget_who_left() {
  const auto left = [&](const auto& c) {
    return c->gone && c->pushes.empty() && !is_being_copied(*c);
  };
  const std::size_t before = clients_.size();
  for (std::size_t i = 0, turn = turn_; i < before; ++i) {
    if (!left(clients_[i])) continue;
    ::shutdown(clients_[i]->socket.get(), SHUT_RDWR);
    if (i < turn) --turn_;
  }
  std::erase_if(clients_, left);
  if (clients_.size() == before) return;
  count([&](auto& s) { s.clients = static_cast<unsigned>(clients_.size()); });
}

}  // namespace grosr::flow
