// A user's file: its own types have the names of functions of POSIX, and it says of options only
// what it means. Compiled, not run, with all warnings as errors.
#include <grosr/grosr.hpp>

struct accept {};
struct access {};
struct bind {};
struct close {};
struct connect {};
struct creat {};
struct dup {};
struct fork {};
struct fstat {};
struct fsync {};
struct link {};
struct listen {};
struct lseek {};
struct mkdir {};
struct mmap {};
struct open {};
struct openat {};
struct pause {};
struct pipe {};
struct poll {};
struct pread {};
struct pwrite {};
struct readv {};
struct recv {};
struct send {};
struct sendto {};
struct shutdown {};
struct sleep {};
struct socket {};
struct stat {};
struct sync {};
struct writev {};

/// Tasks with such names.
struct read {
  using result = std::uint32_t;
  std::uint32_t n;
  GROSR_DEVICE void operator()(auto& context) const { context.give(n); }
};
struct write {
  std::uint32_t* to;
  std::uint32_t i;
  GROSR_DEVICE void operator()(auto& context) const {
    to[i] = i;
    if (i > 1) context.spawn(write{to, i / 2});
  }
};

/// A kernel that makes calls.
struct unlink {
  grosr::sys::server_ref sys;
  GROSR_DEVICE void operator()() const {
    char text[4] = "abc";
    grosr::sys::write(sys.lane(), grosr::sys::open(sys.lane(), "x", 0), text, sizeof text);
    grosr::sys::send(sys.lane(), grosr::sys::socket(sys.lane(), 2, 1), text, sizeof text);
    grosr::sys::print(sys.lane(), "{}\n", 1);
  }
};

/// A function of a graph.
struct rename_all {
  using element = std::uint64_t;
  grosr::channel<std::uint64_t> next;
  GROSR_DEVICE void operator()(const std::uint64_t& n, auto& context) const {
    if (n > 1) next.push(context, n / 2);
  }
};

template <class... T>
struct list {};
using names =
    list<accept, access, bind, close, connect, creat, dup, fork, fstat, fsync, link, listen, lseek,
         mkdir, mmap, open, openat, pause, pipe, poll, pread, pwrite, read, readv, recv, send,
         sendto, shutdown, sleep, socket, stat, sync, unlink, write, writev>;

int main() {
  grosr::device d = grosr::device::best();
  grosr::heap heap(d, std::size_t{1} << 20, {.checked = false});
  grosr::runtime<write, read> runtime(d, {.heap = &heap});
  grosr::simt::buffer<std::uint32_t> to(d, grosr::simt::space::pinned, 8);
  runtime.submit(write{to.data(), 7}).wait();
  if (runtime.fork(read{3}).get() != 3) return 1;

  grosr::sys::server server(d, {.threads = 1, .policy = {.folders = {{.path = "/tmp"}}}});
  grosr::sys::server talker(d, {.policy = {.network = true}});
  grosr::simt::run(d, {.threads = 32}, unlink{server.ref()});

  grosr::element_graph<rename_all> graph(d, {.runtime = {.sms = 1}});
  grosr::element_graph<rename_all> bounded(d, {.host_records = 64});
  auto next = graph.channel<std::uint64_t>({.capacity = 128});
  auto router = graph.router<std::uint64_t>({next}, {.capacity = 2048});
  graph.connect(next, rename_all{next});
  graph.push(next, 9);
  graph.wait();
  (void)router;
  return 0;
}
