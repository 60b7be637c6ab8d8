#include "grosr/flow/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "flow/graph_core.hpp"
#include "flow/locked.hpp"
#include "grosr/queue/completion.hpp"

namespace grosr::flow {
namespace {

struct named_policy {
  const char* name;
  std::unique_ptr<scheduling_policy> (*make)();
};
constexpr named_policy all_policies[] = {{"first_available", make_first_available},
                                         {"fifo", make_fifo},
                                         {"priority", make_priority},
                                         {"data_aware", make_data_aware}};

std::unique_ptr<scheduling_policy> make_policy(const std::string& name) {
  std::string names;
  for (const named_policy& p : all_policies) {
    if (name == p.name) return p.make();
    names += (names.empty() ? "" : ", ") + std::string(p.name);
  }
  throw error(errc::invalid_option,
              fmt::format("executor: policy '{}' was asked for; there are {}", name, names));
}

simt::buffer<std::uint32_t> pinned_zero(const std::vector<device>& devices) {
  const auto gpu =
      std::find_if(devices.begin(), devices.end(), [](const device& d) { return d.is_cuda(); });
  simt::buffer<std::uint32_t> b(gpu == devices.end() ? devices.front() : *gpu, simt::space::pinned,
                                executor_core::zero_bytes / sizeof(std::uint32_t));
  std::fill(b.data(), b.data() + b.size(), 0u);
  return b;
}

/// A thread that sleeps takes longer to wake.
constexpr std::int64_t soon_ns = 3000;
constexpr std::int64_t locks_ns = 1000, long_ns = 1'000'000;
constexpr std::int64_t linger_ns = 50'000'000;
/// A thread that is away for so long does not come back soon.
constexpr std::int64_t overdue_ns = 50'000;
/// How often a thread asks what has come while another one starts functions.
constexpr std::int64_t look_again_ns = 10'000;

/// As input_bytes has them.
std::size_t bytes_of_inputs(const node_core& n, space_number s) {
  std::size_t sum = 0;
  for (const port_core& p : n.ports)
    if (p.held && p.held.block.is_valid_in(s) &&
        (n.on_host || !p.held.block.is_valid_in(host_space)))
      sum += block_users::bytes_of(p.held.block);
  return sum;
}

/// The executor whose thread this is; null: none's.
thread_local const executor_core* serves = nullptr;

/// Of a thread of the program.
struct served_here {
  explicit served_here(const executor_core* e) : before(std::exchange(serves, e)) {}
  served_here(const served_here&) = delete;
  ~served_here() { serves = before; }
  const executor_core* const before;
};

}  // namespace

// ---- threads ----

executor_core::executor_core(const executor_options& o)
    : memory(o.devices), options(o), zero(pinned_zero(o.devices)), policy_(make_policy(o.policy)) {
  if (o.depth == 0)
    throw error(errc::invalid_option,
                "executor: depth 0 was asked for; at least 1 invocation must be "
                "under way on a device");
  units_.emplace_back().depth = std::max(o.threads, 1u);
  for (const device& d : o.devices) {
    unit& u = units_.emplace_back();
    u.depth = o.depth;
    for (unsigned i = 0; i < streams_each; ++i) u.streams.emplace_back(d);
  }
  std::string file = o.trace;
  if (const char* asked = std::getenv("GROSR_TRACE"); file.empty() && asked != nullptr)
    file = asked;
  if (!file.empty()) {
    trace = std::make_shared<trace_recorder>(file, o.devices);
    block_users::tell_copies(memory, [t = trace](const block_copy& c) {
      const looks_for* const whom = looks_for::here();
      t->add(c, whom ? whom->what : "for the program", whom ? whom->reason : "the program looks");
    });
  }
}

executor_core::~executor_core() = default;

void executor_core::start() {
  try {
    presences_.resize(options.threads);
    for (presence& p : presences_) threads_.emplace_back([this, &p] { serve(p); });
  } catch (const std::system_error& e) {
    end();
    throw error(
        errc::out_of_memory,
        fmt::format("executor: {} threads were asked for, and {} could be started ({}); ask "
                    "for fewer, or raise the limit (ulimit -u)",
                    options.threads, threads_.size(), e.code().message()));
  }
}

void executor_core::end() {
  {
    const auto lock = locked(mutex);
    ends_ = true;
  }
  work.notify_all();
  for (std::thread& t : threads_)
    if (t.joinable()) t.join();
}

void executor_core::write_trace() noexcept {
  if (trace) try {
      trace->write();
    } catch (const std::exception& e) {  // nothing else would say that it was not written
      std::fprintf(stderr, "grosr: %s\n", e.what());
    }
}

std::int64_t executor_core::now() const { return options.clock ? options.clock() : ticks(); }

std::int64_t executor_core::ticks() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool executor_core::is_served_here() const { return serves == this; }

void executor_core::check_outside(const char* asked) const {
  if (serves == this)
    throw error(errc::misuse,
                fmt::format("{} was called by a node's function, whose executor would wait "
                            "for itself; let an output or input of the node do it",
                            asked));
}

/// A thread that does short things one after the other does them sooner than two that take turns,
/// and wait for each other's locks: one more begins where something has waited for longer.
void executor_core::serve(presence& self) {
  serves = this;
  lock_type lock = locked(mutex);
  come_back(self);
  for (unsigned idle = 0; !ends_;) {
    look_at_deadlines();
    if (quick_ != 1) discount_overdue();
    running r;
    if (!queue_.empty() && (quick_ == 1 || is_worth_a_thread(ticks()))) r = next();
    const bool is_new = r != nullptr;
    bool looked = false;
    if (!is_new && !looking_ && (!coming_.empty() || !under_way_.empty()) &&
        (quick_ == 1 || ticks() - looked_ > look_again_ns)) {
      looked = true;
      lock.unlock();
      r = look_after();
      memory.free_borrowed();
      lock = locked(mutex);
      looked_ = ticks();
    }
    if (r) {
      idle = 0;
      execute(std::move(r), is_new, self, lock);
    } else if ((looked || (helped_ && quick_ == 1)) && ++idle < 200) {
      lock.unlock();
      std::this_thread::yield();
      lock = locked(mutex);
    } else {
      rest(self, lock, looked);
    }
  }
  go_away(self);
}

void executor_core::come_back(presence& p) {
  if (!p.is_quick) ++quick_;
  p = {true, 0};
}
void executor_core::go_away(presence& p) {
  if (p.is_quick) --quick_;
  p.is_quick = false;
}

/// Threads that were to be back soon and are not, are not counted on.
void executor_core::discount_overdue() {
  const std::int64_t t = ticks();
  for (presence& p : presences_)
    if (p.is_quick && p.gone_since != 0 && t - p.gone_since > overdue_ns) go_away(p);
}

/// Whether what has waited longest is for another thread, too: functions that take no longer than
/// the locks around them are not.
bool executor_core::is_worth_a_thread(std::int64_t now) const {
  const std::int64_t waited = now - queue_.front().since;
  const node_core& n = queue_.front().of->nodes[queue_.front().node];
  const bool is_short = n.mean_function != 0 && n.mean_function < locks_ns;
  return waited > (is_short ? long_ns : soon_ns);
}

void executor_core::execute(running r, bool is_new, presence& self, lock_type& lock) {
  const double takes = r->of->nodes[r->node].mean_function;
  ran_at_ = self.gone_since = ticks();
  if (r->unit == 0 && (takes == 0 || takes > soon_ns)) go_away(self);
  if (sleeping_ != 0 && sleeping_with_limit_ == 0)
    work.notify_one();
  else
    wake_for_the_rest(ran_at_);
  lock.unlock();
  if (is_new)
    run(std::move(r));
  else
    run_on_host(std::move(r));
  memory.free_borrowed();
  lock = locked(mutex);
  come_back(self);
}

/// Until there may be something to do. While functions run, and for a while after, one of those who
/// sleep looks again by itself: a function that was short may take long this time, and even wait
/// for what is queued.
void executor_core::rest(presence& self, lock_type& lock, bool soon) {
  ++sleeping_;
  go_away(self);
  const bool runs =
      quick_ != 0 || helped_ || (options.threads != 1 && ticks() - ran_at_ < linger_ns);
  const bool limited = soon || !watched.empty() || (runs && sleeping_with_limit_ == 0);
  if (limited) {
    ++sleeping_with_limit_;
    work.wait_for(lock, std::chrono::microseconds(soon ? 20 : quick_ != 0 ? 200 : 1000));
    --sleeping_with_limit_;
  } else {
    work.wait(lock);
  }
  come_back(self);
  --sleeping_;
}

/// Every millisecond, by whichever thread comes by.
void executor_core::look_at_deadlines() {
  if (watched.empty()) return;
  const std::int64_t t = now();
  if (t - looked_at_deadlines_ < 1'000'000) return;
  looked_at_deadlines_ = t;
  for (graph_core* g : watched) g->look_at_deadlines();
}

/// A thread that goes to run a function leaves to another one what else there is, where that waits
/// or would wait.
void executor_core::wake_for_the_rest(std::int64_t now) {
  if (sleeping_ == 0) return;
  const bool queued =
      std::any_of(facts_.begin(), facts_.end(),
                  [&](const queued_node& n) { return (n.units & ~launching_) != 0; }) &&
      (quick_ == 0 || is_worth_a_thread(now));
  if (queued || (quick_ == 0 && !looking_ && (!coming_.empty() || !under_way_.empty())))
    work.notify_one();
}

bool executor_core::step() {
  const served_here here(this);
  running r;
  std::size_t under_way = 0;
  {
    const auto lock = locked(mutex);
    look_at_deadlines();
    r = next();
    if (!r && coming_.empty() && under_way_.empty()) return false;
    under_way = under_way_.size();
  }
  if (r) {
    run(std::move(r));
    memory.free_borrowed();
    return true;
  }
  running ready = look_after();
  memory.free_borrowed();
  if (ready) {
    run_on_host(std::move(ready));
    return true;
  }
  const auto lock = locked(mutex);
  return under_way_.size() != under_way;
}

// ---- what runs next ----

void executor_core::enqueue(graph_core* g, unsigned node) {
  const node_core& n = g->nodes[node];
  const std::uint64_t devices = ((std::uint64_t{1} << units_.size()) - 1) & ~std::uint64_t{1};
  queue_.push_back({g, node, options.clock ? ticks() : n.queued_at});
  facts_.push_back({n.queued_at, n.mean_wait, n.mean_run, g->options.priority,
                    (n.on_host ? 1u : 0u) | (n.on_device ? devices : 0), g});
}

void executor_core::begin_queued(lock_type& lock, bool helps) noexcept {
  if (queue_.empty() || options.threads == 0) return;
  helps = helps && quick_ == 0 && !helped_ &&
          std::none_of(facts_.begin(), facts_.end(),
                       [](const queued_node& n) { return n.can_run_on(0); });
  running r = helps ? next() : nullptr;
  if (!r) return wake_for_the_rest(ticks());
  helped_ = true;
  work.notify_one();
  lock.unlock();
  queue::hand_over_kept();  // a function may take long
  {
    const served_here here(this);
    run(std::move(r));
  }
  lock = locked(mutex);
  helped_ = false;
  wake_for_the_rest(ticks());
}

void executor_core::forget(graph_core* g) {
  for (std::size_t i = queue_.size(); i-- != 0;) {
    if (queue_[i].of != g) continue;
    g->nodes[queue_[i].node].state = run_state::waiting;
    take_out(i);
    g->leave();
  }
}

void executor_core::take_out(std::size_t i) {
  queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(i));
  facts_.erase(facts_.begin() + static_cast<std::ptrdiff_t>(i));
}

