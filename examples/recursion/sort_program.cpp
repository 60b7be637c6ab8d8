#include "recursion/sort_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/text.hpp"

namespace grosr::recursion {
namespace {

std::vector<std::uint32_t> make_keys(const std::string& distribution, std::uint64_t count) {
  std::vector<std::uint32_t> keys(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t x = (i + 1) * 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    keys[i] = distribution == "equal"     ? 7
              : distribution == "sorted"  ? static_cast<std::uint32_t>(i)
              : distribution == "reverse" ? static_cast<std::uint32_t>(count - i)
                                          : static_cast<std::uint32_t>(x >> 31);
  }
  return keys;
}

}  // namespace

sort_run::sort_run(const std::string& name, const sort_options& o, std::uint64_t count_on_gpu)
    : distribution_(o.distribution),
      plan_(o, {count_on_gpu, 100'000, 0, 4'000'000'000, 10'000'000}),
      out_(name, plan_.where, tool::json_file(o.json), tool::report::style::one_line_a_row),
      keys_(plan_.where, simt::space::device, plan_.size),
      scratch_(plan_.where, simt::space::device, plan_.size),
      given_(plan_.where, simt::space::device, plan_.size) {}

int sort_run::measure(const std::function<void()>& sort,
                      const std::function<runtime_stats()>& stats) {
  try {
    std::vector<std::uint32_t> keys = make_keys(distribution_, plan_.size);
    given_.copy_from(keys);
    const tool::samples times = plan_.repeat(
        "sort", [&] { simt::copy_bytes(plan_.where, keys_.data(), given_.data(), given_.bytes()); },
        sort);
    tool::row r(fmt::format("{} {} keys", tool::grouped(plan_.size), distribution_));
    r.rate(times, "keys", static_cast<double>(plan_.size));
    const runtime_stats s = stats();
    r.set("tasks_a_sort_tasks", static_cast<double>(s.tasks) / (plan_.repeats + 1));
    if (plan_.checks) {
      std::vector<std::uint32_t> sorted(plan_.size);
      keys_.copy_to(sorted);
      std::sort(keys.begin(), keys.end());
      const auto wrong = std::mismatch(keys.begin(), keys.end(), sorted.begin()).first;
      r.check(wrong == keys.end(),
              fmt::format("key {} is not what std::sort has there", wrong - keys.begin()));
    } else {
      r.note("not checked: --check on has std::sort do the same");
    }
    out_.add(r);
  } catch (const tool::interrupt::interrupted&) {
    out_.interrupted();
    out_.finish();
    throw;
  } catch (const std::exception& e) {
    out_.failed(e.what());
    out_.finish();
    throw;
  }
  return out_.finish();
}

}  // namespace grosr::recursion
