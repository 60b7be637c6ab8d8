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

constexpr int nap_without_descriptors = 100;  // ms

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
  const bool others = o.users && std::any_of(o.users->begin(), o.users->end(),
                                             [](auto user) { return user != geteuid(); });
  name_held_.emplace(folder_of_ports(o.folder, std::nullopt), name, others);
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
    end(static_cast<errc>(e.code().value()), e.what());
  } catch (const std::exception& e) {
    end(errc::out_of_memory, e.what());
  }
}

/// Until a client, the channel or the program has something; then hears all clients.
void shared_port::server::sleep() {
  std::vector<pollfd> all;
  all.push_back({thread_.event(), POLLIN, 0});
  all.push_back({lacks_descriptors_ ? -1 : name_held_->socket(), POLLIN, 0});
  for (const auto& c : clients_) all.push_back({c->gone ? -1 : c->socket.get(), POLLIN, 0});
  const int ready = poll(all.data(), all.size(), lacks_descriptors_ ? nap_without_descriptors : -1);
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
  put_back();
  hand_ = {};
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
  while (hand_.block || take_next()) {
    if (!end_.try_push(hand_.block)) return;
    const in_hand done = std::exchange(hand_, {});
    if (done.of == nullptr) continue;
    done.of->has[done.slot] = true;
    const port_message freed{port_word::freed, done.slot};
    if (!done.of->gone &&
        send_message(done.of->socket.get(), &freed, sizeof freed) == port_sent::full)
      expel(*done.of, "it does not read what is sent to it");
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
    datablock b = end_.make();
    b.set_count(p.count);
    {
      const host_view to(b, access::write);
      c.memory.read(to.data(), p.slot * slot_bytes(), p.count * end_.shape().element().bytes);
    }
    hand_ = {std::move(b), &c, p.slot};
    count([](auto& s) { ++s.blocks; });
    return true;
  }
  return false;
}

void shared_port::server::give_to_clients() {
  for (std::size_t i = 0; i < wants_.size();) {
    client& c = *wants_[i];
    const auto slot = std::find(c.has.begin(), c.has.end(), false);
    if (slot == c.has.end()) {  // it waits until it releases one
      ++i;
      continue;
    }
    if (!hand_.block) hand_.block = end_.try_pull();
    if (!hand_.block) return;
    const auto number = static_cast<unsigned>(slot - c.has.begin());
    const std::size_t elements = hand_.block.count();
    if (elements != 0) {
      const host_view from(hand_.block, access::read);
      std::memcpy(c.memory.data() + number * slot_bytes(), from.data(),
                  elements * end_.shape().element().bytes);
    }
    const port_message m{port_word::block, number, elements};
    count([](auto& s) { ++s.blocks; });  // before the client can say that it has come
    const port_sent sent = send_message(c.socket.get(), &m, sizeof m);
    if (sent != port_sent::yes) count([](auto& s) { --s.blocks; });
    if (sent == port_sent::yes) {
      *slot = true;
      c.wants = false;
      wants_.erase(wants_.begin() + static_cast<std::ptrdiff_t>(i));
      hand_ = {};
    } else if (sent == port_sent::gone) {  // the block is for the next one
      leave(c);
    } else {
      expel(c, "it does not read what is sent to it");
    }
  }
  if (wants_.empty()) put_back();
}

/// A block for which nobody is left who wants it.
void shared_port::server::put_back() {
  if (side_ == port_side::sink && hand_.block) end_.put_back(std::exchange(hand_, {}).block);
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
  port_memory memory;
  try {
    memory = port_memory(options_.slots * slot_bytes(), side_ == port_side::source);
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
  if (!c.wants) return;  // it has been answered
  c.wants = false;
  std::erase(wants_, &c);
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
  if (hand_.of == &c) hand_.of = nullptr;
  count([](auto& s) { ++s.expelled; });
}

void shared_port::server::forget_who_left() {
  const auto left = [&](const auto& c) {
    return c->gone && c->pushes.empty() && hand_.of != c.get();
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
