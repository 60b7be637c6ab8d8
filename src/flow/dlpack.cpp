#include "grosr/flow/dlpack.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "flow/refuse.hpp"

#if defined(GROSR_HAS_DLPACK)
#include <dlpack/dlpack.h>
#endif

namespace grosr::flow {

#if defined(GROSR_HAS_DLPACK)
namespace {

/// What a tensor of a block needs, until its deleter is called.
struct lent_block {
  datablock block;
  space_number space;
  std::vector<std::int64_t> extents;
  DLManagedTensor tensor;
};

void end_of_lent(DLManagedTensor* self) {
  const std::unique_ptr<lent_block> gone(static_cast<lent_block*>(self->manager_ctx));
  block_users::let_go(gone->block, gone->space);
}

/// The block that a tensor was made of; of others none.
datablock block_of(const DLManagedTensor* t) {
  return t->deleter == end_of_lent ? static_cast<const lent_block*>(t->manager_ctx)->block
                                   : datablock();
}

DLDataType type_of(const block_template& t) {
  using kind = element_type::kind;
  const element_type& e = t.element();
  if (t.layout() != block_template::records::bytes && e.is == kind::other)
    refuse(
        fmt::format("a tensor of a block of {}: DLPack has no such elements; give it a template "
                    "of integers or floating point numbers",
                    t.text()));
  const auto code = e.is == kind::integer ? kDLInt : e.is == kind::real ? kDLFloat : kDLUInt;
  return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(8 * e.bytes), 1};
}

template <class... T>
std::optional<element_type> one_of(const DLDataType& t) {
  std::optional<element_type> found;
  const auto look = [&](const element_type& e) {
    using kind = element_type::kind;
    const auto code = e.is == kind::integer ? kDLInt : e.is == kind::real ? kDLFloat : kDLUInt;
    if (t.code == code && t.bits == 8 * e.bytes) found = e;
  };
  (look(element_type::of<T>()), ...);
  return found;
}

element_type element_of(const DLTensor& t) {
  const auto e = one_of<float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                        std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>(t.dtype);
  if (!e || t.dtype.lanes != 1)
    refuse(fmt::format(
        "a block of a tensor: its elements have type {} of {} bits and {} lanes; integers of 8 to "
        "64 bits and floating point numbers of 32 and 64, of one lane, can be in blocks",
        t.dtype.code, t.dtype.bits, t.dtype.lanes));
  return *e;
}

std::array<std::size_t, 3> extents_of(const DLTensor& t) {
  if (t.ndim < 0 || t.ndim > 3)
    refuse(fmt::format("a block of a tensor: it has {} extents; blocks have up to 3", t.ndim));
  std::array<std::size_t, 3> all{1, 1, 1};
  std::int64_t stride = 1;
  for (int i = 0; i < t.ndim; ++i) {
    const int from = t.ndim - 1 - i;
    const std::int64_t n = t.shape[from];
    if (n <= 0)
      refuse(fmt::format("a block of a tensor: extent {} is {}; blocks have at least 1", from, n));
    if (t.strides != nullptr && n != 1 && t.strides[from] != stride)
      refuse(
          fmt::format("a block of a tensor: elements of extent {} are {} apart, and in a block "
                      "they would be {}; make it contiguous first",
                      from, t.strides[from], stride));
    all[static_cast<std::size_t>(i)] = static_cast<std::size_t>(n);
    if (__builtin_mul_overflow(stride, n, &stride))
      refuse("a block of a tensor: it has more than 2^63 elements");
  }
  return all;
}

bool has_gpu(const block_memory& m) {
  for (const device& d : m.devices())
    if (d.is_cuda()) return true;
  return false;
}

/// None: in memory of the host where a device does not reach it.
std::optional<space_number> space_of(const block_memory& m, const DLTensor& t) {
  switch (t.device.device_type) {
    case kDLCPU:
      return has_gpu(m) ? std::nullopt : std::optional(host_space);
    case kDLCUDAHost:
      return host_space;
    case kDLCUDA:
      for (space_number s = 1; s <= m.devices().size(); ++s)
        if (m.devices()[s - 1].is_cuda() && m.devices()[s - 1].index() == t.device.device_id)
          return s;
      refuse(
          fmt::format("a block of a tensor: it lies on cuda:{}, where the memory has nothing; "
                      "name that device where the memory is made",
                      t.device.device_id));
    default:
      refuse(
          fmt::format("a block of a tensor: it lies in memory of type {}; blocks can take that "
                      "of the host, pinned memory and that of CUDA devices",
                      static_cast<int>(t.device.device_type)));
  }
}

}  // namespace

