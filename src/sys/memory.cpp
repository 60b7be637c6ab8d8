// What a server takes at its start.
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <system_error>

#include "grosr/simt/affinity.hpp"
#include "sys/deferred.hpp"
#include "sys/service.hpp"
#include "sys/waiting_call.hpp"

namespace grosr::sys {
namespace {

using namespace std::chrono_literals;

void refuse(const std::string& what, std::uint64_t asked, const std::string& range) {
  throw error(errc::invalid_option,
              fmt::format("server option {}: {} was asked for; it must be {}", what, asked, range));
}

std::uint32_t resident_warps(device d) {
  const device_properties p = d.properties();
  return d.is_cuda() ? p.sms * p.max_threads_per_sm / simt::warp_size : 64;
}

}  // namespace

options service::completed(device d, options o) {
  if (o.threads == 0) o.threads = std::clamp(std::thread::hardware_concurrency() / 4, 1u, 4u);
  if (o.threads > 256) refuse("threads", o.threads, "from 1 to 256");
  if (o.shards == 0)
    o.shards = std::min(256u, std::bit_ceil(std::max(d.is_cuda() ? 16u : 4u, 2 * o.threads)));
  if (o.records == 0) o.records = d.is_cuda() ? 16384 : 1024;
  if (!std::has_single_bit(o.shards) || o.shards > 256)
    refuse("shards", o.shards, "a power of two from 1 to 256");
  if (!std::has_single_bit(o.records) || o.records < 32 || o.records > 1u << 24)
    refuse("records", o.records, fmt::format("a power of two from 32 to {}", 1u << 24));
  if (o.blocking_threads == 0 || o.blocking_threads > 4096)
    refuse("blocking_threads", o.blocking_threads, "from 1 to 4096");
  if (o.handler_threads == 0 || o.handler_threads > 4096)
    refuse("handler_threads", o.handler_threads, "from 1 to 4096");
  // Counts of nanoseconds must not wrap around.
  constexpr std::chrono::hours longest{24 * 365};
  o.patience = std::clamp<std::chrono::milliseconds>(o.patience, 0ms, longest);
  o.exit_patience = std::clamp<std::chrono::milliseconds>(o.exit_patience, 0ms, longest);
  o.spin = std::clamp<std::chrono::microseconds>(o.spin, 0us, longest);
  const std::uint32_t warps = resident_warps(d);
  if (o.calls_in_flight == 0) o.calls_in_flight = warps * simt::warp_size;
  if (o.calls_in_flight < 32 || o.calls_in_flight > 1u << 23)
    refuse("calls_in_flight", o.calls_in_flight, "from 32 to 8388608");
  o.calls_in_flight = (o.calls_in_flight + 31) / 32 * 32;
  if (o.calls_per_second > 1'000'000'000)
    refuse("calls_per_second", o.calls_per_second, "at most 1000000000, or 0 for no limit");
  if (o.awaited_calls < 32 || o.awaited_calls > 1u << 22)
    refuse("awaited_calls", o.awaited_calls, "from 32 to 4194304");
  o.awaited_calls = (o.awaited_calls + 31) / 32 * 32;
  // The machine's memory, halved: what a program can lose to its kernels and still run.
  if (o.mapped_bytes == 0)
    o.mapped_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                     static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) / 2;
  if (o.mappings == 0) o.mappings = ~std::uint64_t{0};  // map_room bounds them
  const std::uint32_t usual[] = {std::max(1024u, warps * 2), std::max(256u, warps / 2),
                                 std::max(64u, warps / 8)};
  for (unsigned s = 0; s < chunk_sizes; ++s) {
    if (o.chunks[s] == 0) o.chunks[s] = usual[s];
    if (o.chunks[s] > 1u << 20) refuse("chunks", o.chunks[s], fmt::format("at most {}", 1u << 20));
    o.chunks[s] = (o.chunks[s] + 31) / 32 * 32;
  }
  return o;
}

service::service(device d, const options& o)
    : device_(d),
      options_(completed(d, o)),
      batch_(0),
      copies_(d.is_cuda() || options_.use_arena),
      descriptors_(options_.descriptors, options_.threads + 1),
      memory_bytes_(options_.mapped_bytes),
      memory_mappings_(options_.mappings),
      waiting_(nullptr, [](unsigned char* p) { std::free(p); }),
      rate_(options_.calls_per_second),
      printed_(options_.print_to),
      audit_(options_.audit_to),
      deferred_(new deferred_calls(*this)),
      workers_(options_.blocking_threads),
      handler_workers_(options_.handler_threads),
      ring_(options_.io_uring),
      doorbell_(d, [this] { serve_on_doorbell(); }) {
  if (!options_.policy.folders.empty())
    folders_ = std::make_unique<folders>(options_.policy.folders);
  make_memory();
  ns_per_tick_ = since_start_.ns();
  for (unsigned i = 0; i < options_.threads; ++i) {
    threads_.push_back(std::make_unique<service_thread>());
    threads_.back()->number = i;
  }
  doorbell_worker_ = std::make_unique<service_thread>();
  doorbell_worker_->number = options_.threads;
  for (auto& t : threads_) t->seen.resize(shards_.size());
  doorbell_worker_->seen.resize(shards_.size());
  awake_ = options_.threads;
  // Fewer processors than threads that spin would not do, however near.
  if (options_.pin) near_ = simt::processors_near(device_);
  if (near_.size() < options_.threads) near_.clear();
  unsigned started = 0;
  try {
    for (auto& t : threads_) {
      t->thread = quiet_thread("grosr sys", [this, own = t.get()] {
        if (!near_.empty()) simt::set_affinity(near_);
        run(*own);
      });
      ++started;
    }
  } catch (const std::system_error& e) {
    end_threads();
    refuse("threads", options_.threads,
           fmt::format("at most {}, since no more could be started ({})", started,
                       e.code().message()));
  }
  at_exit_.emplace([this] { leave(); });
}

void service::make_memory() {
  const auto space_of = simt::space::device;
  slots_ = options_.calls_in_flight + options_.awaited_calls;
  const std::uint32_t slot_words = options_.calls_in_flight / 32;
  const std::uint32_t awaited_words = options_.awaited_calls / 32;
  std::vector<queue::call_ring_ref> refs;
  for (unsigned i = 0; i < options_.shards; ++i) {
    shards_.push_back(std::make_unique<shard>(device_, options_.records));
    refs.push_back(shards_.back()->ring.ref());
  }
  refs_ = simt::buffer<queue::call_ring_ref>(device_, space_of, refs.size());
  refs_.copy_from(refs);

  std::uint32_t words = 2 * slot_words + awaited_words;
  std::size_t bytes = 0;
  for (unsigned s = 0; s < chunk_sizes; ++s) {
    words += options_.chunks[s] / 32;
    bytes += std::size_t{options_.chunks[s]} * chunk_stride(s);
  }
  words_ = simt::buffer<std::uint32_t>(device_, space_of, words);
  awaited_ = simt::buffer<awaited_chunk>(
      device_, space_of, options_.chunks[0] + options_.chunks[1] + options_.chunks[2]);
  detached_ = simt::buffer<detached_call>(device_, space_of, slots_);
  replies_ = simt::buffer<simt::bus_word>(device_, simt::space::pinned, options_.calls_in_flight);
  arena_ = simt::buffer<unsigned char>(device_, simt::space::pinned, bytes);
  shared_ = simt::buffer<shared_ranges>(device_, space_of, 1);
  view_ = simt::buffer<sys::view>(device_, space_of, 1);
  // Pages that are never touched are never there.
  waiting_.reset(static_cast<unsigned char*>(std::calloc(slots_, sizeof(waiting_call))));
  if (!waiting_) throw std::bad_alloc();

  view v{};
  v.shards = refs_.data();
  v.slots = {words_.data(), slot_words};
  v.detached = words_.data() + slot_words;
  v.awaited_slots = {words_.data() + 2 * slot_words, awaited_words};
  v.first_awaited = options_.calls_in_flight;
  std::uint32_t* next = words_.data() + 2 * slot_words + awaited_words;
  unsigned char* at = arena_.data();
  awaited_chunk* awaited = awaited_.data();
  for (unsigned s = chunk_sizes; s-- > 0;) {  // the largest first, which must be aligned most
    v.chunks[s] = {next, options_.chunks[s] / 32};
    // A quarter is left to others: awaited calls may hold theirs for long.
    const std::uint32_t chunk_words = options_.chunks[s] / 32;
    v.awaited_chunks[s] = {next,
                           chunk_words - (chunk_words + 3) / 4 + (chunk_words == 1 ? 1u : 0u)};
    v.arena[s] = at;
    v.awaited[s] = awaited;
    awaited += options_.chunks[s];
    next += options_.chunks[s] / 32;
    at += std::size_t{options_.chunks[s]} * chunk_stride(s);
  }
  v.replies = replies_.data();
  v.detached_calls = detached_.data();
  v.shared = shared_.data();
  v.doorbell = doorbell_.ref();
  v.patience_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(options_.patience).count());
  v.shard_count = options_.shards;
  v.shard_shift = static_cast<std::uint32_t>(std::countr_zero(options_.shards));
  v.warps_per_sm =
      device_.is_cuda() ? device_.properties().max_threads_per_sm / simt::warp_size : 1;
  v.host_sees_all = copies_ ? 0 : 1;
  view_.copy_from({&v, 1});
}

