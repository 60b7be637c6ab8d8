#include "flow/remote_connection.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <thread>

#include "flow/port_name.hpp"

namespace grosr::flow {
namespace {

const char* name_of(port_side s) { return s == port_side::source ? "source" : "sink"; }

/// As messages have it; they are from another process.
errc code_of(const port_text& t) {
  const auto code = t.head.slot;
  return code >= static_cast<std::uint32_t>(errc::device_lost) &&
                 code <= static_cast<std::uint32_t>(errc::write_failed)
             ? static_cast<errc>(code)
             : errc::stopped;
}

std::string text_of(const port_text& t) { return {t.text, strnlen(t.text, sizeof t.text)}; }

union port_answer {
  port_message head;
  port_welcome welcome;
  port_text text;
};

}  // namespace

// ---- connecting ----

remote_connection::remote_connection(port_side side, port_place place, const element_type& as,
                                     const std::string& name, const remote_port_options& options)
    : side_(side),
      place_(place),
      name_(name),
      patience_(options.connect_within),
      given_back_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!given_back_) throw std::system_error(errno, std::generic_category(), "eventfd");
  const std::string folder = folder_of_ports(options.folder, options.users);
  const auto until = after(options.connect_within);
  for (;;) {
    socket_ = connect_to_port(folder, name, until);
    if (!socket_)
      throw error(
          errc::timed_out,
          fmt::format(
              "connect to port '{}': after {} ms nobody serves that name in {}; start the "
              "program that does, or look at the name",
              name,
              std::chrono::duration_cast<std::chrono::milliseconds>(options.connect_within).count(),
              folder));
    if (welcome(folder, as, options, until)) return;
    if (port_clock::now() >= until)
      throw error(errc::timed_out,
                  fmt::format("connect to port '{}': process {}, which serves it, ends connections "
                              "before it answers; look what it does",
                              name, server_.process));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// A child of this process may have the socket, too.
remote_connection::~remote_connection() { ::shutdown(socket_.get(), SHUT_RDWR); }

/// False: the server ended before it said anything.
bool remote_connection::welcome(const std::string& folder, const element_type& as,
                                const remote_port_options& options, port_clock::time_point until) {
  server_ = peer_of(socket_.get());
  if (!is_among(options.users, server_.user))
    throw error(errc::misuse,
                fmt::format("connect to port '{}': user {} serves it in {}, who is not trusted; "
                            "name that user in the options",
                            name_, server_.user, folder));
  port_answer a = {};
  port_received got;
  do {
    if (!wait_for_descriptor(socket_.get(), POLLIN, until))
      throw error(errc::timed_out,
                  fmt::format("connect to port '{}': process {}, which serves it, has not answered "
                              "in time; give it longer, or look what it does",
                              name_, server_.process));
    got = receive_message(socket_.get(), &a, sizeof a, true);
  } while (got.bytes < 0);
  if (got.bytes == 0) return false;
  if (got.bytes == sizeof(port_text) && a.head.word == port_word::refused)
    throw error(code_of(a.text), fmt::format("connect to port '{}': process {}, which serves it, "
                                             "refuses: {}",
                                             name_, server_.process, text_of(a.text)));
  if (got.bytes == sizeof(port_text) && a.head.word == port_word::ended) return false;
  if (got.bytes < static_cast<ssize_t>(offsetof(port_welcome, side)) ||
      a.head.word != port_word::welcome || a.welcome.magic != port_magic)
    throw error(errc::bad_input,
                fmt::format("connect to port '{}': process {} serves something else there; choose "
                            "another name",
                            name_, server_.process));
  if (a.welcome.version != port_version || got.bytes != sizeof(port_welcome))
    throw error(errc::bad_input,
                fmt::format("connect to port '{}': process {} speaks version {} of the protocol, "
                            "and this one {}; build both with the same GROSR",
                            name_, server_.process, a.welcome.version, port_version));
  check(a.welcome, as, options);
  const device where = find_device(a.welcome);
  try {
    memory_ = simt::shareable_memory::map(where, got.file.release(),
                                          a.welcome.slots * a.welcome.slot_bytes,
                                          side_ == port_side::source);
  } catch (const error& e) {
    throw error(
        static_cast<errc>(e.code().value()),
        fmt::format("connect to port '{}' of process {}: {}", name_, server_.process, e.what()));
  }
  slot_bytes_ = a.welcome.slot_bytes;
  free_.assign(a.welcome.slots, true);
  return true;
}

void remote_connection::check(const port_welcome& w, const element_type& as,
                              const remote_port_options& o) {
  if (w.side != side_)
    throw error(errc::invalid_option,
                fmt::format("connect to port '{}' as a {}: it is a {} of its graph; make a "
                            "remote_{}",
                            name_, name_of(side_), name_of(w.side), name_of(w.side)));
  const std::string element(w.element_name, strnlen(w.element_name, sizeof w.element_name));
  const block_template theirs = template_of(w, element.c_str());
  const bool fits = theirs.layout() == block_template::records::bytes
                        ? as.bytes == 1 && theirs.element().bytes == 1
                        : as == theirs.element();
  if (!fits || (o.shape && *o.shape != theirs))
    throw error(errc::invalid_option,
                fmt::format("connect to port '{}': its template is {}, and this program has {}; "
                            "make them the same",
                            name_, theirs.text(),
                            o.shape ? o.shape->text() : fmt::format("elements of {}", as.name)));
  if (w.slots == 0 || w.slots > most_port_slots || w.slot_bytes % port_slot_alignment != 0 ||
      w.slot_bytes > PTRDIFF_MAX / most_port_slots || theirs.size_bytes() > w.slot_bytes)
    throw error(errc::bad_input,
                fmt::format("connect to port '{}': process {} says that there are {} slots of {} "
                            "bytes for {}, which cannot be; look what it is",
                            name_, server_.process, w.slots, w.slot_bytes, theirs.text()));
  shape_ = template_of(w, theirs.layout() == block_template::records::bytes ? "byte" : as.name);
}

/// Of this process, the one in whose memory slots lie.
device remote_connection::find_device(const port_welcome& w) const {
  const std::string asked = fmt::format("connect to port '{}'", name_);
  if (w.place != port_place::host && w.place != port_place::device)
    throw error(errc::bad_input,
                fmt::format("{}: process {} says that slots lie in memory {}, which "
                            "cannot be; look what it is",
                            asked, server_.process, static_cast<std::uint32_t>(w.place)));
  const bool here = w.place == port_place::host;
  if (w.place != place_)
    throw error(
        errc::invalid_option,
        fmt::format("{}: its slots lie in memory of {}; make a remote_{}{}", asked,
                    here ? "the host" : "a device", name_of(side_), here ? "" : "_on_device"));
  if (here) return device();
  simt::device_identity is;
  is.kind =
      w.device_kind == static_cast<std::uint32_t>(backend::host) ? backend::host : backend::cuda;
  std::copy(std::begin(w.device_uuid), std::end(w.device_uuid), is.uuid.begin());
  if (const auto found = simt::device_with(is)) return *found;
  const std::string why = is.kind == backend::cuda ? device::cuda_status() : "";
  throw error(errc::no_such_device,
              fmt::format("{}: its slots lie in memory of {}, which this process does not have{}; "
                          "start it where it has that device",
                          asked, is.text(), why.empty() ? "" : " (" + why + ")"));
}

// ---- what threads wait for ----

template <class Ready>
bool remote_connection::wait_until(lock_type& lock, port_clock::time_point until,
                                   const Ready& ready) {
  for (bool looked = false;; looked = true) {
    if (ready()) return true;
    throw_if_over();
    if (looked && port_clock::now() >= until) return false;
    if (reads_) {
      if (until == port_clock::time_point::max())
        moved_.wait(lock);
      else
        moved_.wait_until(lock, until);
      continue;
    }
    reads_ = true;
    lock.unlock();
    std::exception_ptr thrown;
    try {
      wait_for_descriptor(socket_.get(), POLLIN, until, given_back_.get());
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    reads_ = false;
    if (thrown) {
      moved_.notify_all();
      std::rethrow_exception(thrown);
    }
    eventfd_t told;
    eventfd_read(given_back_.get(), &told);
    receive();
    moved_.notify_all();
  }
}

std::optional<remote_connection::taken> remote_connection::take(port_clock::time_point until) {
  lock_type lock(mutex_);
  return side_ == port_side::source ? take_free(lock, until) : take_block(lock, until);
}

std::optional<remote_connection::taken> remote_connection::take_free(lock_type& lock,
                                                                     port_clock::time_point until) {
  auto found = free_.end();
  throw_if_over();
  if (!wait_until(lock, until, [&] {
        found = std::find(free_.begin(), free_.end(), true);
        return found != free_.end();
      }))
    return std::nullopt;
  *found = false;
  return taken{static_cast<unsigned>(found - free_.begin()), shape_->count()};
}

std::optional<remote_connection::taken> remote_connection::take_block(
    lock_type& lock, port_clock::time_point until) {
  if (!wait_until(lock, until, [&] { return !asks_; })) return std::nullopt;
  asks_ = true;
  answered_ = false;
  answer_.reset();
  try {
    send({port_word::want});
    const auto answered = [&] { return answered_; };
    if (!wait_until(lock, until, answered)) {
      // The block may be on its way already: only the server's answer says whether it is.
      send({port_word::cancel});
      if (!wait_until(lock, after(patience_), answered)) {
        over_ = {errc::timed_out,
                 fmt::format("{}: process {}, which serves it, does not answer; look what it does, "
                             "and connect anew",
                             at_port(), server_.process)};
        throw_if_over();
      }
    }
  } catch (...) {
    asks_ = false;
    moved_.notify_all();
    throw;
  }
  asks_ = false;
  moved_.notify_all();
  return std::exchange(answer_, std::nullopt);
}

void remote_connection::receive() {
  port_answer a = {};
  for (;;) {
    const ssize_t bytes = receive_message(socket_.get(), &a, sizeof a).bytes;
    if (bytes < 0 || over_) return;
    if (bytes == 0)
      over_ = {errc::stopped, fmt::format("{}: process {}, which served it, has ended; start it "
                                          "again, and connect anew",
                                          at_port(), server_.process)};
    else if (bytes == sizeof(port_text))
      over_ = {code_of(a.text), fmt::format("{}: {} (says process {}, which serves it)", at_port(),
                                            text_of(a.text), server_.process)};
    else
      take(bytes == sizeof(port_message) ? a.head : port_message{});
  }
}

/// The server is another process: slots that it cannot mean end the connection.
void remote_connection::take(const port_message& m) {
  const bool is_slot = m.slot < free_.size();
  if (m.word == port_word::freed && side_ == port_side::source && is_slot && !free_[m.slot]) {
    free_[m.slot] = true;
  } else if (m.word == port_word::none && asks_ && !answered_) {
    answered_ = true;
  } else if (m.word == port_word::block && asks_ && !answered_ && is_slot && free_[m.slot] &&
             m.count <= shape_->count()) {
    free_[m.slot] = false;
    answered_ = true;
    answer_ = taken{m.slot, m.count};
  } else {
    over_ = {
        errc::bad_input,
        fmt::format("{}: process {} sent message {} with slot {} and {} elements, which does "
                    "not belong there; connect anew",
                    at_port(), server_.process, static_cast<unsigned>(m.word), m.slot, m.count)};
  }
}

// ---- what they send ----

void remote_connection::check_count(std::size_t count) const {
  const bool fixed = shape_->layout() == block_template::records::fixed;
  if (count > shape_->count() || (fixed && count != shape_->count()))
    throw error(errc::invalid_option,
                fmt::format("push into {}: {} elements were given, and its template is {}; give {}",
                            at_port(), count, shape_->text(), fixed ? "all of them" : "fewer"));
}

void remote_connection::push(unsigned slot, std::size_t count) {
  check_count(count);
  lock_type lock(mutex_);
  send({port_word::push, slot, count});
}

void remote_connection::give_back(unsigned slot) noexcept {
  lock_type lock(mutex_);
  free_[slot] = true;
  if (side_ == port_side::source) {
    moved_.notify_all();
    if (reads_) eventfd_write(given_back_.get(), 1);
    return;
  }
  try {
    send({port_word::release, slot});
  } catch (...) {  // the next call says it
  }
}

/// What the server has said before it went is the reason.
void remote_connection::send(const port_message& m) {
  throw_if_over();
  for (;;) {
    const port_sent sent = send_message(socket_.get(), &m, sizeof m);
    if (sent == port_sent::yes) return;
    if (sent == port_sent::gone) {
      receive();
      moved_.notify_all();
      throw_if_over();
    }
    wait_for_descriptor(socket_.get(), POLLOUT, port_clock::time_point::max());
  }
}

void remote_connection::throw_if_over() const {
  if (over_) throw error(over_->code, over_->text);
}

std::string remote_connection::at_port() const { return fmt::format("port '{}'", name_); }

}  // namespace grosr::flow
