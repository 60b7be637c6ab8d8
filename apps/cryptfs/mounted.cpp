#include "mounted.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#include "cli/errors.hpp"
#include "cli/text.hpp"
#include "service.hpp"

namespace grosr::cryptfs {
namespace {

using tool::one_line;
using tool::usage_error;

/// What libfuse complained of last.
struct complaint {
  std::mutex lock;
  std::string text;
  static complaint& last() {
    static complaint one;
    return one;
  }
};

void keep_complaint(fuse_log_level, const char* format, va_list arguments) {
  char text[512];
  std::vsnprintf(text, sizeof text, format, arguments);
  std::lock_guard guard(complaint::last().lock);
  complaint::last().text = one_line(text);
}

void nothing(int) {}

/// So that a thread that waits for requests can be woken.
constexpr int wake_signal = SIGUSR1;

void prepare_process() {
  struct sigaction wake {};
  wake.sa_handler = nothing;
  sigaction(wake_signal, &wake, nullptr);
  umask(0);  // the kernel has taken it off already
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {  // each file that the kernel knows has a descriptor
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);  // keys and files would lie in the core file
  fuse_set_log_func(keep_complaint);
}

void check_mountpoint(const mount_options& o) {
  namespace fs = std::filesystem;
  const std::string name = one_line(o.mountpoint);
  struct stat here = {}, above = {};
  if (stat(o.mountpoint.c_str(), &here) != 0)
    throw usage_error(errno == ENOTCONN
                          ? fmt::format("{}: is what is left of a mount whose process ended; "
                                        "'umount -l {}' removes it",
                                        name, name)
                          : fmt::format("{}: cannot be mounted on ({}); make the directory first",
                                        name, std::strerror(errno)));
  if (!S_ISDIR(here.st_mode))
    throw usage_error(fmt::format("{}: is no directory; name one to mount on", name));
  if (stat((o.mountpoint + "/..").c_str(), &above) == 0 && above.st_dev != here.st_dev)
    throw usage_error(
        fmt::format("{}: something is mounted there already; unmount it, or choose "
                    "another directory",
                    name));
  std::error_code e;
  const fs::path directory = fs::canonical(o.directory, e),
                 mountpoint = fs::canonical(o.mountpoint, e);
  const auto [end, rest] =
      std::mismatch(directory.begin(), directory.end(), mountpoint.begin(), mountpoint.end());
  if (end == directory.end())
    throw usage_error(
        fmt::format("{}: lies in the encrypted directory; mount somewhere else", name));
  if (!fs::is_empty(o.mountpoint, e))
    throw usage_error(fmt::format("{}: is not empty; choose an empty directory", name));
}

void check_directory(const std::string& directory) {
  struct stat s;
  if (stat((directory + "/" + key_file_name).c_str(), &s) != 0)
    throw usage_error(
        fmt::format("{}: is no encrypted directory, it has no {} ({}); 'cryptfs init' "
                    "makes one",
                    one_line(directory), key_file_name, std::strerror(errno)));
}

/// A lock of the key file says that the directory is mounted.
int lock_directory(const std::string& directory) {
  const std::string path = directory + "/" + key_file_name;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  const int why = errno;
  if (fd >= 0) close(fd);
  throw usage_error(
      why == EWOULDBLOCK
          ? fmt::format("{}: is mounted already; use it there, or unmount it", one_line(directory))
          : fmt::format("{}: cannot be locked ({})", one_line(path), std::strerror(why)));
}

}  // namespace

struct mounted::state {
  descriptor lock;
  service files;
  cipher& by;
  const std::string mountpoint;
  fuse_session* session = nullptr;
  std::vector<std::thread> threads;
  std::atomic<unsigned> running{0};

  state(const mount_options& o, int lock_fd, int root_fd, std::uint32_t sector_bytes, cipher& c)
      : lock{lock_fd}, files(c, sector_bytes, root_fd), by(c), mountpoint(o.mountpoint) {}
  ~state() {
    if (session) fuse_session_destroy(session);
  }

  void mount(const mount_options& o) {
    std::string source = std::filesystem::absolute(o.directory).lexically_normal().string();
    if (source.find_first_of(",\\") != std::string::npos) source = "cryptfs";
    std::string options = fmt::format("fsname={},subtype=cryptfs,default_permissions{}", source,
                                      o.allow_other ? ",allow_other" : "");
    char program[] = "cryptfs", dash_o[] = "-o";
    char* all[] = {program, dash_o, options.data(), nullptr};
    fuse_args arguments = FUSE_ARGS_INIT(3, all);
    session = fuse_session_new(&arguments, &operations(), sizeof(fuse_lowlevel_ops), &files);
    fuse_opt_free_args(&arguments);
    if (session && fuse_session_mount(session, mountpoint.c_str()) == 0) return;
    std::lock_guard guard(complaint::last().lock);
    throw usage_error(
        fmt::format("{}: cannot be mounted on ({}); FUSE needs /dev/fuse, and root or "
                    "fusermount3",
                    one_line(mountpoint), complaint::last().text));
  }

  void serve() {
    worker here(by.memory());
    this_worker() = &here;
    fuse_buf request{};
    // Later versions may grow the memory, and so it has to be theirs.
    if (fuse_version() < FUSE_MAKE_VERSION(3, 17)) request.mem = here.received.data();
    while (!fuse_session_exited(session)) {
      const int n = fuse_session_receive_buf(session, &request);
      if (n == -EINTR || n == -EAGAIN) continue;
      if (n <= 0) break;
      fuse_session_process_buf(session, &request);
    }
    fuse_session_exit(session);
    this_worker() = nullptr;
    if (request.mem != here.received.data()) std::free(request.mem);
  }

  /// Linux reads ahead 128 KB by default; who may not set that reads in smaller requests.
  void set_read_ahead() const {
    struct stat s;
    if (stat(mountpoint.c_str(), &s) != 0) return;
    std::ofstream(
        fmt::format("/sys/class/bdi/{}:{}/read_ahead_kb", major(s.st_dev), minor(s.st_dev)))
        << most_request / 1024;
  }
};

void check_mount(const mount_options& o) {
  check_directory(o.directory);
  check_mountpoint(o);
  close(lock_directory(o.directory));
}

mounted::mounted(const mount_options& o, std::uint32_t sector_bytes, cipher& by) {
  prepare_process();
  check_mountpoint(o);
  const int lock = lock_directory(o.directory);
  const int root = open(o.directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  state_ = std::make_unique<state>(o, lock, root, sector_bytes, by);
  if (root < 0)
    throw usage_error(
        fmt::format("{}: cannot be opened ({})", one_line(o.directory), std::strerror(errno)));
  state_->mount(o);
  state* s = state_.get();
  for (unsigned i = 0; i < o.threads; ++i) {
    ++s->running;
    s->threads.emplace_back([s] {
      try {
        s->serve();
      } catch (const std::exception& e) {
        fuse_session_exit(s->session);
        tool::say(fmt::format("cryptfs: {}\n", one_line(e.what())));
      }
      --s->running;
    });
  }
  s->set_read_ahead();
}

mounted::~mounted() { end(); }

bool mounted::ended() const { return state_->running == 0; }

void mounted::end() noexcept {
  if (state_->threads.empty()) return;
  fuse_session_exit(state_->session);
  while (state_->running != 0) {
    for (std::thread& t : state_->threads) pthread_kill(t.native_handle(), wake_signal);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (std::thread& t : state_->threads) t.join();
  state_->threads.clear();
  fuse_session_unmount(state_->session);  // closes what the threads read
}

}  // namespace grosr::cryptfs
