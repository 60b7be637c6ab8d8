// Blocks hold the same wherever they are looked at, and are copied only where they must be.
#include "grosr/flow/datablock.hpp"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>

#include "grosr/simt/atomic.hpp"
#include "grosr/simt/lanes.hpp"
#include "support/devices.hpp"
#include "support/errors.hpp"
#include "support/scale.hpp"

namespace grosr::flow {
namespace {

using testing::scaled;

struct fill {
  std::uint32_t* word;
  std::uint32_t n, value;
  GROSR_DEVICE void operator()() const {
    for (std::uint32_t i = simt::thread_id(); i < n; i += simt::block_size()) word[i] = value;
  }
};
struct add {
  std::uint32_t* word;
  std::uint32_t n, value;
  GROSR_DEVICE void operator()() const {
    for (std::uint32_t i = simt::thread_id(); i < n; i += simt::block_size()) word[i] += value;
  }
};
struct compare {
  const std::uint32_t* word;
  std::uint32_t n, value;
  std::uint32_t* wrong;
  GROSR_DEVICE void operator()() const {
    for (std::uint32_t i = simt::thread_id(); i < n; i += simt::block_size())
      if (word[i] != value) simt::atomic_ref(*wrong).fetch_add(1u, simt::relaxed);
  }
};

template <class Call>
void expect_error(Call&& call, const std::string& part) {
  const error e = testing::error_of(call);
  EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
}

/// Three devices, of which two are always of the host, and two streams on each.
class datablocks : public testing::device_test {
 protected:
  void SetUp() override {
    setenv("GROSR_HOST_DEVICES", "3", 1);
    testing::device_test::SetUp();
    if (IsSkipped()) return;
    devices = {where(), device("host:1"), device("host:2")};
    memory = std::make_unique<block_memory>(devices);
    for (const device& d : devices)
      for (int i = 0; i < 2; ++i) streams.push_back(std::make_unique<simt::timeline>(d));
  }
  void TearDown() override { unsetenv("GROSR_HOST_DEVICES"); }

  /// One of a memory's streams.
  simt::timeline& stream(space_number s, unsigned i = 0) { return *streams[(s - 1) * 2 + i]; }