executor_core::running executor_core::next() {
  if (queue_.empty()) return nullptr;
  choice chosen{0, 0, "nothing else was queued"};
  const node_core& first = queue_[0].of->nodes[queue_[0].node];
  // Most often there is nothing to choose.
  if (queue_.size() != 1 || first.on_device || units_[0].running >= units_[0].depth) {
    loads_.clear();
    for (std::size_t i = 0; i < units_.size(); ++i)
      loads_.push_back({units_[i].running, units_[i].depth, (launching_ >> i & 1) != 0});
    if (std::none_of(loads_.begin(), loads_.end(), [](const auto& l) { return l.has_room(); }))
      return nullptr;
    struct looks final : input_bytes {
      explicit looks(executor_core& e) : e(e) {}
      std::span<const std::size_t> of(std::size_t i) override {
        e.bytes_.clear();
        for (space_number s = 0; s < e.units_.size(); ++s)
          e.bytes_.push_back(bytes_of_inputs(e.queue_[i].of->nodes[e.queue_[i].node], s));
        return e.bytes_;
      }
      executor_core& e;
    } bytes(*this);
    const auto c = policy_->choose(facts_, loads_, now(), bytes);
    if (!c) return nullptr;
    chosen = *c;
  }
  const queued q = queue_[chosen.node];
  take_out(chosen.node);
  running r;
  begin(q, chosen, r);
  return r;
}

// ---- executor ----

executor::executor(const executor_options& options)
    : core_(std::make_shared<executor_core>(options)) {
  try {
    core_->start();
  } catch (...) {
    core_->write_trace();
    throw;
  }
}

executor::~executor() {
  // What a forked child has is a copy without the threads, and with locks as they were.
  if (core_->made_in != simt::this_process()) {
    simt::leave(new std::shared_ptr<executor_core>(core_));
    return;
  }
  core_->end();
  core_->write_trace();
}

block_memory& executor::memory() { return core_->memory; }

bool executor::step() {
  if (core_->options.threads != 0)
    throw error(errc::misuse,
                "executor: step() was called, and it has threads, which do all there is; "
                "make one with 0 threads");
  return core_->step();
}

std::vector<std::string> executor::policies() {
  std::vector<std::string> names;
  for (const named_policy& p : all_policies) names.push_back(p.name);
  return names;
}

}  // namespace grosr::flow
