#include "grosr/flow/remote_port.hpp"

#include <cstring>
#include <utility>

#include "flow/remote_connection.hpp"

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

remote_port::remote_port(side s, const element_type& as, const std::string& name,
                         const remote_port_options& options) try
    : side_(s),
      to_(std::make_shared<remote_connection>(
          s == side::source ? port_side::source : port_side::sink, as, name, options)) {
} catch (...) {
  rethrow_as_error("connect to port '" + name + "'");
}

const block_template& remote_port::shape() const { return to_->shape(); }
const std::string& remote_port::name() const { return to_->name(); }

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

}  // namespace grosr::flow