void service::share(const void* at, std::size_t bytes) {
  std::unique_lock lock(shared_lock_);
  if (shared_host_.count == max_shared_ranges)
    throw error(errc::invalid_option,
                fmt::format("share {} bytes with kernels: there are {} ranges already, as many as "
                            "there can be; share one that holds several",
                            bytes, max_shared_ranges));
  const auto begin = reinterpret_cast<std::uint64_t>(at);
  shared_host_.at[shared_host_.count] = {begin, begin + bytes};
  // Ranges first, then their count: kernels may be looking.
  ++shared_host_.count;
  auto* to = reinterpret_cast<unsigned char*>(shared_.data());
  simt::copy_bytes(device_, to + offsetof(shared_ranges, at), shared_host_.at,
                   sizeof shared_host_.at);
  simt::copy_bytes(device_, to, &shared_host_.count, sizeof shared_host_.count);
}

sys::statistics service::statistics() const {
  sys::statistics s;
  for (const auto& t : threads_) t->counts.sum(s);
  doorbell_worker_->counts.sum(s);
  waiting_counts_.sum(s);
  s.unwritten = printed_.lost();
  s.unaudited = audit_.lost();
  std::sort(s.calls.begin(), s.calls.end(),
            [](const auto& a, const auto& b) { return a.calls > b.calls; });
  s.device_memory =
      words_.bytes() + detached_.bytes() + awaited_.bytes() + refs_.bytes() + sizeof(sys::view);
  s.host_memory = replies_.bytes() + arena_.bytes() +
                  std::size_t{options_.shards} * options_.records * queue::record_words * 16;
  return s;
}

}  // namespace grosr::sys
