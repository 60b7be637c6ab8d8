// Memory of batch buffers.
#include "grosr/queue/batch_buffer.hpp"

#include <algorithm>
#include <bit>
#include <vector>

namespace grosr::queue {
namespace {

constexpr std::uint32_t least_group = 32, most_group = 1u << 14, groups = 16;
constexpr std::uint32_t least_capacity = 2 * least_group, most_capacity = 1u << 25;
constexpr std::uint32_t max_batch = 1024;
constexpr std::uint32_t laps =
    4;  // cells by place: docs/internals/channels.md, "Why nobody waits for long"

std::string called(const channel_options& o) {
  return o.name.empty() ? "channel" : "channel '" + o.name + "'";
}

void check(const channel_options& o) {
  if (!std::has_single_bit(o.capacity) || o.capacity < least_capacity || o.capacity > most_capacity)
    throw error(errc::invalid_option,
                called(o) + ": a capacity of " + std::to_string(o.capacity) +
                    " was asked for; it must be a power of two from " +
                    std::to_string(least_capacity) +
                    ", so that a warp can always reserve a place for each lane, to " +
                    std::to_string(most_capacity));
  if (o.batch != 0 && (!std::has_single_bit(o.batch) || o.batch > std::min(max_batch, o.capacity)))
    throw error(errc::invalid_option,
                called(o) + ": a batch of " + std::to_string(o.batch) +
                    " was asked for; it must be a power of two from 1 to " +
                    std::to_string(std::min(max_batch, o.capacity)) +
                    ", and one of its function's takes no more than that says: 32, or its `batch`");
  if (o.patience_us > 1'000'000)
    throw error(errc::invalid_option, called(o) + ": a patience of " +
                                          std::to_string(o.patience_us) +
                                          " us was asked for; it must be at most a second");
}

/// Few, for the baton that goes from one to the next takes its time; and small beside the capacity,
/// for one of them is not all there at any time.
std::uint32_t group_of(std::uint32_t capacity) {
  return std::clamp(capacity / groups, least_group, most_group);
}

}  // namespace

batch_buffer::batch_buffer(device d, const channel_options& o, std::uint32_t element_bytes,
                           batch_buffer_state* at)
    : device_(d), at_(at) {
  check(o);
  using simt::space;
  if (at_ == nullptr) {
    own_ = simt::buffer<batch_buffer_state>(d, space::device, 1);
    at_ = own_.data();
  }
  data_ = simt::buffer<unsigned char>(d, space::device, std::size_t{o.capacity} * element_bytes);
  cells_ = simt::buffer<std::uint32_t>(d, space::device, std::size_t{o.capacity} * laps);
  done_ = simt::buffer<std::uint32_t>(d, space::device, o.capacity / group_of(o.capacity));
  cells_.copy_from(std::vector<std::uint32_t>(cells_.size()));
  std::vector<std::uint32_t> done(done_.size());
  done[0] = 1;  // the baton
  done_.copy_from(done);
  batch_buffer_state s{};
  s.data = data_.data();
  s.cells = cells_.data();
  s.done = done_.data();
  s.capacity = s.room = o.capacity;
  s.cell_mask = o.capacity * laps - 1;
  s.group_shift = static_cast<std::uint32_t>(std::countr_zero(group_of(o.capacity)));
  s.batch = o.batch == 0 ? simt::warp_size : o.batch;
  s.patience_ns = std::uint64_t{o.patience_us} * 1000;
  simt::copy_bytes(device_, at_, &s, sizeof s);
}

batch_buffer_state batch_buffer::look() const {
  batch_buffer_state s{};
  simt::copy_bytes(device_, &s, at_, sizeof s);
  return s;
}

void batch_buffer::serve(const void* server, std::uint32_t kind, std::uint32_t batch) {
  batch_buffer_state s = look();
  s.server = server;
  s.kind = kind;
  s.batch = batch;
  simt::copy_bytes(device_, at_, &s, sizeof s);
}

std::size_t batch_buffer::bytes(std::uint32_t capacity, std::uint32_t element_bytes) {
  return std::size_t{capacity} * element_bytes + std::size_t{capacity} * laps * 4 +
         std::size_t{capacity} / group_of(capacity) * 4;
}

}  // namespace grosr::queue
