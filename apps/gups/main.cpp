// gups: random updates of a table that lies on several ranks (giga-updates per second), by
// messages, by atomics to the memory of other ranks, by kernels between which the host exchanges
// buffers, and by a kernel that does nothing else.
#include <fmt/format.h>

#include <bit>
#include <optional>

#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/program.hpp"
#include "cli/text.hpp"
#include "grosr/net/mpi.hpp"
#include "measure/report.hpp"
#include "measure/samples.hpp"
#include "ranks/options.hpp"
#include "updates.hpp"
#include "ways/rows.hpp"

namespace grosr::gups {
namespace {

using ranks::number_or, tool::row;

struct gups_options {
  ranks::options where;
  std::optional<std::string> json, table, updates, buffer, per_task;
  std::vector<std::string> ways;
  bool mpi = false;
};

struct measured {
  double updates_per_s = 0, exchanges = 0;
  std::vector<net::rank_stats> stats;
  unsigned rounds = 0;
  std::uint64_t wrong = 0;
};

std::uint32_t processes_of(const problem& p) {
  return p.processes != nullptr ? p.processes->processes() : 1;
}

/// Processes make as many rounds as each other, whatever time they take.
bool enough(const problem& p, std::size_t rounds, tool::clock::time_point began) {
  if (processes_of(p) > 1) return rounds == 10;
  return rounds >= 4 && rounds % 2 == 0 && (rounds >= 20 || tool::microseconds_since(began) >= 2e6);
}

/// Rounds go forth and back, so that in the end the table is what it was: zero.
measured measure(const problem& p, const named_way& how) {
  const auto way = how.make(p);
  way->round(false);
  way->round(true);
  std::vector<double> us;
  const auto began = tool::clock::now();
  while (!enough(p, us.size(), began)) {
    tool::interrupt::check();
    us.push_back(tool::timed([&] { way->round(us.size() % 2 != 0); }));
  }
  measured m;
  m.rounds = static_cast<unsigned>(us.size()) + 2;
  m.updates_per_s = static_cast<double>(p.updates) * p.ranks * processes_of(p) * 1e6 /
                    tool::samples(std::move(us)).median();
  m.exchanges = way->exchanges();
  m.stats = way->stats();
  m.wrong = way->wrong();
  return m;
}

row compare(const problem& p, const std::vector<const named_way*>& ways) {
  const std::uint32_t processes = processes_of(p);
  row r(fmt::format("{} ranks{}, a table of {} elements, {} updates of each rank",
                    p.ranks * processes,
                    processes > 1 ? fmt::format(" in {} processes", processes) : std::string(),
                    tool::grouped(p.elements), tool::grouped(p.updates)));
  for (const named_way* how : ways) {
    const measured m = measure(p, *how);
    r.set(ways::key_of(*how, "updates_per_s"), m.updates_per_s)
        .check(m.wrong == 0, fmt::format("{}: {} elements are not what they were", how->name,
                                         tool::grouped(m.wrong)));
    if (m.exchanges != 0) r.set(ways::key_of(*how, "exchanges"), m.exchanges);
    if (ways::is_messages(*how))
      ways::set_messages(r, m.stats, static_cast<double>(p.updates) * p.ranks * m.rounds);
  }
  ways::compare_last(r, ways, "updates_per_s");
  return r;
}

/// Processes of a machine take its GPUs in turn.
device gpu_of(std::uint32_t process) {
  std::vector<device> gpus = device::list();
  std::erase_if(gpus, [](const device& d) { return !d.is_cuda(); });
  return gpus[process % gpus.size()];
}

int run(const gups_options& o) {
  problem p{o.where.read(o.mpi ? 1 : 0)};
  if (o.mpi) {
    if (o.ways != std::vector<std::string>(o.ways.size(), "messages"))
      throw tool::usage_error("--way: with --mpi there are messages alone");
    p.processes = &net::mpi();
    if (p.where.is_cuda() && !o.where.device) p.where = gpu_of(p.processes->process());
  }
  const bool gpu = p.where.is_cuda();
  p.elements = (o.table ? tool::parse_bytes("--table", *o.table, 1024, std::size_t{1} << 40)
                        : std::size_t{1} << (gpu ? 33 : 20)) /
               8;
  if (!std::has_single_bit(p.elements))
    throw tool::usage_error("--table: it must be a power of two");
  p.per_task =
      number_or<std::uint32_t>("--per-task", o.per_task, gpu ? 131'072 : 512, 1, 1'000'000);
  p.updates = number_or("--updates", o.updates, gpu ? 1 << 28 : 1 << 14, 1, 1'000'000'000'000);
  p.updates = (p.updates + p.per_task - 1) / p.per_task * p.per_task;
  p.buffer_bytes = o.buffer ? tool::parse_bytes("--buffer", *o.buffer, 16, 16 << 20) : 64 << 10;
  const std::vector<const named_way*> ways =
      ways::chosen(all_ways(), o.mpi ? std::vector<std::string>{"messages"} : o.ways);
  if (o.mpi && p.processes->process() != 0)  // the first one prints
    return measure(p, *ways.back()).wrong == 0 ? tool::exit_ok : tool::exit_failed;
  tool::report out("gups", p.where, tool::json_file(o.json), tool::report::style::full);
  try {
    out.add(compare(p, ways));
  } catch (const tool::interrupt::interrupted&) {
    out.interrupted();
    out.finish();
    return tool::exit_interrupted;
  } catch (const std::exception& e) {
    out.failed(e.what());
    out.finish();
    throw;
  }
  return out.finish();
}

}  // namespace
}  // namespace grosr::gups

int main(int argc, char** argv) {
  using namespace grosr::gups;
  CLI::App program{
      "Random updates of a table that lies on several ranks, in updates per second: by messages, "
      "by atomics to the memory of other ranks, by buffers that the host exchanges, and by a "
      "kernel "
      "that does nothing else",
      "gups"};
  gups_options o;
  std::vector<std::string> ways;
  for (const named_way& way : all_ways()) ways.push_back(way.name);
  o.where.add_device(program);
  o.where.add_ranks(program);
  program.add_option("--table", o.table, "Bytes of the table, a power of two; 8G on GPUs, else 1M")
      ->type_name("BYTES");
  program
      .add_option("--updates", o.updates,
                  "Of each rank in a round; 268,435,456 on GPUs, else 16,384")
      ->type_name("N");
  program
      .add_option("--per-task", o.per_task,
                  "Updates of a task, which is a warp's; 131,072 on GPUs, else 512")
      ->type_name("N");
  o.where.add_link(program);
  program
      .add_option("--buffer", o.buffer,
                  "Bytes of a buffer of the coprocessor, for each rank of another one; 64K")
      ->type_name("BYTES");
  program
      .add_option("--way", o.ways,
                  "Compare these alone: " + fmt::format("{}", fmt::join(ways, ", ")))
      ->check(CLI::IsMember(ways))
      ->type_name("W");
  program.add_flag("--mpi", o.mpi,
                   "Processes that mpirun started have so many ranks each, 1 by default; the first "
                   "one prints");
  program.add_option("--json", o.json, "Also write the results to FILE; - is standard output")
      ->type_name("FILE");
  program.footer(
      "Examples:\n"
      "  gups\n"
      "  gups --ranks 4 --table 1G --updates 10M --json gups.json\n"
      "  gups --way messages --link 16K\n"
      "  mpirun -n 4 gups --mpi\n\n"
      "Exit code: 0; 1 if a result was wrong; 2 if nothing could be started; 130 on Ctrl-C.");
  return grosr::tool::run_program(program, argc, argv, [&] { return run(o); });
}
