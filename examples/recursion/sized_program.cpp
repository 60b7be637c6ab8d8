#include "recursion/sized_program.hpp"

#include "cli/pick_device.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"

namespace grosr::recursion {

void add_options(CLI::App& program, sized_options& o, const std::string& size_help) {
  program.add_option("N", o.size, size_help);
  program.add_option("--device", o.device, "Where: cuda:N or host:N; the best present by default")
      ->type_name("D");
  program
      .add_option("--memory", o.memory,
                  "Limit of the memory for tasks and what waits for them; 256M")
      ->type_name("BYTES");
  program.add_option("--repeat", o.repeat, "How often it is done, after once for nothing; 5")
      ->type_name("N");
  program
      .add_option("--check", o.check,
                  "Whether the CPU does the same and compares: on or off; on for small sizes")
      ->check(CLI::IsMember({"on", "off"}))
      ->type_name("on|off");
  program.add_option("--json", o.json, "Also write the results to FILE; - is standard output")
      ->type_name("FILE");
}

sized_plan::sized_plan(const sized_options& o, const sizes& s)
    : where(tool::pick_device(o.device)) {
  size = o.size            ? tool::parse_number("N", *o.size, s.least, s.most)
         : where.is_cuda() ? s.on_gpu
                           : s.on_host;
  repeats =
      o.repeat ? static_cast<unsigned>(tool::parse_number("--repeat", *o.repeat, 1, 1'000'000)) : 5;
  checks = o.check ? *o.check == "on" : size <= s.most_checked;
  if (o.memory)
    runtime.memory_limit =
        tool::parse_bytes("--memory", *o.memory, 1 << 20, std::uint64_t{1} << 40);
}

tool::samples sized_plan::repeat(const std::string& what, const std::function<void()>& prepare,
                                 const std::function<void()>& work) const {
  std::vector<double> us;
  tool::progress shown(what, repeats + 1);
  for (unsigned i = 0; i <= repeats; ++i) {
    prepare();
    us.push_back(tool::timed(work));
    shown.next();
  }
  us.erase(us.begin());
  return tool::samples(us);
}

}  // namespace grosr::recursion
