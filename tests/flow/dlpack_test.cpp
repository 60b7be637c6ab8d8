// Blocks as tensors of DLPack, and tensors as blocks: the same elements at the same place, for as
// long as somebody uses them.
#include "grosr/flow/dlpack.hpp"

#include <dlpack/dlpack.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "flow/functions.hpp"
#include "support/devices.hpp"

namespace grosr::flow {
namespace {

using namespace tested;

GROSR_DEVICE_SUITE(dlpack);

/// A tensor of somebody else.
struct tensor {
  std::vector<std::int64_t> shape, strides;
  DLManagedTensor is{};
  std::atomic<int> ended = 0;

  tensor(void* data, DLDevice where, DLDataType type, std::vector<std::int64_t> extents)
      : shape(std::move(extents)) {
    is.dl_tensor = {data, where, static_cast<int>(shape.size()), type, shape.data(), nullptr, 0};
    is.manager_ctx = this;
    is.deleter = [](DLManagedTensor* t) { ++static_cast<tensor*>(t->manager_ctx)->ended; };
  }
  tensor(const tensor&) = delete;
};

constexpr DLDataType floats{kDLFloat, 32, 1};

DLDevice device_of(const device& d) {
  return d.is_cuda() ? DLDevice{kDLCUDA, d.index()} : DLDevice{kDLCPU, 0};
}

void fill(const datablock& b, float first) {
  const auto w = b.write<float>();
  std::iota(w.begin(), w.end(), first);
}

TEST_P(dlpack, lends_what_the_host_has) {
  block_memory m({where()});
  const datablock b = m.make(block_template::of<float>(5, 3));
  fill(b, 1);
  DLManagedTensor* const t = to_dlpack(b, host_space);
  const DLTensor& is = t->dl_tensor;
  EXPECT_EQ(is.ndim, 2);
  EXPECT_EQ(is.shape[0], 3);
  EXPECT_EQ(is.shape[1], 5);
  EXPECT_EQ(is.dtype.code, kDLFloat);
  EXPECT_EQ(is.dtype.bits, 32);
  EXPECT_EQ(is.device.device_type, where().is_cuda() ? kDLCUDAHost : kDLCPU);
  EXPECT_EQ(static_cast<const float*>(is.data)[14], 15);
  EXPECT_EQ(is.data, b.read<float>().data());
  expect_error([&] { (void)b.write<float>(); }, "1 others read it");
  t->deleter(t);
  fill(b, 2);
}

TEST_P(dlpack, lends_what_a_device_has) {
  block_memory m({where()});
  const datablock b = m.make(block_template::of<std::int16_t>(100));
  {
    const auto w = b.write<std::int16_t>();
    std::iota(w.begin(), w.end(), std::int16_t{-50});
  }
  DLManagedTensor* const t = to_dlpack(b, m.space_of(where()));
  EXPECT_EQ(t->dl_tensor.dtype.code, kDLInt);
  EXPECT_EQ(t->dl_tensor.dtype.bits, 16);
  EXPECT_EQ(t->dl_tensor.device.device_type, device_of(where()).device_type);
  std::vector<std::int16_t> got(100);
  simt::copy_bytes(where(), got.data(), t->dl_tensor.data, 200);
  EXPECT_EQ(got[0], -50);
  EXPECT_EQ(got[99], 49);
  t->deleter(t);
  expect_error([&] { to_dlpack(b, 7); }, "memory 7 was asked for");
}

TEST_P(dlpack, keeps_a_lent_block_alive) {
  block_memory m({where()});
  datablock b = m.make(block_template::of<float>(10));
  fill(b, 1);
  DLManagedTensor* const t = to_dlpack(b, host_space);
  b = {};
  EXPECT_EQ(static_cast<const float*>(t->dl_tensor.data)[9], 10);
  EXPECT_EQ(m.idle_buffers(host_space), 0u);
  t->deleter(t);
  EXPECT_EQ(m.idle_buffers(host_space), 1u);
}

TEST_P(dlpack, lends_as_many_as_there_are) {
  block_memory m({where()});
  datablock b = m.make(block_template::variable<float>(10));
  b.set_count(4);
  fill(b, 1);
  DLManagedTensor* const t = to_dlpack(b, host_space);
  EXPECT_EQ(t->dl_tensor.ndim, 1);
  EXPECT_EQ(t->dl_tensor.shape[0], 4);
  t->deleter(t);
}

TEST_P(dlpack, takes_a_tensor_where_it_lies) {
  std::vector<float> elements(12);
  std::iota(elements.begin(), elements.end(), 1.0f);
  simt::buffer<float> memory(where(), simt::space::device, 12);
  memory.copy_from(elements);
  tensor t(memory.data(), device_of(where()), floats, {3, 4});
  {
    block_memory m({where()});
    {
      const datablock b = from_dlpack(m, &t.is);
      EXPECT_EQ(b.shape(), block_template::of<float>(4, 3));
      const space_number s = where().is_cuda() ? m.space_of(where()) : host_space;
      EXPECT_TRUE(b.is_valid_in(s));
      EXPECT_EQ(m.bytes(s), 0u) << "a buffer of the pool is used";
      EXPECT_EQ(b.read<float>()[11], 12);
      simt::timeline stream(where());
      EXPECT_EQ(b.read(stream, s).data(), memory.data());
      EXPECT_EQ(t.ended, 0);
    }
  }
  EXPECT_EQ(t.ended, 1);
}

TEST_P(dlpack, takes_a_tensor_through_a_graph) {
  simt::buffer<word> memory(where(), simt::space::device, 100);
  {
    executor e({.devices = {where()}});
    graph g(e);
    const auto t = block_template::of<word>(100);
    const node more = g.host("more",
                             [](in<word> a, out<word> b) {
                               for (std::size_t i = 0; i < a.count; ++i) b[i] = a[i] + 1;
                             },
                             {{"a", t}, {"b", t}});
    const auto from = g.source<word>(more["a"]);
    const auto to = g.sink<word>(more["b"]);
    g.compile();
    for (word round = 0; round < 10; ++round) {
      memory.copy_from(numbers(round, 100));
      tensor given(memory.data(), device_of(where()), {kDLUInt, 32, 1}, {100});
      from.push(from_dlpack(e.memory(), &given.is));
      EXPECT_EQ(to.pull_elements(), numbers(round + 1, 100));
      g.wait();
      // By a thread of the executor, between runs.
      const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (given.ended == 0 && std::chrono::steady_clock::now() < limit)
        std::this_thread::yield();
      ASSERT_EQ(given.ended, 1);
    }
  }
}

TEST_P(dlpack, copies_memory_that_a_gpu_does_not_reach) {
  std::vector<float> elements{1, 2, 3};
  tensor t(elements.data(), {kDLCPU, 0}, floats, {3});
  t.is.dl_tensor.byte_offset = sizeof(float);
  t.shape[0] = 2;
  block_memory m({where()});
  {
    const datablock b = from_dlpack(m, &t.is);
    EXPECT_EQ(t.ended, where().is_cuda() ? 1 : 0);
    EXPECT_EQ(b.read<float>()[1], 3);
    EXPECT_EQ(b.read<float>().data() == elements.data() + 1, !where().is_cuda());
  }
  m.free_borrowed();
  EXPECT_EQ(t.ended, 1);
}

TEST_P(dlpack, goes_there_and_back) {
  block_memory m({where()});
  for (const space_number s : {host_space, m.space_of(where())}) {
    datablock b = m.make(block_template::of<double>(2, 3, 4));
    {
      const auto w = b.write<double>();
      std::iota(w.begin(), w.end(), 0.5);
    }
    const datablock again = from_dlpack(m, to_dlpack(b, s));
    EXPECT_EQ(again, b);
    EXPECT_EQ(again.read<double>()[23], 23.5);
    block_memory other({where()});
    const datablock there = from_dlpack(other, to_dlpack(b, s));
    EXPECT_EQ(there.shape(), b.shape());
    EXPECT_EQ(there.read<double>()[23], 23.5);
  }
}

// Memory that a new block gets may still be read by a stream.
TEST_P(dlpack, waits_for_those_who_use_the_memory) {
  block_memory m({where()});
  constexpr std::size_t n = std::size_t{4} << 20;
  std::vector<float> twos(n, 2), got(n);
  simt::buffer<float> to(where(), simt::space::device, n);
  for (int round = 0; round < 10; ++round) {
    simt::timeline stream(where());
    {
      const datablock b = m.make(block_template::of<float>(n));
      {
        const auto w = b.write<float>();
        std::fill(w.begin(), w.end(), 1.0f);
      }
      const device_access read = b.read(stream, host_space);
      simt::copy_bytes(stream.queue(), to.data(), read.data(), n * sizeof(float));
    }
    tensor t(twos.data(), {kDLCPU, 0}, floats, {static_cast<std::int64_t>(n)});
    EXPECT_EQ(from_dlpack(m, &t.is).read<float>()[n - 1], 2);
    m.free_borrowed();
    EXPECT_EQ(t.ended, 1);
    stream.mark().wait();
    to.copy_to(got);
    ASSERT_TRUE(std::all_of(got.begin(), got.end(), [](float x) { return x == 1; }));
  }
}

TEST_P(dlpack, refuses_what_no_block_can_be) {
  block_memory m({where()});
  std::vector<float> elements(100);
  const auto refused = [&](tensor& t, const std::string& part) {
    expect_error([&] { from_dlpack(m, &t.is); }, part);
    EXPECT_EQ(t.ended, 0);
  };
  const DLDevice host{kDLCPU, 0};
  tensor many(elements.data(), host, floats, {1, 2, 3, 4});
  refused(many, "it has 4 extents");
  tensor none(elements.data(), host, floats, {3, 0});
  refused(none, "extent 1 is 0");
  tensor apart(elements.data(), host, floats, {3, 4});
  apart.strides = {8, 1};
  apart.is.dl_tensor.strides = apart.strides.data();
  refused(apart, "elements of extent 0 are 8 apart, and in a block they would be 4");
  tensor odd(reinterpret_cast<char*>(elements.data()) + 1, host, floats, {3});
  if (!where().is_cuda()) refused(odd, "which is no multiple of their 4 bytes");
  tensor nothing(nullptr, host, floats, {3});
  refused(nothing, "it has no data");
  tensor halves(elements.data(), host, {kDLFloat, 16, 1}, {3});
  refused(halves, "type 2 of 16 bits");
  tensor vectors(elements.data(), host, {kDLFloat, 32, 4}, {3});
  refused(vectors, "4 lanes");
  tensor elsewhere(elements.data(), {kDLCUDA, 63}, floats, {3});
  refused(elsewhere, "it lies on cuda:63");
  tensor managed(elements.data(), {kDLCUDAManaged, 0}, floats, {3});
  refused(managed, "memory of type 13");
  struct pair {
    int a, b;
  };
  const datablock pairs = m.make(block_template::of<pair>(3));
  expect_error([&] { to_dlpack(pairs, host_space); }, "DLPack has no such elements");
  const datablock empty = m.make(block_template::of<float>(3));
  expect_error([&] { to_dlpack(empty, host_space); }, "nobody has written it");
}

}  // namespace
}  // namespace grosr::flow
