#include "mounted.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

#include <algorithm>
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

/// SIGHUP, unless who started this ignores it (nohup): as SIGTERM.
void end_on_hang_up() {
  struct sigaction hang_up {};
  sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_DFL) return;
  hang_up.sa_handler = [](int) { kill(getpid(), SIGTERM); };
  hang_up.sa_flags = SA_RESTART;
  sigaction(SIGHUP, &hang_up, nullptr);
}

void prepare_process() {
  end_on_hang_up();
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
  const int wrong = lstat((directory + "/" + key_file_name).c_str(), &s) != 0 ? errno : 0;
  if (wrong != 0 || !S_ISREG(s.st_mode))
    throw usage_error(
        fmt::format("{}: is no encrypted directory, it has no {} ({}); 'cryptfs init' "
                    "makes one",
                    one_line(directory), key_file_name,
                    wrong != 0 ? std::strerror(wrong) : "it is no regular file"));
}

/// A lock of the key file says that the directory is mounted.
int lock_directory(const std::string& directory) {
  const std::string path = directory + "/" + key_file_name;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  const int why = errno;
  if (fd >= 0) close(fd);
  throw usage_error(
      why == EWOULDBLOCK
          ? fmt::format("{}: is mounted already; use it there, or unmount it", one_line(directory))
          : fmt::format("{}: cannot be locked ({})", one_line(path), std::strerror(why)));
}

file_id id_of(int fd) {
  struct stat s;
  if (fstat(fd, &s) != 0) throw std::system_error(errno, std::generic_category(), key_file_name);
  return {s.st_dev, s.st_ino};
}

/// The mount point is free then, and who has files open there still has them. Who is not root needs
/// a program for that.
bool detach(const std::string& mountpoint) {
  if (umount2(mountpoint.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0) return true;
  std::string text[] = {"fusermount3", "-u", "-q", "-z", "--", mountpoint};
  char* arguments[7] = {};
  std::transform(std::begin(text), std::end(text), arguments, [](auto& t) { return t.data(); });
  pid_t child = 0;
  int status = 0;
  return posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments, environ) == 0 &&
         waitpid(child, &status, 0) == child && status == 0;
}

/// libfuse frees the name of a mount point by unmounting alone, and while files are open there
/// after it was detached, that might be something else: then LeakSanitizer is to let it pass.
struct may_leak {
#if defined(__SANITIZE_ADDRESS__)
  may_leak() { __lsan_disable(); }
  ~may_leak() { __lsan_enable(); }
#endif
};

}  // namespace

struct mounted::state {
  descriptor lock;
  service files;
  cipher& by;
  const std::string mountpoint;
  fuse_session* session = nullptr;
  bool is_mounted = false;
  std::vector<std::unique_ptr<worker>> workers;
  std::vector<std::thread> threads;
  std::atomic<unsigned> running{0};
  std::atomic<bool> failed{false}, ending{false};
  std::atomic<bool> gone{false};  // somebody has unmounted it

  state(const mount_options& o, int lock_fd, int root_fd, std::uint32_t sector_bytes, cipher& c)
      : lock{lock_fd},
        files(c, sector_bytes, root_fd, id_of(lock_fd)),
        by(c),
        mountpoint(std::filesystem::canonical(o.mountpoint)) {
    for (unsigned i = 0; i < o.threads; ++i)
      workers.push_back(std::make_unique<worker>(by.memory()));
  }
  ~state() {
    end();
    if (session) fuse_session_destroy(session);  // closes what the threads read
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
    if (session) {
      [[maybe_unused]] const may_leak name;
      is_mounted = fuse_session_mount(session, mountpoint.c_str()) == 0;
    }
    if (is_mounted) return;
    std::lock_guard guard(complaint::last().lock);
    throw usage_error(
        fmt::format("{}: cannot be mounted on ({}); FUSE needs /dev/fuse, and root or "
                    "fusermount3",
                    one_line(o.mountpoint), complaint::last().text));
  }

  void start() {
    for (const auto& w : workers) {
      ++running;
      try {
        threads.emplace_back([this, &here = *w] {
          serve(here);
          --running;
        });
      } catch (const std::system_error& e) {
        --running;
        throw std::runtime_error(fmt::format(
            "no thread could be started ({}); name fewer --threads, or allow this user more "
            "processes (ulimit -u)",
            e.code().message()));
      }
    }
  }

  void serve(worker& here) {
    this_worker() = &here;
    fuse_buf request{};
    // Later versions may grow the memory, and so it has to be theirs.
    if (fuse_version() < FUSE_MAKE_VERSION(3, 17)) request.mem = here.received.data();
    while (!fuse_session_exited(session)) {
      const int n = fuse_session_receive_buf(session, &request);
      if (n == -EINTR || n == -EAGAIN) continue;
      if (n == 0 && !ending && !failed) gone = true;
      if (n < 0 && !failed.exchange(true))
        tool::say(fmt::format("cryptfs: no requests can be read ({})\n", std::strerror(-n)));
      if (n <= 0) break;
      fuse_session_process_buf(session, &request);
    }
    fuse_session_exit(session);
    this_worker() = nullptr;
    if (request.mem != here.received.data()) std::free(request.mem);
  }

  /// First of all the mount point is taken away, so that it is never a dead one, however long
  /// requests take that have begun, and while there are threads to write what is mapped.
  void end() noexcept {
    if (!is_mounted) return;
    is_mounted = false;
    ending = true;
    const bool detached = !gone && detach(mountpoint);
    fuse_session_exit(session);
    while (running != 0) {
      for (std::thread& t : threads) pthread_kill(t.native_handle(), wake_signal);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    for (std::thread& t : threads) t.join();
    threads.clear();
    // Where the connection has ended it only gives back memory: something else may be mounted
    // there.
    if (!detached || has_ended()) fuse_session_unmount(session);
  }

  /// Whether Linux has ended the connection: nobody has a file open any more.
  bool has_ended() const {
    pollfd device{fuse_session_fd(session), 0, 0};
    return poll(&device, 1, 0) == 1 && (device.revents & POLLERR) != 0;
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
  state_->start();
  state_->set_read_ahead();
}

mounted::~mounted() = default;

bool mounted::ended() const { return fuse_session_exited(state_->session) != 0; }

bool mounted::failed() const { return state_->failed; }

void mounted::end() noexcept { state_->end(); }

}  // namespace grosr::cryptfs
