// The file system while other processes keep the device busy.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "bench.hpp"
#include "busy.hpp"
#include "cli/interrupt.hpp"
#include "competitors.hpp"
#include "file_rates.hpp"
#include "measure/samples.hpp"

namespace grosr::cryptfs {
namespace {

using tool::row;

/// The threads that are started meanwhile, and this one, come before all others of the machine.
class first_of_all {
 public:
  first_of_all() : before_(getpriority(PRIO_PROCESS, 0)) {
    if (setpriority(PRIO_PROCESS, 0, -20) != 0) wrong_ = std::strerror(errno);
  }
  ~first_of_all() { setpriority(PRIO_PROCESS, 0, before_); }
  first_of_all(const first_of_all&) = delete;
  const std::string& wrong() const { return wrong_; }

 private:
  const int before_;
  std::string wrong_;
};

/// What encrypts: as keys of a row name it, and the file system.
struct contender {
  std::string key;
  std::unique_ptr<file_system> files;
};

/// Made while nothing else is on the device.
std::vector<contender> contenders(const bench_options& o, const std::string& folder) {
  const device d = o.where;
  std::vector<contender> all;
  const auto add = [&](const std::string& key, auto make) {
    all.push_back({key, own_file_system(key, folder + "/" + key, make)});
  };
  add("openssl", [](const secret& key) { return openssl_cipher(key); });
  add("device", [d](const secret& key) { return device_cipher(d, key); });
  add("auto", [d](const secret& key) { return choosing_cipher(d, key); });
  return all;
}

double finished_per_s(const competitors& others, double seconds) {
  const std::uint64_t before = others.finished();
  const double us = tool::timed([&] { tool::interrupt::sleep_for_seconds(seconds); });
  return static_cast<double>(others.finished() - before) * 1e6 / us;
}

row measure_beside(unsigned count, const bench_options& o, const busy_time& kernel,
                   std::vector<contender>& all, const shared_memory& content) {
  row r(fmt::format("{} competitor{}", count == 0 ? "no" : std::to_string(count),
                    count == 1 ? "" : "s"));
  competitors others(count, o.where, kernel.steps);
  const double alone = count == 0 ? 0 : finished_per_s(others, o.where.is_cuda() ? 2 : 0.1);
  std::vector<file_rates> found;
  for (contender& c : all) {
    found.push_back(measure_files(*c.files, content, o.repeats, [&] { return others.finished(); }));
    r.check(found.back().right, c.key + ": what was read is not what was written");
    const std::string wrong = others.wrong();
    r.check(wrong.empty(), wrong);
    if (!wrong.empty()) return r;
  }
  const auto rate = [&](const tool::samples& us) {
    return static_cast<double>(content.size()) / us.median() * 1e-3;
  };
  for (std::size_t i = 0; i < all.size(); ++i)
    r.set("write_" + all[i].key + "_gb_per_s", rate(found[i].write_us));
  for (std::size_t i = 0; i < all.size(); ++i)
    r.set("read_" + all[i].key + "_gb_per_s", rate(found[i].read_us));
  if (count == 0) return r;
  r.set("kernel_ms", kernel.us * 1e-3).set("alone_kernels_per_s", alone);
  for (std::size_t i = 0; i < all.size(); ++i)
    r.set("beside_" + all[i].key + "_kernels_per_s", found[i].counted_per_s);
  return r;
}

}  // namespace

void bench_competing(tool::report& out, const bench_options& o) {
  const first_of_all priority;
  const std::string nice =
      priority.wrong().empty()
          ? "the file system and its client run at nice -20, competitors at +19"
          : fmt::format("the file system and its client run at nice {} ({}), competitors at +19",
                        getpriority(PRIO_PROCESS, 0), priority.wrong());
  const temporary_folder folder(o.directory);
  const shared_memory content(o.file_bytes);
  make_random(content);
  auto all = contenders(o, folder.path());
  const bool any = std::any_of(o.competing.begin(), o.competing.end(), [](auto n) { return n; });
  const busy_time kernel = any ? calibrate(o.where, o.kernel_us) : busy_time{};
  for (const unsigned count : o.competing) {
    row r = measure_beside(count, o, kernel, all, content);
    out.add(r.note(nice));
  }
}

}  // namespace grosr::cryptfs
