// Tour: memory that device code gets for itself.
#include "cli/text.hpp"
#include "tour/parts.hpp"
#include "work/blocks.hpp"

namespace grosr::tool {

void tour_memory(session& s, const std::string&) {
  const std::size_t mb = 1 << 20;
  const heap h(s.where, s.sized(1024 * mb, 16 * mb));
  const std::uint32_t threads = s.sized(65'536u, 512u), turns = s.sized(200u, 32u);
  const block_sizes sizes{16, 1024};
  block_traffic t(s.where, &h, threads, 16);
  const samples us = s.repeat("memory", {1, 5, 2.0}, [&] { return t.churn(sizes, turns).us; });

  const traffic filled = t.allocate(sizes, true);
  const heap_report full = h.report();
  std::uint64_t wrong = t.release(1, 1, true).wrong;
  wrong += t.churn(sizes, turns, true).wrong;
  const std::string left = trouble(h);
  const double allocations = static_cast<double>(threads) * turns;
  row line("memory");
  line.set("allocations", allocations)
      .set("allocations_per_s", us.median() > 0 ? allocations * 1e6 / us.median() : 0)
      .set("then_live_blocks", static_cast<double>(full.live))
      .set("fragmentation_share", full.internal_fragmentation())
      .set("high_water_bytes", static_cast<double>(full.high_water))
      .check(filled.got == filled.asked, "no memory for " + grouped(filled.asked - filled.got))
      .check(wrong == 0, grouped(wrong) + " blocks were overwritten by others")
      .check(left.empty(), left);
  s.out.add(line);
}

}  // namespace grosr::tool
