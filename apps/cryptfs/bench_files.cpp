#include <fmt/format.h>

#include <memory>
#include <vector>

#include "bench.hpp"
#include "cli/text.hpp"
#include "file_rates.hpp"

namespace grosr::cryptfs {

void bench_files(tool::report& out, const bench_options& o) {
  using tool::row;
  const temporary_folder folder(o.directory);
  std::vector<std::unique_ptr<file_system>> all;
  const auto own = [&](const std::string& name, const std::string& place, const std::string& by) {
    all.push_back(own_file_system(name, folder.path() + "/" + place,
                                  [&](const secret& key) { return make_cipher(by, key); }));
  };
  // The first one is what stands beside the others.
  if (o.where.is_cuda()) {
    own("choosing", "auto", "auto");
    own("the same, " + o.where.name() + " alone", "device", o.where.name());
  }
  own("the same, OpenSSL alone", "openssl", "openssl");
  for (auto& other : other_file_systems(folder.path())) all.push_back(std::move(other));
  const shared_memory content(o.file_bytes);
  make_random(content);
  std::vector<file_rates> found;
  for (auto& files : all) found.push_back(measure_files(*files, content, o.repeats));
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
