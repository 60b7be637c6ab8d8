#include "cases/sweeps.hpp"

namespace grosr::tool {
namespace {

template <read_by Who>
struct read_whole {
  sys::server_ref sys;
  whole_reading r;
  unsigned char* to;
  sys::grid_point* point;
  std::uint64_t* wrong;

  GROSR_DEVICE void operator()() const {
    const std::uint64_t piece = std::uint64_t{r.lane_bytes} * simt::block_size();
    const std::uint64_t block_at = simt::block_id() * piece;
    const std::uint64_t lane_at = block_at + std::uint64_t{r.lane_bytes} * simt::thread_id();
    long got = 0, expected = r.lane_bytes;
    if constexpr (Who == read_by::lane) {
      got = sys::pread(sys, r.file, to + lane_at, r.lane_bytes, static_cast<std::int64_t>(lane_at));
    } else if constexpr (Who == read_by::block) {
      expected = static_cast<long>(piece);
      got = sys::pread(sys.block(sys::consumer), r.file, to + block_at, piece,
                       static_cast<std::int64_t>(block_at));
    } else {
      expected = static_cast<long>(r.bytes);
      got = sys::pread(sys.grid(sys::consumer, point), r.file, to, r.bytes, 0);
    }
    if (got != expected) simt::atomic_ref<std::uint64_t>(*wrong).fetch_add(1, simt::relaxed);
  }
};

struct clear_words {
  std::uint64_t* word;
  std::uint64_t words;
  GROSR_DEVICE void operator()() const {
    const std::uint64_t all = std::uint64_t{simt::grid_size()} * simt::block_size();
    for (std::uint64_t i = std::uint64_t{simt::block_id()} * simt::block_size() + simt::thread_id();
         i < words; i += all)
      word[i] = ~word_at(8 * i);
  }
};

struct check_words {
  const std::uint64_t* word;
  std::uint64_t words;
  std::uint64_t* wrong;
  GROSR_DEVICE void operator()() const {
    const std::uint64_t all = std::uint64_t{simt::grid_size()} * simt::block_size();
    std::uint64_t bad = 0;
    for (std::uint64_t i = std::uint64_t{simt::block_id()} * simt::block_size() + simt::thread_id();
         i < words; i += all)
      bad += word[i] != word_at(8 * i) ? 1 : 0;
    if (bad != 0) simt::atomic_ref<std::uint64_t>(*wrong).fetch_add(bad, simt::relaxed);
  }
};

struct sleep_calls {
  sys::server_ref sys;
  std::uint32_t turns;
  std::uint64_t* wrong;
  GROSR_DEVICE void operator()() const {
    for (std::uint32_t i = 0; i < turns; ++i)
      if (sys::call<sleeper>(sys.warp(), 100l) != 100)
        simt::atomic_ref<std::uint64_t>(*wrong).fetch_add(1, simt::relaxed);
  }
};

}  // namespace

struct whole_reader::state {
  device where;
  const sys::server& server;
  simt::buffer<std::uint64_t> to;
  simt::buffer<std::uint64_t> wrong;
  simt::buffer<sys::grid_point> point;
};

whole_reader::whole_reader(const device& d, const sys::server& s, std::uint64_t most_bytes)
    : state_(new state{d,
                       s,
                       {d, simt::space::device, most_bytes / 8},
                       {d, simt::space::device, 1},
                       {d, simt::space::device, 1}}) {}
whole_reader::~whole_reader() = default;

call_traffic whole_reader::read(const whole_reading& r, bool check) {
  state& s = *state_;
  const simt::shape all = s.where.is_cuda() ? simt::shape{1024, 256} : simt::shape{2, 64};
  const auto blocks = static_cast<unsigned>(r.bytes / r.lane_bytes / r.threads);
  call_traffic t;
  t.calls = r.who == read_by::lane ? r.bytes / r.lane_bytes : r.who == read_by::block ? blocks : 1;
  const std::uint64_t none = 0;
  s.wrong.copy_from({&none, 1});
  const sys::grid_point zero{};
  s.point.copy_from({&zero, 1});
  simt::stream on(s.where);
  if (check) simt::launch(on, all, clear_words{s.to.data(), r.bytes / 8});
  on.wait();
  const auto launch = [&](auto kernel) {
    t.us = timed([&] {
      simt::launch(on, {blocks, r.threads}, kernel);
      on.wait();
    });
  };
  auto* const to = reinterpret_cast<unsigned char*>(s.to.data());
  const sys::server_ref ref = s.server.ref();
  switch (r.who) {
    case read_by::lane:
      launch(read_whole<read_by::lane>{ref, r, to, s.point.data(), s.wrong.data()});
      break;
    case read_by::block:
      launch(read_whole<read_by::block>{ref, r, to, s.point.data(), s.wrong.data()});
      break;
    case read_by::grid:
      launch(read_whole<read_by::grid>{ref, r, to, s.point.data(), s.wrong.data()});
  }
  if (check) simt::launch(on, all, check_words{s.to.data(), r.bytes / 8, s.wrong.data()});
  on.wait();
  s.wrong.copy_to({&t.wrong, 1});
  return t;
}

call_traffic call_sleeper(const device& d, const sys::server& s, simt::shape grid,
                          std::uint32_t turns) {
  simt::buffer<std::uint64_t> wrong(d, simt::space::device, 1);
  call_traffic t;
  t.us = timed([&] { simt::run(d, grid, sleep_calls{s.ref(), turns, wrong.data()}); });
  t.calls = std::uint64_t{grid.blocks} * grid.threads / simt::warp_size * turns;
  wrong.copy_to({&t.wrong, 1});
  return t;
}

}  // namespace grosr::tool
