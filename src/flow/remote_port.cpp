#include "grosr/flow/remote_port.hpp"

#include <cstring>
#include <utility>

#include "flow/remote_connection.hpp"
#include "grosr/simt/stream_order.hpp"
#include "grosr/simt/timeline.hpp"

namespace grosr::flow {

remote_slot& remote_slot::operator=(remote_slot&& o) noexcept {
  std::swap(of_, o.of_);
  std::swap(number_, o.number_);
  std::swap(data_, o.data_);
  std::swap(count_, o.count_);
  return *this;
}

remote_slot::~remote_slot() {
  if (of_) of_->give_back(number_);
}

void remote_slot::push(std::size_t count) {
  if (!of_)
    throw error(errc::misuse, "push a remote block: it is empty, or was pushed; take another one");
  of_->push(number_, count);
  of_.reset();
  data_ = nullptr;
  count_ = 0;
}

void remote_slot::push_after(const simt::moment& when, std::size_t count) {
  if (of_) {
    of_->check_count(count);
    simt::wait_for(of_->where(), when);
  }
  push(count);
}

void remote_slot::release_after(const simt::moment& when) {
  if (!of_)
    throw error(errc::misuse, "release a remote block: it is empty, or was released; pull another");
  simt::wait_for(of_->where(), when);
  const remote_slot gone = std::move(*this);
}

remote_port::remote_port(side s, place p, const element_type& as, const std::string& name,
                         const remote_port_options& options) try
    : side_(s),
      to_(std::make_shared<remote_connection>(
          s == side::source ? port_side::source : port_side::sink,
          p == place::host ? port_place::host : port_place::device, as, name, options)) {
} catch (...) {
  rethrow_as_error("connect to port '" + name + "'");
}

const block_template& remote_port::shape() const { return to_->shape(); }
const std::string& remote_port::name() const { return to_->name(); }
const device& remote_port::device_of_slots() const { return to_->where(); }

void remote_port::take(remote_slot& to, limit l) const {
  const auto got = to_->take(after(l));
  if (!got) return;
  to.of_ = to_;
  to.number_ = got->slot;
  to.data_ = to_->at(got->slot);
  to.count_ = got->count;
}

bool remote_port::push_bytes(const void* elements, std::size_t count, limit l) const {
  to_->check_count(count);
  remote_slot slot;
  take(slot, l);
  if (!slot) return false;
  if (count != 0) std::memcpy(slot.data_, elements, count * to_->shape().element().bytes);
  slot.push(count);
  return true;
}

bool remote_port::push_from_device(simt::stream& s, const void* elements, std::size_t count,
                                   limit l) const {
  to_->check_count(count);
  remote_slot slot;
  take(slot, l);
  if (!slot) return false;
  simt::copy_bytes(s, slot.data_, elements, count * to_->shape().element().bytes);
  slot.push_after(s, count);
  return true;
}

}  // namespace grosr::flow