DLManagedTensor* to_dlpack(const datablock& b, space_number s) {
  const block_template& shape = b.shape();
  auto lent = std::make_unique<lent_block>();
  DLTensor& t = lent->tensor.dl_tensor;
  t.dtype = type_of(shape);
  lent->block = b;
  lent->space = s;
  lent->tensor.manager_ctx = lent.get();
  lent->tensor.deleter = end_of_lent;
  const block_users::held_view held = block_users::hold(b, s);
  if (shape.layout() == block_template::records::fixed) {
    const auto& e = shape.extents();
    for (std::size_t i = e[2] != 1 ? 3 : e[1] != 1 ? 2 : 1; i-- != 0;)
      lent->extents.push_back(static_cast<std::int64_t>(e[i]));
  } else {
    lent->extents.push_back(static_cast<std::int64_t>(b.count()));
  }
  t.ndim = static_cast<int>(lent->extents.size());
  t.shape = lent->extents.data();
  t.strides = nullptr;
  t.byte_offset = 0;
  t.data = held.data;
  t.device = !held.where.is_cuda() ? DLDevice{kDLCPU, 0}
             : s == host_space     ? DLDevice{kDLCUDAHost, 0}
                                   : DLDevice{kDLCUDA, held.where.index()};
  return &lent.release()->tensor;
}

datablock from_dlpack(block_memory& m, DLManagedTensor* tensor) {
  m.free_borrowed();
  if (const datablock own = block_of(tensor); own && m.made(own)) {
    tensor->deleter(tensor);
    return own;
  }
  const DLTensor& t = tensor->dl_tensor;
  const block_template shape = block_users::fixed(element_of(t), extents_of(t));
  const std::optional<space_number> s = space_of(m, t);
  if (t.data == nullptr) refuse("a block of a tensor: it has no data");
  char* const data = static_cast<char*>(t.data) + t.byte_offset;
  if (s && reinterpret_cast<std::uintptr_t>(data) % shape.element().bytes != 0)
    refuse(
        fmt::format("a block of a tensor: its elements lie at {}, which is no multiple of their "
                    "{} bytes; copy it first",
                    static_cast<const void*>(data), shape.element().bytes));
  const auto give_back = [](void* p) {
    auto* const given = static_cast<DLManagedTensor*>(p);
    if (given->deleter != nullptr) given->deleter(given);
  };
  if (s) return block_users::adopt(m, shape, *s, data, tensor, give_back);
  datablock b = m.make(shape);
  stream_waits users;  // of the memory that it gets
  void* const to = block_users::begin_on_host(b, access::write, users, nullptr);
  users.wait();
  std::memcpy(to, data, shape.size_bytes());
  block_users::end_on_host(b, access::write, false);
  give_back(tensor);
  return b;
}

#else

namespace {
[[noreturn]] void throw_not_built() {
  throw error(errc::not_built,
              "a tensor of DLPack was asked for, and this was built where DLPack was not found; "
              "install libdlpack-dev and build it again");
}
}  // namespace

DLManagedTensor* to_dlpack(const datablock&, space_number) { throw_not_built(); }
datablock from_dlpack(block_memory&, DLManagedTensor*) { throw_not_built(); }

#endif

}  // namespace grosr::flow
