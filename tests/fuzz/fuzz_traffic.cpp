// The memory of a launch of the fuzzer, and what is left on the server when it has ended.
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "fuzz/fuzz_kernels.hpp"

namespace grosr::tool::fuzz {
namespace {

struct place_counter {
  sys::server_ref sys;
  std::uint64_t* taken;
  GROSR_DEVICE void operator()() const {
    const sys::view& v = sys.where();
    const std::uint32_t self = simt::block_id() * simt::block_size() + simt::thread_id();
    const std::uint32_t all = simt::grid_size() * simt::block_size();
    for (std::uint32_t word = self; word < v.slots.words(); word += all) sys::reclaim(v, word);
    simt::sync_block();
    std::uint64_t found = 0;
    const auto look = [&](const std::uint32_t* words, std::uint32_t count) {
      for (std::uint32_t i = self; i < count; i += all)
        found +=
            simt::popcount(simt::atomic_ref<std::uint32_t>(const_cast<std::uint32_t&>(words[i]))
                               .load(simt::acquire));
    };
    // Words of slots, then detached ones, then chunks: see sys/detail/layout.hpp. Only the first
    // block looks, after it has reclaimed.
    look(v.detached - v.slots.words(), v.slots.words());
    const std::uint32_t* chunks = v.detached + v.slots.words();
    std::uint32_t words = 0;
    for (const auto& c : v.chunks) words += c.words();
    look(chunks, words);
    if (found != 0) simt::atomic_ref<std::uint64_t>(*taken).fetch_add(found, simt::relaxed);
  }
};

template <class T>
simt::buffer<T> filled(const device& d, const std::vector<T>& from) {
  simt::buffer<T> to(d, simt::space::device, std::max<std::size_t>(from.size(), 1));
  if (!from.empty()) to.copy_from(from);
  return to;
}

}  // namespace

long throwing_handler::operator()(int what) const {
  if (what == 0) throw std::system_error(EBUSY, std::generic_category());
  throw 7;
}

struct traffic::state {
  state(const device& d, const grounds& from) : g(from), stream(d) {}
  grounds g;
  world w{};
  simt::stream stream;
  simt::buffer<lane_memory> lanes;
  simt::buffer<std::uint32_t> held, ports;
  simt::buffer<drawn> agreed;
  simt::buffer<unsigned char> warp_bytes, checked_bytes, shared;
  simt::buffer<char> paths;
  simt::buffer<raw_call> raw;
  simt::buffer<int> files, strangers;
  simt::buffer<lane_steps> steps;
  simt::buffer<std::uint32_t> quit;
  simt::buffer<outcome> out;
  simt::buffer<sys::grid_point> points;
};

traffic::traffic(const device& d, const grounds& g, const path_list& list)
    : state_(std::make_unique<state>(d, g)) {
  state& s = *state_;
  const auto here = simt::space::device;
  const std::size_t lanes = std::size_t{g.grid.blocks} * g.grid.threads, warps = lanes / 32;
  s.lanes = simt::buffer<lane_memory>(d, here, lanes);
  s.held = filled(d, std::vector<std::uint32_t>(held_a_block * g.grid.blocks, none));
  s.ports = simt::buffer<std::uint32_t>(d, here, listened);
  s.agreed = simt::buffer<drawn>(d, here, 2 * warps + g.grid.blocks);
  s.warp_bytes = simt::buffer<unsigned char>(d, here, warps * warp_room);
  s.checked_bytes = simt::buffer<unsigned char>(d, here, warps * warp_room);
  s.raw = filled(d, raw_calls());
  s.files = filled(d, g.files);
  s.strangers = filled(d, g.strangers);
  s.steps = simt::buffer<lane_steps>(d, simt::space::pinned, lanes + 1);
  s.quit = simt::buffer<std::uint32_t>(d, simt::space::pinned, 1);
  s.out = simt::buffer<outcome>(d, here, 1);
  s.points = simt::buffer<sys::grid_point>(d, here, g.phases);
  std::vector<char> text;
  for (const auto* part : {&list.inside, &list.strange, &list.outside})
    for (const std::string& one : *part) {
      text.insert(text.end(), one.begin(), one.begin() + std::min<long>(one.size(), path_room));
      text.resize((text.size() + path_room - 1) / path_room * path_room);
      if (one.empty()) text.resize(text.size() + path_room);
    }
  s.paths = filled(d, text);
  s.shared = simt::buffer<unsigned char>(d, simt::space::pinned, shared_room + text.size());
  std::memcpy(s.shared.data(), text.data(), text.size());

  world& w = s.w;
  w.seed = g.seed;
  w.canary = g.canary;
  w.phases = g.phases;
  w.hostile = g.hostile;
  w.in_place = g.in_place;
  w.denied = g.denied;
  w.lanes = s.lanes.data();
  w.held = s.held.data();
  w.agreed = s.agreed.data();
  w.warp_bytes = s.warp_bytes.data();
  w.checked_bytes = s.checked_bytes.data();
  w.shared_paths = reinterpret_cast<const char*>(s.shared.data());
  w.shared = s.shared.data() + text.size();
  w.paths = s.paths.data();
  w.inside = static_cast<std::uint32_t>(list.inside.size());
  w.strange = static_cast<std::uint32_t>(list.strange.size());
  w.outside = static_cast<std::uint32_t>(list.outside.size());
  w.raw = s.raw.data();
  w.raws = static_cast<std::uint32_t>(s.raw.size());
  w.files = g.files.size() < warps ? nullptr : s.files.data();
  w.strangers = s.strangers.data();
  w.strangers_count = static_cast<std::uint32_t>(g.strangers.size());
  w.foreign_count = static_cast<std::uint32_t>(std::min<std::size_t>(g.foreign.size(), 8));
  std::copy_n(g.foreign.begin(), w.foreign_count, w.foreign);
  w.tcp_name_port = htons(g.tcp_port);
  w.udp_name_port = htons(g.udp_port);
  w.ports = s.ports.data();
  w.steps = s.steps.data();
  w.quit = s.quit.data();
  w.out = s.out.data();
  w.points = s.points.data();
}

traffic::~traffic() = default;

std::span<std::byte> traffic::shared_bytes() const {
  return std::as_writable_bytes(std::span(state_->shared.data(), state_->shared.size()));
}

void traffic::start(const sys::server& s) {
  launch_calls(state_->stream, state_->g.grid, state_->w, s.ref());
}

bool traffic::done() const { return state_->stream.done(); }

void traffic::quit() {
  simt::atomic_ref<std::uint32_t, simt::scope::system>(state_->quit[0]).store(1, simt::release);
}

outcome traffic::result() const {
  outcome o{};
  state_->out.copy_to({&o, 1});
  return o;
}

std::span<const lane_steps> traffic::steps() const {
  return {state_->steps.data(), state_->steps.size()};
}

std::uint64_t traffic::places_taken(const device& d, const sys::server& s) {
  simt::buffer<std::uint64_t> taken(d, simt::space::device, 1);
  simt::run(d, {1, 1024}, place_counter{s.ref(), taken.data()});
  std::uint64_t n = 0;
  taken.copy_to({&n, 1});
  return n;
}

}  // namespace grosr::tool::fuzz
