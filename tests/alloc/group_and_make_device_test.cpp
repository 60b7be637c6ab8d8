// allocate_group() gives one block to all who ask together; make() and destroy() begin and end
// objects.
#include "alloc/blocks.hpp"
#include "support/devices.hpp"

namespace grosr::alloc {
namespace {

GROSR_DEVICE_SUITE(group_blocks);

template <group G>
struct together {
  heap_ref heap;
  std::size_t bytes;
  std::uint64_t* got;  ///< [round][thread]
  std::uint32_t rounds;
  GROSR_DEVICE void operator()() const {
    const std::uint32_t threads = simt::grid_size() * simt::block_size();
    for (std::uint32_t i = 0; i < rounds; ++i) {
      void* p = heap.template allocate_group<G>(bytes, 256);
      got[i * threads + self()] = reinterpret_cast<std::uint64_t>(p);
    }
  }
};

template <group G>
void expect_shared(device d, std::size_t bytes, std::uint32_t members) {
  constexpr std::uint32_t blocks = 3, threads = 128, rounds = 4;
  const heap h(d, 256 * slab_bytes);
  simt::buffer<std::uint64_t> got(d, simt::space::device, blocks * threads * rounds);
  simt::run(d, {blocks, threads}, together<G>{h.ref(), bytes, got.data(), rounds});
  std::vector<std::uint64_t> p(got.size());
  got.copy_to(p);
  std::vector<std::uint64_t> different;
  for (std::size_t i = 0; i < p.size(); ++i) {
    ASSERT_EQ(p[i], p[i / members * members]) << "thread " << i << " got another block";
    ASSERT_NE(p[i], 0u);
    ASSERT_EQ(p[i] % 256, 0u);
    if (i % members == 0) different.push_back(p[i]);
  }
  std::sort(different.begin(), different.end());
  EXPECT_EQ(std::unique(different.begin(), different.end()), different.end());
  EXPECT_EQ(h.report().live, different.size());
}

TEST_P(group_blocks, are_one_a_warp) {
  for (std::size_t bytes : {1u, 5000u, 100000u}) expect_shared<group::warp>(where(), bytes, 32);
}

TEST_P(group_blocks, are_one_a_block) {
  for (std::size_t bytes : {1u, 5000u, 100000u}) expect_shared<group::block>(where(), bytes, 128);
}

TEST_P(group_blocks, are_null_for_all_when_there_is_no_memory) {
  const heap h(where(), slab_bytes);
  auto got = make<std::uint64_t>(64);
  run(1, 64, together<group::block>{h.ref(), 2 * slab_bytes, got.data(), 1});
  EXPECT_EQ(contents(got), std::vector<std::uint64_t>(64, 0));
  EXPECT_EQ(h.report().failures, 1u) << "one asked for all";
}

struct alignas(64) counted {
  std::uint32_t* ended;
  std::uint32_t id;
  std::uint32_t payload[40];
  GROSR_DEVICE counted(std::uint32_t* begun, std::uint32_t* e, std::uint32_t i) : ended(e), id(i) {
    add(begun);
    for (auto& word : payload) word = i;
  }
  GROSR_DEVICE ~counted() { add(ended, payload[39] == id ? 1 : 1u << 20); }
};

struct make_and_destroy {
  heap_ref heap;
  std::uint32_t *begun, *ended, *misaligned;
  GROSR_DEVICE void operator()() const {
    counted* one = heap.make<counted>(begun, ended, self());
    counted* two = simt::lane_id() % 3 == 0 ? heap.make<counted>(begun, ended, self()) : nullptr;
    if (reinterpret_cast<std::uint64_t>(one) % alignof(counted) != 0) add(misaligned);
    heap.destroy(one);
    heap.destroy(two);  // null for many
  }
};

TEST_P(group_blocks, made_objects_begin_and_end_once) {
  const heap h(where(), 64 * slab_bytes);
  auto n = make<std::uint32_t>(3);
  run(2, 64, make_and_destroy{h.ref(), n.data(), n.data() + 1, n.data() + 2});
  const std::uint32_t objects = 128 + 4 * 11;
  EXPECT_EQ(contents(n), (std::vector<std::uint32_t>{objects, objects, 0}));
  EXPECT_EQ(h.report().live, 0u);
}

template <unsigned Bytes>
struct sized {
  unsigned char content[Bytes];
};

// Lanes of one warp make objects of two types, and others get blocks, at the same time.
struct make_of_two_types {
  heap_ref heap;
  std::uint32_t* wrong;
  template <class T>
  GROSR_DEVICE void use(T* p) const {
    for (auto& byte : p->content) byte = static_cast<unsigned char>(self());
    for (auto& byte : p->content)
      if (byte != static_cast<unsigned char>(self())) add(wrong);
    if (heap.usable(p) < sizeof(T)) add(wrong);
    heap.destroy(p);
  }
  GROSR_DEVICE void operator()() const {
    for (unsigned turn = 0; turn < 10; ++turn) {
      if (self() % 3 == 0)
        use(heap.make<sized<40>>());
      else if (self() % 3 == 1)
        use(heap.make<sized<200>>());
      else
        use(static_cast<sized<5000>*>(heap.allocate(5000)));
    }
  }
};

TEST_P(group_blocks, objects_of_two_types_are_apart) {
  const heap h(where(), 256 * slab_bytes);
  auto wrong = make<std::uint32_t>(1);
  run(2, 64, make_of_two_types{h.ref(), wrong.data()});
  EXPECT_EQ(contents(wrong)[0], 0u);
  EXPECT_EQ(h.report().live, 0u);
}

TEST_P(group_blocks, nothing_begins_without_memory) {
  const heap h(where(), slab_bytes);
  hoard all(h);
  all.fill({1, 32}, slab_bytes);
  auto n = make<std::uint32_t>(3);
  run(1, 32, make_and_destroy{h.ref(), n.data(), n.data() + 1, n.data() + 2});
  EXPECT_EQ(contents(n), (std::vector<std::uint32_t>{0, 0, 0}));
}

}  // namespace
}  // namespace grosr::alloc
