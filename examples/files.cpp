// Kernels that open, read and write files themselves, print, and call a function of the program.
// A device may be named on the command line: cuda:0, host:0.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <grosr/grosr.hpp>

namespace simt = grosr::simt;
namespace sys = grosr::sys;

constexpr std::size_t piece = 4096;

// What kernels call on the host. Several threads may run it at the same time.
struct progress {
  static constexpr std::uint16_t number = 0;
  std::atomic<long>* bytes;
  long operator()(long more) const { return *bytes += more; }
};

// Every block reads one piece of a file, makes its letters capital, and writes it to another.
struct shout {
  sys::server_ref server;
  char* text;  // device memory, a piece for each block
  GROSR_DEVICE void operator()() const {
    const auto block = server.block();  // its calls: one for the whole block
    char* const mine = text + simt::block_id() * piece;
    const auto at = static_cast<std::int64_t>(simt::block_id() * piece);
    const long in = sys::open(block, "in", O_RDONLY);
    const long out = sys::openat(block, AT_FDCWD, "out", O_WRONLY | O_CREAT, 0666);
    const long n = sys::pread(block, static_cast<int>(in), mine, piece, at);
    if (n < 0) {  // the same in all threads
      if (simt::thread_id() == 0) sys::print(server, "block {}: error {}\n", simt::block_id(), -n);
      return;
    }
    for (long i = simt::thread_id(); i < n; i += simt::block_size())
      if (mine[i] >= 'a' && mine[i] <= 'z') mine[i] = static_cast<char>(mine[i] - 'a' + 'A');
    // Started, not waited for: all other work goes on meanwhile.
    auto written = sys::pwrite(block.start(), static_cast<int>(out), mine, n, at);
    if (simt::warp_id() == 0) {
      const long all = sys::call<progress>(server.warp(), n);
      sys::print(server.warp(), "block {} read {} bytes, {} so far\n", simt::block_id(), n, all);
    }
    const long w = sys::wait(block.start(), written);
    if (w != n && simt::thread_id() == 0) sys::print(server, "only {} of {} written\n", w, n);
    sys::close(block, static_cast<int>(in));
    sys::close(block, static_cast<int>(out));
  }
};

int main(int argc, char** argv) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("grosr-files-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  std::string text;
  for (int i = 0; text.size() < 5 * piece - 100; ++i) text += "line " + std::to_string(i) + "\n";
  std::ofstream(folder / "in") << text;

  const grosr::device device = argc > 1 ? grosr::device(argv[1]) : grosr::device::best();
  std::atomic<long> bytes{0};
  {
    sys::options options;
    options.policy.folders = {{folder, sys::access::write}};  // no others
    sys::server server(device, options);
    server.install(progress{&bytes});
    const unsigned blocks = static_cast<unsigned>((text.size() + piece - 1) / piece);
    simt::buffer<char> room(device, simt::space::device, blocks * piece);
    simt::run(device, {blocks, 64}, shout{server.ref(), room.data()});
  }  // all calls are complete, and all text is printed

  std::ifstream file(folder / "out");
  const std::string found{std::istreambuf_iterator<char>(file), {}};
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::filesystem::remove_all(folder);
  std::printf("%ld bytes, %s\n", bytes.load(), found == text ? "all capital" : "WRONG");
  return found == text && bytes == static_cast<long>(text.size()) ? 0 : 1;
}
