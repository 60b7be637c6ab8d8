// Tour: system calls that device code makes, and what the server counted.
#include "work/calls.hpp"
#include "cli/text.hpp"
#include "tour/parts.hpp"
#include "work/sample_file.hpp"

namespace grosr::tool {

void tour_calls(session& s, const std::string&) {
  const sample_file file(s.sized(std::uint64_t{64} << 20, std::uint64_t{1} << 20));
  sys::server server(s.where);
  server.grant(file.descriptor());
  const simt::shape grid =
      s.gpu() ? simt::shape{s.where.properties().sms * 2, 256} : simt::shape{2, 64};
  file_reader reader(s.where, server, grid);
  call_traffic last;
  std::uint64_t wrong = 0;
  bool check = true;
  const samples us = s.repeat("calls", {1, 5, 2.0}, [&] {
    last = reader.read({file.descriptor(), file.bytes(), 16384, called_by::warp}, check);
    check = false;
    wrong += last.wrong;
    return last.us;
  });
  server.drain();
  row line("calls");
  const double calls = static_cast<double>(last.calls);
  line.set("calls", calls)
      .set("calls_per_s", us.median() > 0 ? calls * 1e6 / us.median() : 0)
      .set("read_gb_per_s", static_cast<double>(file.bytes()) / us.median() / 1e3)
      .check(wrong == 0, grouped(wrong) + " calls were short or brought other bytes");
  s.out.add(line);
  const sys::statistics counted = server.statistics();
  for (const sys::call_statistics& c : counted.calls)
    s.out.remark("  " + grouped(c.calls) + " " + c.name + ", " + grouped(c.errors) + " errors, " +
                 only_unit("bytes", static_cast<double>(c.bytes)) + "; on the host 50% within " +
                 three_digits(c.within_ns(0.5) / 1e3) + " us, 99% within " +
                 three_digits(c.within_ns(0.99) / 1e3) + " us");
  s.out.attach("system_calls", sys::to_json(counted));
}

}  // namespace grosr::tool
