// Blocks of a kernel read a file, 64 KiB at a time, and count its lines.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <grosr/grosr.hpp>

namespace simt = grosr::simt;

struct count_lines {
  grosr::sys::server_ref sys;
  char* text;  // device memory, 64 KiB for each block
  std::uint64_t* lines;
  GROSR_DEVICE void operator()() const {
    namespace sy = grosr::sys;
    const auto block = sys.block();  // one call for the whole block
    char* const mine = text + simt::block_id() * 65536;
    const long file = sy::open(block, "words.txt", O_RDONLY);
    if (file < 0) return;  // a negative errno, the same in all threads
    std::uint64_t found = 0;
    for (std::int64_t at = simt::block_id() * 65536ll;; at += simt::grid_size() * 65536ll) {
      const long n = sy::pread(block, static_cast<int>(file), mine, 65536, at);
      if (n <= 0) break;  // the end of the file, or an error
      for (long i = simt::thread_id(); i < n; i += simt::block_size()) found += mine[i] == '\n';
      simt::sync_block();  // the next read overwrites the text
    }
    simt::atomic_ref(*lines).fetch_add(found, simt::relaxed);
    sy::close(block, static_cast<int>(file));
  }
};

int main() {
  const grosr::device device = grosr::device::best();
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("grosr-lines-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  std::ofstream out(folder / "words.txt");
  for (int i = 0; i < 50000; ++i) out << "word " << i << '\n';
  out.close();

  simt::buffer<std::uint64_t> lines(device, simt::space::device, 1);
  {
    const unsigned blocks = 4;
    simt::buffer<char> text(device, simt::space::device, blocks * 65536);
    grosr::sys::options options;
    options.policy.folders = {{folder, grosr::sys::access::read}};
    grosr::sys::server server(device, options);
    simt::run(device, {blocks, 128}, count_lines{server.ref(), text.data(), lines.data()});
  }
  std::filesystem::remove_all(folder);
  std::uint64_t found = 0;
  lines.copy_to({&found, 1});
  std::printf("%llu lines\n", static_cast<unsigned long long>(found));
  return found == 50000 ? 0 : 1;
}
