#include "file_rates.hpp"

#include <fmt/format.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <vector>

#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/text.hpp"
#include "file_client.hpp"
#include "file_format.hpp"

namespace grosr::cryptfs {

temporary_folder::temporary_folder(const std::string& parent)
    : path_(parent + "/cryptfs-bench-XXXXXX") {
  if (!mkdtemp(path_.data()))
    throw tool::usage_error(fmt::format("--directory {}: no folder can be made there ({})",
                                        tool::one_line(parent), std::strerror(errno)));
}

temporary_folder::~temporary_folder() {
  std::error_code e;
  std::filesystem::remove_all(path_, e);
}

void make_random(const shared_memory& content) {
  for (std::size_t at = 0; at < content.size(); at += most_request)
    RAND_bytes(reinterpret_cast<unsigned char*>(content.data() + at),
               static_cast<int>(std::min(most_request, content.size() - at)));
}

file_rates measure_files(file_system& files, const shared_memory& content, unsigned repeats,
                         const std::function<std::uint64_t()>& count) {
  file_rates r;
  std::vector<double> write_us, read_us;
  std::uint64_t counted = 0;
  for (unsigned i = 0; i <= repeats; ++i) {
    const std::string path = fmt::format("{}/file{}", files.mountpoint(), i);
    for (const direction how : {direction::write, direction::read}) {
      tool::interrupt::check();
      files.mount();  // what the kernel kept of the file is gone
      const transfer t = transfer_file(how, path, content, count);
      r.right = r.right && t.right;
      if (how == direction::read) unlink(path.c_str());
      files.unmount();
      if (i == 0) continue;
      (how == direction::write ? write_us : read_us).push_back(t.us);
      counted += t.counted;
    }
  }
  r.write_us = tool::samples(std::move(write_us));
  r.read_us = tool::samples(std::move(read_us));
  r.counted_per_s = static_cast<double>(counted) * 1e6 /
                    ((r.write_us.mean() + r.read_us.mean()) * static_cast<double>(repeats));
  return r;
}

}  // namespace grosr::cryptfs
