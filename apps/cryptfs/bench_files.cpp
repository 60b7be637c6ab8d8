#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "bench.hpp"
#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/text.hpp"
#include "file_format.hpp"
#include "measure/samples.hpp"
#include "other_file_system.hpp"

namespace grosr::cryptfs {
namespace {

using tool::row;
using bytes = std::vector<char>;

/// A folder that goes with all that is in it. What is mounted there is unmounted before.
class temporary_folder {
 public:
  explicit temporary_folder(const std::string& parent) : path_(parent + "/cryptfs-bench-XXXXXX") {
    if (!mkdtemp(path_.data()))
      throw tool::usage_error(fmt::format("--directory {}: no folder can be made there ({})",
                                          tool::one_line(parent), std::strerror(errno)));
  }
  ~temporary_folder() {
    std::error_code e;
    std::filesystem::remove_all(path_, e);
  }
  temporary_folder(const temporary_folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(fmt::format("{} failed ({})", what, std::strerror(errno)));
}

/// The file in requests of 1 MB, from opening to closing.
template <class F>
void in_requests(const std::string& path, int flags, std::size_t all, F request) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd < 0) fail("opening " + path);
  for (std::size_t at = 0; at < all;) {
    const ssize_t n = request(fd, at, std::min(most_request, all - at));
    if (n <= 0) fail("a request for " + path);
    at += static_cast<std::size_t>(n);
  }
  if (close(fd) != 0) fail("closing " + path);
}

struct rates {
  tool::samples write_us, read_us;
  bool right = true;
};

rates measure(file_system& files, const bytes& content, unsigned repeats) {
  rates r;
  std::vector<double> write_us, read_us;
  bytes got(content.size(), 1);
  for (unsigned i = 0; i <= repeats; ++i) {
    tool::interrupt::check();
    const std::string path = fmt::format("{}/file{}", files.mountpoint(), i);
    files.mount();
    const double wrote = tool::timed([&] {
      in_requests(
          path, O_WRONLY | O_CREAT | O_EXCL, content.size(),
          [&](int fd, std::size_t at, std::size_t n) { return write(fd, &content[at], n); });
    });
    files.unmount();
    files.mount();  // what the kernel kept of the file is gone
    std::memset(got.data(), 1, got.size());
    const double took = tool::timed([&] {
      in_requests(path, O_RDONLY, content.size(),
                  [&](int fd, std::size_t at, std::size_t n) { return read(fd, &got[at], n); });
    });
    r.right = r.right && got == content;
    unlink(path.c_str());
    files.unmount();
    if (i == 0) continue;
    write_us.push_back(wrote);
    read_us.push_back(took);
  }
  r.write_us = tool::samples(std::move(write_us));
  r.read_us = tool::samples(std::move(read_us));
  return r;
}

}  // namespace

void bench_files(tool::report& out, const bench_options& o) {
  const temporary_folder folder(o.directory);
  std::vector<std::unique_ptr<file_system>> all;
  // The first one is what stands beside the others.
  if (o.where.is_cuda()) {
    all.push_back(own_file_system("choosing", folder.path() + "/auto", "auto"));
    all.push_back(own_file_system("the same, " + o.where.name() + " alone",
                                  folder.path() + "/device", o.where.name()));
  }
  all.push_back(own_file_system("the same, OpenSSL alone", folder.path() + "/openssl", "openssl"));
  for (auto& other : other_file_systems(folder.path())) all.push_back(std::move(other));
  bytes content(o.file_bytes);
  for (std::size_t at = 0; at < content.size(); at += most_request)
    RAND_bytes(reinterpret_cast<unsigned char*>(&content[at]),
               static_cast<int>(std::min(most_request, content.size() - at)));
  std::vector<rates> found;
  for (auto& files : all) found.push_back(measure(*files, content, o.repeats));
  const auto rate = [&](const tool::samples& us) {
    return static_cast<double>(o.file_bytes) / us.median() * 1e-3;
  };
  for (const bool writing : {true, false}) {
    const auto of = [&](std::size_t i) -> const tool::samples& {
      return writing ? found[i].write_us : found[i].read_us;
    };
    row r(fmt::format("{} a file of {} bytes{}", writing ? "write" : "read",
                      tool::grouped(o.file_bytes), o.where.is_cuda() ? "" : ", OpenSSL encrypts"));
    r.set("gb_per_s", rate(of(0))).time(of(0));
    for (std::size_t i = 0; i < all.size(); ++i)
      r.check(found[i].right, all[i]->name() + ": what was read is not what was written");
    for (std::size_t i = 1; i < all.size(); ++i)
      r.baseline(all[i]->name(), "gb_per_s", rate(of(i)));
    out.add(r);
  }
}

}  // namespace grosr::cryptfs
