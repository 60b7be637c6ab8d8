#include "compare.hpp"

#include <algorithm>
#include <memory>

#include "cli/text.hpp"

namespace grosr::wordcount {
namespace {

using tool::row;
using tool::samples;

struct outcome {
  answer last;
  samples us, cpu_s;
  std::string name, wrong;
  double gb_per_s() const { return static_cast<double>(last.bytes) / us.median() / 1e3; }
};

outcome measure(tool::session& s, std::unique_ptr<counter> by) {
  outcome o;
  o.name = by->name();
  std::vector<double> cpu_s;
  o.us = s.repeat(o.name, {2, s.sized(11u, 3u), 20}, [&] {
    answer a = by->count();
    cpu_s.push_back(a.cpu_s);
    if (cpu_s.size() > 1 && (a.counts != o.last.counts || a.bytes != o.last.bytes))
      o.wrong = "two runs counted differently: did the files change?";
    o.last = std::move(a);
    return o.last.us;
  });
  cpu_s.erase(cpu_s.begin(), cpu_s.begin() + 2);
  o.cpu_s = samples(std::move(cpu_s));
  return o;
}

std::string difference(const question& q, const outcome& a, const outcome& b) {
  for (std::size_t i = 0; i < q.words.size(); ++i)
    if (a.last.counts[i] != b.last.counts[i])
      return tool::one_line(q.words[i]) + " " + tool::grouped(a.last.counts[i]) +
             " times, but by " + b.name + " " + tool::grouped(b.last.counts[i]);
  if (a.last.bytes != b.last.bytes)
    return tool::grouped(a.last.bytes) + " bytes, but by " + b.name + " " +
           tool::grouped(b.last.bytes);
  return "";
}

row row_of(const question& q, const outcome& o) {
  std::uint64_t occurrences = 0;
  for (const std::uint64_t n : o.last.counts) occurrences += n;
  row r(o.name);
  r.set("files", static_cast<double>(q.list.files.size()))
      .set("bytes", static_cast<double>(o.last.bytes))
      .set("occurrences", static_cast<double>(occurrences))
      .rate(o.us, "files", static_cast<double>(q.list.files.size()))
      .set("gb_per_s", o.gb_per_s())
      .set("cpu_s", o.cpu_s.median())
      .check(o.wrong.empty(), o.wrong);
  if (!o.last.failures.empty())
    r.note(tool::grouped(o.last.failures.size()) + " files could not be read");
  return r;
}

}  // namespace

void compare(tool::session& s, const question& q, unsigned threads, unsigned cpu_threads) {
  std::vector<outcome> cpu;
  if (has_openmp()) cpu.push_back(measure(s, count_by_openmp(q, cpu_threads)));
  if (has_vectorscan()) cpu.push_back(measure(s, count_by_vectorscan(q, cpu_threads)));
  const outcome device = measure(s, count_on_device(q, s.where, threads));
  row r = row_of(q, device);
  for (const outcome& o : cpu) {
    const std::string wrong = difference(q, device, o);
    r.check(wrong.empty(), wrong);
    r.baseline(o.name, "gb_per_s", o.gb_per_s()).baseline(o.name, "cpu_s", o.cpu_s.median());
  }
  if (s.gpu() && has_openmp())
    r.at_least("gb_per_s", 3 * cpu.front().gb_per_s(), "3x OpenMP")
        .at_most("cpu_s", cpu.front().cpu_s.median() / 4, "a quarter of OpenMP's");
  s.out.add(r);
  for (const outcome& o : cpu) s.out.add(row_of(q, o));
  if (!has_openmp()) s.out.remark("without OpenMP, which this program was built without");
  if (!has_vectorscan()) s.out.remark("without Vectorscan, which this program was built without");
}

}  // namespace grosr::wordcount
