// `grosr-fuzz syscalls`: kernels make random calls, right and wrong ones, of servers that
// come and go; what they must not reach is watched. A finding ends the program with exit code 1 and
// the last calls of every lane; the round's seed replays it, as far as threads allow.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fmt/format.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string_view>
#include <thread>

#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/text.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/fuzz_canaries.hpp"
#include "fuzz/fuzz_jail.hpp"
#include "fuzz/fuzz_peers.hpp"
#include "fuzz/syscalls_fuzz.hpp"
#include "net/socket.hpp"

namespace grosr::tool {
namespace {

using namespace std::chrono_literals;

/// What each thread of the program does: its name, and the number and arguments of the system call
/// that it is in.
std::string threads() {
  std::string text;
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    for (const char* file : {"comm", "syscall", "wchan"}) {
      std::string line;
      std::getline(std::ifstream(task.path() / file), line);
      text += (text.empty() || text.back() == '\n' ? "thread " : ", ") + line;
    }
    text += "\n";
  }
  return text;
}

/// Ends the program when something takes longer than was said.
class watchdog {
 public:
  watchdog() : thread_([this] { run(); }) {}
  ~watchdog() {
    {
      std::lock_guard lock(lock_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void expect(const char* what, clock::duration within) {
    std::lock_guard lock(lock_);
    what_ = what;
    until_ = clock::now() + within;
  }

 private:
  void run() {
    std::unique_lock lock(lock_);
    while (!ends_) {
      changed_.wait_for(lock, 100ms);
      if (!ends_ && clock::now() > until_) end_with(fmt::format("hangs: {}\n{}", what_, threads()));
    }
  }
  std::mutex lock_;
  std::condition_variable changed_;
  const char* what_ = "the start";
  clock::time_point until_ = clock::now() + 1h;
  bool ends_ = false;
  std::thread thread_;
};

/// Whether bytes of the program are there, which repeat a word, wherever they begin.
bool holds_canary(std::string_view text) {
  std::uint64_t word = canaries::magic;
  for (unsigned i = 0; i < 8; ++i, word = word << 8 | word >> 56)
    if (text.find(std::string_view(reinterpret_cast<const char*>(&word), 8)) != text.npos)
      return true;
  return false;
}

/// Reads what kernels print, counts the texts that are marked, and looks for bytes of the program.
class print_reader {
 public:
  explicit print_reader(bool slow) {
    if (::pipe2(ends_, O_CLOEXEC) != 0) throw error(errc::out_of_memory, "make a pipe");
    thread_ = std::thread([this, slow] {
      char some[8192];
      std::string last;  // and what came before it
      for (;;) {
        const ssize_t n = ::read(ends_[0], some, sizeof some);
        if (n <= 0) return;
        count_ += static_cast<std::uint64_t>(std::count(some, some + n, '\1'));
        last.append(some, static_cast<std::size_t>(n));
        if (holds_canary(last)) end_with("a text that was printed has bytes of the program");
        last.erase(0, last.size() - std::min<std::size_t>(last.size(), 7));
        if (slow) std::this_thread::sleep_for(2ms);
      }
    });
  }
  ~print_reader() { count(); }
  int to() const { return ends_[1]; }
  /// Once nobody writes any more.
  std::uint64_t count() {
    if (thread_.joinable()) {
      ::close(ends_[1]);
      thread_.join();
      ::close(ends_[0]);
    }
    return count_;
  }

 private:
  int ends_[2] = {-1, -1};
  std::uint64_t count_ = 0;
  std::thread thread_;
};

enum class ending { quits, stopped, destroyed, last };

/// What one round is, drawn from its seed.
struct plan_of_round {
  std::uint64_t seed;
  ending end;
  bool denied, hostile, arena, slow_reader, audited;
  simt::shape grid;
  clock::duration time;
  sys::options options;

  std::string text() const {
    const char* const ends[] = {"kernels quit", "stop", "destroyed with calls under way"};
    return fmt::format(
        "round seed {}: {}, {}, {}, {} blocks of {}, {} threads, {} shards of {}, chunks {} {} {}, "
        "patience {} ms, {} descriptors, {} calls in flight, {} a second{}{}, ends: {}",
        seed, denied ? "nothing allowed" : "a folder and the network",
        hostile ? "hostile" : "checked", arena ? "through the arena" : "in place", grid.blocks,
        grid.threads, options.threads, options.shards, options.records, options.chunks[0],
        options.chunks[1], options.chunks[2], options.patience.count(), options.descriptors,
        options.calls_in_flight, options.calls_per_second, options.io_uring ? ", io_uring" : "",
        audited ? ", audited" : "", ends[static_cast<unsigned>(end)]);
  }
};

class fuzzer {
 public:
  explicit fuzzer(const device& d) : where_(d) {}

  void round(std::uint64_t seed);
  void report(session& s, double seconds, std::uint64_t first_seed) const;
  /// What is known of the round that is under way.
  std::string state() const {
    std::string text = plan_ ? plan_->text() + "\n" : "";
    if (traffic_ != nullptr) text += fuzz::text_of(traffic_->steps(), plan_->grid.threads, 2);
    return text;
  }

 private:
  plan_of_round drawn(std::uint64_t seed);
  void run_server(const plan_of_round& p, fuzz::traffic& t, print_reader& reader,
                  const std::vector<int>& files);
  void sum(const fuzz::outcome& o);
  void expect(const std::string& wrong) const {
    if (!wrong.empty()) end_with(wrong);
  }

  device where_;
  canaries canaries_;
  descriptor nowhere_{::open("/dev/null", O_WRONLY | O_CLOEXEC)};  // where audit logs go
  watchdog watch_;
  std::optional<plan_of_round> plan_;
  fuzz::traffic* traffic_ = nullptr;
  std::mt19937_64 dice_;
  fuzz::outcome all_{};
  std::uint64_t rounds_ = 0, ends_[3]{}, denied_ = 0, hostile_ = 0, in_place_ = 0, drains_ = 0;
  std::uint64_t resident_begin_ = 0, resident_ = 0;
  std::string odd_;
};

plan_of_round fuzzer::drawn(std::uint64_t seed) {
  dice_.seed(seed);
  const auto below = [&](std::uint64_t n) { return dice_() % n; };
  plan_of_round p{};
  p.seed = seed;
  p.end = static_cast<ending>(below(3));
  p.denied = below(5) == 0;
  p.hostile = below(2) == 0;
  p.arena = where_.is_cuda() || below(4) != 0;
  p.slow_reader = below(4) == 0;
  const unsigned most = where_.is_cuda() ? where_.properties().sms * 2 : 4;
  p.grid = {1 + static_cast<unsigned>(below(most)), 32 * (1 + static_cast<unsigned>(below(3)))};
  p.time = std::chrono::milliseconds(below(8) == 0 ? 2000 : 20 + below(400));
  sys::options& o = p.options;
  o.threads = 1 + static_cast<unsigned>(below(3));
  o.shards = 1u << below(4);
  o.records = 32u << below(6);
  for (auto& chunks : o.chunks) chunks = below(3) == 0 ? 0 : 32u << below(4);
  o.patience = std::chrono::milliseconds(below(3) == 0 ? 1 : 50 + below(500));
  o.exit_patience = std::chrono::milliseconds(below(2) == 0 ? 10 : 300);
  o.spin = std::chrono::microseconds(below(2) == 0 ? 0 : 200);
  o.descriptors = below(4) == 0 ? 8 : 256;
  o.blocking_threads = below(4) == 0 ? 1 : 32;
  o.use_arena = p.arena;
  o.io_uring = below(3) != 0;
  if (below(4) == 0) o.calls_in_flight = 32u << below(4);
  if (below(16) == 0) o.calls_per_second = 2000u << below(8);
  p.audited = below(4) == 0;
  if (!p.denied) {
    o.policy.folders = {{canaries_.rw(), sys::access::write}, {canaries_.ro(), sys::access::read}};
    o.policy.network = true;
  }
  return p;
}

void fuzzer::run_server(const plan_of_round& p, fuzz::traffic& t, print_reader& reader,
                        const std::vector<int>& files) {
  sys::options o = p.options;
  o.print_to = reader.to();
  if (p.audited) o.audit_to = nowhere_.fd();
  watch_.expect("the server's start", 60s);
  auto server = std::make_unique<sys::server>(where_, o);
  server->install(fuzz::add_handler{});
  server->install(fuzz::throwing_handler{});
  server->share(t.shared_bytes());
  for (int fd : files) server->grant(fd);
  watch_.expect("the launch", 60s);
  t.start(*server);
  watch_.expect("host calls while kernels run", 60s);
  for (const auto until = clock::now() + p.time; clock::now() < until && !t.done();) {
    switch (dice_() % 8) {
      case 0:
        server->coalesce(static_cast<unsigned>(dice_() % 300),
                         std::chrono::microseconds(dice_() % 100));
        break;
      case 1:
        try {
          server->drain(std::chrono::milliseconds(dice_() % 30));
          ++drains_;
        } catch (const error& e) {
          if (e.code() != errc::timed_out) throw;  // some wait for a peer
        }
        break;
      case 2:
        server->statistics();
        break;
      default:
        std::this_thread::sleep_for(2ms);
    }
    expect(canaries_.touched());
  }
  if (p.end == ending::destroyed) {
    watch_.expect("the end of a server whose calls are under way", 40s);
    std::thread quitter([&] {
      std::this_thread::sleep_for(o.exit_patience + 50ms);
      t.quit();
    });
    server.reset();
    quitter.join();
  } else {
    if (p.end == ending::quits) {
      t.quit();
      watch_.expect("kernels that quit", 60s);
      const auto until = clock::now() + 1s + p.options.patience;
      while (!t.done() && clock::now() < until) std::this_thread::sleep_for(1ms);
    }
    server->stop();
    t.quit();
    watch_.expect("kernels of a server that was stopped", 40s);
    while (!t.done()) std::this_thread::sleep_for(1ms);
    watch_.expect("the last drain", 40s);
    try {
      server->drain(20s);
    } catch (const error& e) {
      end_with(fmt::format("calls that do not end after stop(): {}", e.what()));
    }
    if (const auto taken = fuzz::traffic::places_taken(where_, *server); taken != 0)
      end_with(fmt::format("{} slots and chunks leaked", taken));
    watch_.expect("the server's end", 40s);
    server.reset();
  }
  while (!t.done()) std::this_thread::sleep_for(1ms);
}

void fuzzer::round(std::uint64_t seed) {
  plan_ = drawn(seed);
  const plan_of_round& p = *plan_;
  watch_.expect("making the folder", 60s);
  canaries_.furnish();
  const auto open_before = open_descriptors();
  {
    print_reader reader(p.slow_reader);
    fuzz_peers peers(seed);
    fuzz::grounds g;
    g.seed = seed;
    g.grid = p.grid;
    g.phases = 1 << 14;
    g.hostile = p.hostile;
    g.in_place = !p.arena;
    g.denied = p.denied;
    g.canary = canaries::magic;
    g.strangers = canaries_.strangers();
    g.foreign = canaries_.memory();
    g.tcp_port = peers.tcp_port();
    g.udp_port = peers.udp_port();
    for (unsigned i = 0; i < p.grid.blocks * p.grid.threads / 32; ++i) {
      g.files.push_back(::memfd_create("checked", MFD_CLOEXEC));
      if (g.files.back() < 0) throw error(errc::out_of_memory, "make a memfd: not possible");
    }
    {
      fuzz::traffic t(where_, g, canaries_.paths());
      traffic_ = &t;
      try {
        run_server(p, t, reader, g.files);
      } catch (const std::exception& e) {
        end_with(e.what());
      }
      const fuzz::outcome o = t.result();
      watch_.expect("looking at what was touched", 60s);
      if (o.wrong != 0)
        end_with(fmt::format("{} (lane {}, number {:#x}, result {}; {} in all)",
                             fuzz::name_of_wrong(o.wrong_kind), o.wrong_lane, o.wrong_number,
                             o.wrong_result, o.wrong));
      const std::uint64_t texts = reader.count();
      // Callers that are hostile print what others printed, and write over it.
      if (!p.hostile && texts != o.printed)
        end_with(fmt::format("{} texts were printed and {} came", o.printed, texts));
      expect(canaries_.changed());
      sum(o);
      traffic_ = nullptr;
    }
    for (int fd : g.files) ::close(fd);
  }
  const auto open_after = open_descriptors();
  for (const auto& [fd, to] : open_after)
    if (!open_before.contains(fd)) end_with(fmt::format("descriptor {} leaked: {}", fd, to));
  for (const auto& [fd, to] : open_before)
    if (!open_after.contains(fd)) end_with(fmt::format("descriptor {} was closed: {}", fd, to));
  if (const std::string odd = odd_mappings(); odd != odd_) end_with("mappings leaked: " + odd);
  ++rounds_;
  ++ends_[static_cast<unsigned>(p.end)];
  denied_ += p.denied;
  hostile_ += p.hostile;
  in_place_ += !p.arena;
  resident_ = status_bytes("VmRSS:");
  if (rounds_ == 20) resident_begin_ = resident_;
}

void fuzzer::sum(const fuzz::outcome& o) {
  all_.calls += o.calls;
  all_.errors += o.errors;
  all_.waits_lost += o.waits_lost;
  all_.printed += o.printed;
  all_.checked += o.checked;
  all_.refused += o.refused;
  for (unsigned i = 0; i < static_cast<unsigned>(fuzz::op::count); ++i) all_.by_op[i] += o.by_op[i];
}

void fuzzer::report(session& s, double seconds, std::uint64_t first_seed) const {
  row r(fmt::format("random calls for {} s", three_digits(seconds)));
  std::string never;
  for (unsigned i = 0; i < static_cast<unsigned>(fuzz::op::count); ++i)
    if (all_.by_op[i] == 0) never += fmt::format(" {}", fuzz::name_of(static_cast<fuzz::op>(i)));
  const double growth = resident_begin_ == 0 || resident_ < resident_begin_
                            ? 0
                            : static_cast<double>(resident_ - resident_begin_);
  r.set("seconds", seconds)
      .set("first_seed", static_cast<double>(first_seed))
      .set("rounds", static_cast<double>(rounds_))
      .set("calls", static_cast<double>(all_.calls))
      .set("calls_per_s", static_cast<double>(all_.calls) / seconds)
      .set("errors", static_cast<double>(all_.errors))
      .set("refused", static_cast<double>(all_.refused))
      .set("checked", static_cast<double>(all_.checked))
      .set("printed", static_cast<double>(all_.printed))
      .set("dropped", static_cast<double>(all_.waits_lost))
      .set("drains", static_cast<double>(drains_))
      .set("rounds_that_quit", static_cast<double>(ends_[0]))
      .set("rounds_stopped", static_cast<double>(ends_[1]))
      .set("rounds_destroyed", static_cast<double>(ends_[2]))
      .set("rounds_denied", static_cast<double>(denied_))
      .set("rounds_hostile", static_cast<double>(hostile_))
      .set("rounds_in_place", static_cast<double>(in_place_))
      .set("host_growth_bytes", growth)
      .check(rounds_ != 0 && all_.calls != 0, "nothing was called")
      .check(rounds_ < 50 || never.empty(), "never called:" + never)
      .check(growth < 64 << 20,
             "the program grew by " + grouped(static_cast<std::uint64_t>(growth)))
      .note("no crash, hang, leak, wrong result or escape; any ends the run");
  s.out.add(r);
}

}  // namespace

void fuzz_syscalls(session& s) {
  if (s.gpu())
    throw usage_error(
        "syscalls on " + s.where.name() +
        ": its kernels are built for the CPU only, since ptxas takes more than 6 GB for them; add "
        "--device host:0");
  const auto seconds = static_cast<double>(s.number(0).value_or(5));
  const std::uint64_t seed = s.number(1).value_or(std::random_device{}() % 1'000'000'000);
  const bool jailed = enter_jail(64 << 20);
  { const sys::server first(s.where); }  // takes the signal that servers keep for themselves
  std::unique_ptr<fuzzer> f;
  on_crash([&f] { return f ? f->state() : ""; });
  f = std::make_unique<fuzzer>(s.where);
  if (!jailed) s.out.remark("no filter of system calls here: escapes are found by their traces");
  progress shown("random calls, seconds", static_cast<std::uint64_t>(seconds));
  const auto began = clock::now();
  std::uint64_t next = seed;
  do {
    f->round(next++);
    shown.at(static_cast<std::uint64_t>(microseconds_since(began) / 1e6));
  } while (microseconds_since(began) < seconds * 1e6);
  f->report(s, microseconds_since(began) / 1e6, seed);
}

}  // namespace grosr::tool