  std::vector<device> devices;
  std::unique_ptr<block_memory> memory;
  std::vector<std::unique_ptr<simt::timeline>> streams;
};
INSTANTIATE_TEST_SUITE_P(on, datablocks, ::testing::Values("host:0", "cuda:0"),
                         testing::device_test_name);

constexpr std::uint32_t words = 40;

TEST_P(datablocks, are_copied_when_first_looked_at) {
  datablock b = memory->make(block_template::of<std::uint32_t>(words));
  EXPECT_EQ(memory->bytes(host_space), 0u);
  for (std::uint32_t& x : b.write<std::uint32_t>()) x = 5;
  EXPECT_TRUE(b.is_valid_in(host_space));
  EXPECT_FALSE(b.is_valid_in(1));
  EXPECT_EQ(memory->counts().copies, 0u);
  copy_counts counts;
  for (int i = 0; i < 3; ++i) {
    const device_access on = b.read(stream(1), 1, &counts);
    EXPECT_NE(on.data(), nullptr);
  }
  EXPECT_EQ(counts.copies, 1u);
  EXPECT_EQ(counts.bytes, words * 4u);
  EXPECT_EQ(counts.avoided, 2u);
  EXPECT_TRUE(b.is_valid_in(host_space));
  EXPECT_TRUE(b.is_valid_in(1));
  {
    const device_access on = b.update(stream(1), 1, &counts);
    simt::launch(stream(1).queue(), {1, 32}, add{static_cast<std::uint32_t*>(on.data()), words, 2});
  }
  EXPECT_FALSE(b.is_valid_in(host_space));
  EXPECT_EQ(counts.copies, 1u);
  for (const std::uint32_t x : b.read<std::uint32_t>()) ASSERT_EQ(x, 7u);
  EXPECT_EQ(memory->counts().copies, 2u);
  // What is written over is not brought first.
  {
    const device_access on = b.write(stream(2), 2, &counts);
    simt::launch(stream(2).queue(), {1, 32},
                 fill{static_cast<std::uint32_t*>(on.data()), words, 9});
  }
  EXPECT_EQ(counts.copies, 1u);
  EXPECT_FALSE(b.is_valid_in(1));
  EXPECT_EQ(b.read<std::uint32_t>()[words - 1], 9u);
}

// Random uses by random streams and the host, beside a model that knows one value and who has it.
TEST_P(datablocks, hold_the_same_for_whoever_looks) {
  std::mt19937 random(17);
  struct model {
    datablock block;
    std::uint32_t value = 0;
    std::vector<bool> valid;
  };
  const std::size_t spaces = devices.size() + 1;
  auto make = [&] {
    return model{memory->make(block_template::of<std::uint32_t>(words)), 0,
                 std::vector<bool>(spaces)};
  };
  std::vector<model> all(6);
  for (model& m : all) m = make();
  simt::buffer<std::uint32_t> wrong(where(), simt::space::pinned, 1);
  std::uint64_t copies = 0;
  const bool mixed = where().is_cuda();
  const std::uint64_t steps = scaled(20'000, 500);
  for (std::uint64_t step = 0; step < steps; ++step) {
    model& m = all[random() % all.size()];
    const bool known = std::find(m.valid.begin(), m.valid.end(), true) != m.valid.end();
    if (random() % 50 == 0) {
      m = make();  // while streams still use the old one
      continue;
    }
    const auto how = known ? static_cast<access>(random() % 3) : access::write;
    const space_number s = random() % spaces;
    if (how != access::write && !m.valid[s]) {
      ++copies;
      // Between kinds of devices it goes by the host, which has a view then.
      const auto from = static_cast<space_number>(std::find(m.valid.begin(), m.valid.end(), true) -
                                                  m.valid.begin());
      if (mixed && from != host_space && s != host_space && (from == 1) != (s == 1)) {
        ++copies;
        m.valid[host_space] = true;
      }
    }
    const std::uint32_t value = random();
    if (s == host_space) {
      if (how == access::read) {
        for (const std::uint32_t x : m.block.read<std::uint32_t>()) ASSERT_EQ(x, m.value) << step;
      } else if (how == access::write) {
        for (std::uint32_t& x : m.block.write<std::uint32_t>()) x = value;
      } else {
        for (std::uint32_t& x : m.block.update<std::uint32_t>()) x += value;
      }
    } else {
      simt::timeline& t = stream(s, random() % 2);
      const device_access on = how == access::read    ? m.block.read(t, s)
                               : how == access::write ? m.block.write(t, s)
                                                      : m.block.update(t, s);
      auto* const data = static_cast<std::uint32_t*>(on.data());
      // The host's memory is pinned for all devices.
      if (how == access::read)
        simt::launch(t.queue(), {1, 32}, compare{data, words, m.value, wrong.data()});
      else if (how == access::write)
        simt::launch(t.queue(), {1, 32}, fill{data, words, value});
      else
        simt::launch(t.queue(), {1, 32}, add{data, words, value});
    }
    if (how == access::write) m.value = value;
    if (how == access::update) m.value += value;
    if (how != access::read) m.valid.assign(spaces, false);
    m.valid[s] = true;
    for (space_number i = 0; i < spaces; ++i)
      ASSERT_EQ(m.block.is_valid_in(i), m.valid[i]) << "memory " << i << ", step " << step;
  }
  for (auto& t : streams) t->here().wait();
  EXPECT_EQ(wrong[0], 0u);
  EXPECT_EQ(memory->counts().copies, copies);
  // As many buffers as there were blocks, no more.
  for (space_number s = 0; s < spaces; ++s) EXPECT_LE(memory->bytes(s), (all.size() + 1) * 256);
  all.clear();
  for (space_number s = 0; s < spaces; ++s)
    EXPECT_EQ(memory->idle_buffers(s) * 256, memory->bytes(s));
}

TEST_P(datablocks, may_be_read_by_many_at_once) {
  datablock b = memory->make(block_template::of<std::uint32_t>(words));
  for (std::uint32_t& x : b.write<std::uint32_t>()) x = 3;
  std::atomic<std::uint32_t> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 6; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 50; ++round) {
        const space_number s = 1 + i % 3;
        datablock mine = b;
        if (i % 2 == 0) {
          for (const std::uint32_t x : mine.read<std::uint32_t>())
            if (x != 3) ++wrong;
        } else {
          simt::timeline& t = *streams[i];
          (void)s;
          const device_access on = mine.read(t, memory->space_of(t.where()));
        }
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(b.use_count(), 1);
  EXPECT_LE(memory->counts().copies, 3u);
}

TEST_P(datablocks, take_nothing_new_from_memory_that_was_reserved) {
  for (space_number s = 0; s <= devices.size(); ++s) memory->reserve(s, words * 4, 2);
  std::vector<std::size_t> before;
  for (space_number s = 0; s <= devices.size(); ++s) before.push_back(memory->bytes(s));
  for (int i = 0; i < 100; ++i) {
    datablock b = memory->make(block_template::of<std::uint32_t>(words));
    for (std::uint32_t& x : b.write<std::uint32_t>()) x = 3;
    for (space_number s = 1; s <= devices.size(); ++s) {
      const device_access on = b.read(stream(s), s);
    }
  }
  for (space_number s = 0; s <= devices.size(); ++s) EXPECT_EQ(memory->bytes(s), before[s]);
}

TEST_P(datablocks, have_as_many_elements_as_was_said) {
  datablock b = memory->make(block_template::variable<std::uint32_t>(1000));
  EXPECT_EQ(b.count(), 1000u);
  expect_error([&] { datablock().count(); }, "there is none");
  expect_error([&] { memory->make(block_template::of<std::uint32_t>(5)).set_count(4); },
               "has all of them");
  b.set_count(10);
  EXPECT_EQ(b.write<std::uint32_t>().size(), 10u);
  copy_counts counts;
  { const device_access on = b.read(stream(1), 1, &counts); }
  EXPECT_EQ(counts.bytes, 40u);
  // More than any view holds.
  b.set_count(20);
  expect_error([&] { b.read<std::uint32_t>(); }, "nobody has written it");
  {
    const auto writing = b.write<std::uint32_t>();
    expect_error([&] { b.set_count(3); }, "in use");
  }
  { const device_access on = b.read(stream(1), 1, &counts); }
  EXPECT_EQ(counts.bytes, 120u);
  EXPECT_THROW(b.set_count(1001), error);
}

TEST_P(datablocks, refuse_what_makes_no_sense) {
  datablock b = memory->make(block_template::of<std::uint32_t>(2, 3));
  expect_error([&] { b.read<std::uint32_t>(); }, "nobody has written it");
  expect_error([&] { b.write<float>(); }, "as float");
  expect_error([&] { b.write(stream(1), 9); }, "memory 9");
  {
    const auto writing = b.write<std::uint32_t>();
    expect_error([&] { b.read<std::uint32_t>(); }, "being written");
    expect_error([&] { b.read(stream(1), 1); }, "being written");
  }
  {
    const auto reading = b.read<std::uint32_t>();
    const auto again = b.read<std::uint32_t>();
    expect_error([&] { b.write<std::uint32_t>(); }, "2 others read it");
  }
  b.write<std::uint32_t>();
  EXPECT_EQ(b.shape().text(), "unsigned int[2 x 3]");
  expect_error([&] { block_template::of<float>(0); }, "each extent is 1");
  expect_error([&] { block_template::of<double>(std::size_t{1} << 62); }, "fit into memory");
  expect_error([&] { block_memory({}); }, "on 0 devices");
  expect_error([&] { block_memory({where(), where()}); }, "named twice");
  EXPECT_FALSE(block_template::of<int>(6) == block_template::of<int>(2, 3));
  EXPECT_FALSE(block_template::of<int>(6) == block_template::of<unsigned>(6));
  EXPECT_TRUE(block_template::of<int>(6) == block_template::of<int>(6));
}

// Views are given back while streams use them still, and the next user waits for that.
TEST_P(datablocks, are_given_back_before_streams_are_done) {
  simt::buffer<std::uint32_t> wrong(where(), simt::space::pinned, 1);
  for (std::uint32_t i = 0; i < scaled(300, 30); ++i) {
    datablock b = memory->make(block_template::of<std::uint32_t>(words));
    simt::timeline &writer = stream(1 + i % 3, i / 3 % 2), &reader = stream(1 + (i + 1) % 3, i % 2);
    const space_number at = 1 + i % 3, then = 1 + (i + 1) % 3;
    {
      const device_access on = b.write(writer, at);
      simt::launch(writer.queue(), {1, 32}, fill{static_cast<std::uint32_t*>(on.data()), words, i});
    }
    const device_access on = b.read(reader, then);
    simt::launch(reader.queue(), {1, 32},
                 compare{static_cast<const std::uint32_t*>(on.data()), words, i, wrong.data()});
  }
  for (auto& t : streams) t->here().wait();
  EXPECT_EQ(wrong[0], 0u);
}

// Who could not use memory after all does not forget who uses it.
TEST_P(datablocks, keep_who_uses_their_memory_when_an_access_fails) {
  std::atomic<bool> open{false};
  simt::timeline& t = stream(2);
  t.queue().call_host([&] {
    while (!open) std::this_thread::yield();
  });
  const auto shape = block_template::of<std::uint32_t>(words);
  {
    datablock b = memory->make(shape);
    { const device_access on = b.write(t, 2); }
    stream_waits waits;
    block_users::begin_on_host(b, access::read, waits, nullptr);
    block_users::end_on_host(b, access::read, false);
  }
  ASSERT_EQ(memory->idle_buffers(host_space), 1u);
  for (int i = 0; i < 2; ++i) {
    datablock b = memory->make(shape);
    stream_waits waits;
    block_users::begin_on_host(b, access::write, waits, nullptr);
    EXPECT_FALSE(waits.have_happened()) << i;
    block_users::end_on_host(b, access::write, true);
  }
  EXPECT_EQ(memory->idle_buffers(host_space), 1u);
  open = true;
  datablock b = memory->make(shape);
  stream_waits waits;
  block_users::begin_on_host(b, access::write, waits, nullptr);
  waits.wait();
  EXPECT_TRUE(waits.have_happened());
  block_users::end_on_host(b, access::write, false);
}

// What blocks of the program hold is not what was reserved.
TEST_P(datablocks, are_reserved_beside_those_that_are_held) {
  const auto shape = block_template::of<std::uint32_t>(words);
  std::vector<datablock> held;
  for (int i = 0; i < 3; ++i) {
    held.push_back(memory->make(shape));
    held.back().write<std::uint32_t>();
  }
  memory->reserve(host_space, shape.size_bytes(), 2);
  EXPECT_EQ(memory->idle_buffers(host_space), 2u);
  held.clear();
  EXPECT_EQ(memory->idle_buffers(host_space), 5u);
  memory->reserve(host_space, shape.size_bytes(), 3);
  EXPECT_EQ(memory->idle_buffers(host_space), 5u);
  memory->unreserve(host_space, shape.size_bytes(), 2);
  memory->unreserve(host_space, shape.size_bytes(), 3);
  EXPECT_EQ(memory->bytes(host_space), 0u);
}

}  // namespace
}  // namespace grosr::flow
