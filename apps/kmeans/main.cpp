// kmeans: clusters of points that lie on several ranks, by messages, by atomics to the memory of
// other ranks, by kernels between which the host moves buffers, and by kernels without ranks.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/program.hpp"
#include "cli/text.hpp"
#include "clustering.hpp"
#include "measure/report.hpp"
#include "measure/samples.hpp"
#include "ranks/options.hpp"
#include "ways/rows.hpp"

namespace grosr::kmeans {
namespace {

using ranks::number_or, tool::row;

struct kmeans_options {
  ranks::options where;
  std::optional<std::string> json, points, dimensions, clusters, iterations, seed, buffer, per_task,
      repeat;
  std::vector<std::string> ways;
};

struct expectation {
  centroid_list centroids;
  double us;
};

/// Additions to sums, and of one to counts.
double updates_of(const problem& p) {
  return static_cast<double>(p.points->size()) * p.size().width() * p.iterations;
}

std::size_t wrong_in(const std::vector<centroid_list>& found, const centroid_list& expected) {
  std::size_t wrong = 0;
  for (const centroid_list& list : found)
    for (std::size_t i = 0; i < expected.size(); ++i) wrong += list[i] != expected[i] ? 1 : 0;
  return wrong;
}

/// The first run brings the kernels to the GPU.
void measure(row& r, const problem& p, const named_way& how, unsigned repeats,
             const centroid_list& expected) {
  const auto way = how.make(p);
  const unsigned before = p.where.is_cuda() ? 1 : 0;
  std::vector<double> us;
  for (unsigned i = 0; i < before + repeats; ++i) {
    tool::interrupt::check();
    way->begin(p.points->first_centroids(p.clusters));
    const double took = tool::timed([&] { way->iterate(); });
    if (i >= before) us.push_back(took);
    const std::size_t wrong = wrong_in(way->centroids(), expected);
    r.check(wrong == 0, fmt::format("{}: {} numbers of centroids are not what a thread finds",
                                    how.name, tool::grouped(wrong)));
  }
  const double seconds = tool::samples(std::move(us)).median() / 1e6;
  r.set(ways::key_of(how, "updates_per_s"), updates_of(p) / seconds);
  if (way->exchanges() != 0) r.set(ways::key_of(how, "exchanges"), way->exchanges());
  if (ways::is_messages(how))
    ways::set_messages(r, way->stats(), updates_of(p) * (before + repeats));
}

row compare(const problem& p, const std::vector<const named_way*>& ways, unsigned repeats) {
  expectation one_thread;
  one_thread.us = tool::timed(
      [&] { one_thread.centroids = cluster_sequentially(*p.points, p.clusters, p.iterations); });
  row r(fmt::format("{} rank{}, {} points of {} dimension{}, {} cluster{}, {} iteration{}", p.ranks,
                    p.ranks == 1 ? "" : "s", tool::grouped(p.points->size()), p.points->dimensions,
                    p.points->dimensions == 1 ? "" : "s", tool::grouped(p.clusters),
                    p.clusters == 1 ? "" : "s", tool::grouped(p.iterations),
                    p.iterations == 1 ? "" : "s"));
  for (const named_way* how : ways) measure(r, p, *how, repeats, one_thread.centroids);
  ways::compare_last(r, ways, "updates_per_s");
  return std::move(r.baseline("one thread of the CPU", ways::key_of(*ways.back(), "updates_per_s"),
                              updates_of(p) * 1e6 / one_thread.us));
}

int run(const kmeans_options& o) {
  problem p{o.where.read()};
  const bool gpu = p.where.is_cuda();
  constexpr auto number = number_or<std::uint32_t>;
  p.per_task = number("--per-task", o.per_task, gpu ? 1024 : 64, 1, 1'000'000);
  p.clusters = number("--clusters", o.clusters, 8, 1, 65'536);
  p.iterations = number("--iterations", o.iterations, gpu ? 10 : 3, 1, 10'000);
  const std::uint32_t dimensions = number("--dimensions", o.dimensions, 4, 1, 1024),
                      points = number("--points", o.points, gpu ? 1 << 24 : 2048, 1, 1'000'000'000);
  if (points < p.clusters)
    throw tool::usage_error(fmt::format(
        "--points: {} clusters begin at as many points, and there are {}; give more points, or "
        "fewer clusters",
        p.clusters, points));
  const std::size_t item = sizeof(std::uint64_t) * 2 * (dimensions + 1);
  p.buffer_bytes = o.buffer ? tool::parse_bytes("--buffer", *o.buffer, 16, 16 << 20)
                            : std::max<std::size_t>(64 << 10, item);
  if (p.buffer_bytes < item)
    throw tool::usage_error(fmt::format(
        "--buffer: a point of {} dimensions takes {} bytes of a buffer of {}; give that many",
        dimensions, item, p.buffer_bytes));
  const unsigned repeats = number("--repeat", o.repeat, gpu ? 10 : 1, 1, 1000);
  const std::vector<const named_way*> ways = ways::chosen(all_ways(), o.ways);
  tool::json_file json(o.json);
  const point_set all = random_points(points, dimensions, p.clusters,
                                      number_or("--seed", o.seed, 1, 0, ~std::uint64_t{0} / 4));
  p.points = &all;
  tool::report out("kmeans", p.where, std::move(json), tool::report::style::full);
  try {
    out.add(compare(p, ways, repeats));
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
}  // namespace grosr::kmeans

int main(int argc, char** argv) {
  using namespace grosr::kmeans;
  CLI::App program{
      "Clusters of points that lie on several ranks, by k-means: sums of clusters on other ranks "
      "are reached by messages, or in other ways",
      "kmeans"};
  kmeans_options o;
  std::vector<std::string> ways;
  for (const named_way& way : all_ways()) ways.push_back(way.name);
  const auto option = [&](const char* name, std::optional<std::string>& value, const char* text,
                          const char* type = "N") {
    program.add_option(name, value, text)->type_name(type);
  };
  o.where.add_device(program);
  option("--points", o.points, "Of all ranks; 16,777,216 on GPUs, else 2,048");
  option("--dimensions", o.dimensions, "Of a point, 1 to 1,024; 4");
  option("--clusters", o.clusters, "How many, 1 to 65,536; 8");
  option("--iterations", o.iterations, "How many; 10 on GPUs, else 3");
  option("--seed", o.seed, "Of the points; 1");
  o.where.add_ranks(program);
  option("--per-task", o.per_task, "Points of a task, which is a warp's; 1,024 on GPUs, else 64");
  o.where.add_link(program);
  option("--buffer", o.buffer,
         "Bytes of a buffer of the coprocessor, for each rank of another one; 64K", "BYTES");
  option("--repeat", o.repeat, "Measured runs of each way, 1 to 1000; 10 on GPUs, else 1");
  program
      .add_option("--way", o.ways,
                  "Compare these alone: " + fmt::format("{}", fmt::join(ways, ", ")))
      ->check(CLI::IsMember(ways))
      ->type_name("W");
  option("--json", o.json, "Also write the results to FILE; - is standard output", "FILE");
  program.footer(
      "Examples:\n"
      "  kmeans\n"
      "  kmeans --ranks 4 --points 1M --dimensions 16 --clusters 64 --json kmeans.json\n"
      "  kmeans --way messages --link 16K\n\n"
      "Exit code: 0; 1 if a result was wrong; 2 if nothing could be started; 130 on Ctrl-C.");
  return grosr::tool::run_program(program, argc, argv, [&] { return run(o); });
}
