// uts: unbalanced tree search by tasks that fork and join.
#include <fmt/format.h>

#include "cli/pick_device.hpp"
#include "cli/program.hpp"
#include "recursion/measure.hpp"
#include "recursion/uts.hpp"

namespace grosr::recursion {
namespace {

struct tree_options {
  std::optional<std::string> name, kind, shape, depth, m, seed;
  std::optional<double> branch, q;

  bool any() const { return kind || shape || depth || m || seed || branch || q; }
};

std::string all_names() {
  std::string all;
  for (const uts_published& t : uts_trees())
    all += fmt::format("{}{}", all.empty() ? "" : ", ", t.name);
  return all;
}

uts_tree tree_of(const tree_options& o) {
  if (o.name) {
    if (o.any())
      throw tool::usage_error(
          fmt::format("TREE is {} and there are options of a tree too; give one or the other",
                      tool::one_line(*o.name)));
    for (const uts_published& t : uts_trees())
      if (t.name == *o.name) return t.tree;
    throw tool::usage_error(
        fmt::format("TREE is \"{}\"; give one of {}, or options such as -t 1 -a 3 -d 8 -b 4 -r 19",
                    tool::one_line(*o.name), all_names()));
  }
  if (!o.any())
    throw tool::usage_error(fmt::format(
        "there is no TREE; give one of {}, or options such as -t 1 -a 3 -d 8 -b 4 -r 19",
        all_names()));
  const auto number = [](const char* what, const std::optional<std::string>& text,
                         std::uint64_t otherwise, std::uint64_t most) {
    return text ? static_cast<std::uint32_t>(tool::parse_number(what, *text, 0, most))
                : static_cast<std::uint32_t>(otherwise);
  };
  if (o.kind && *o.kind != "0" && *o.kind != "1")
    throw tool::usage_error(
        fmt::format("-t is \"{}\"; give 0 (binomial) or 1 (geometric)", tool::one_line(*o.kind)));
  const bool binomial = o.kind == "0";
  if (o.shape && (binomial || *o.shape != "3"))
    throw tool::usage_error(
        fmt::format("-a is \"{}\"; of geometric trees (-t 1) there is shape 3 only: fixed",
                    tool::one_line(*o.shape)));
  if (binomial ? o.depth.has_value() : o.q || o.m)
    throw tool::usage_error(binomial ? "-d is of geometric trees; leave it out, or give -t 1"
                                     : "-q and -m are of binomial trees; give -t 0 with them");
  uts_tree t;
  t.seed = number("-r", o.seed, 0, 0x7fffffff);
  t.branch = o.branch.value_or(4);
  if (binomial) {
    t.shape = uts_tree::kind::binomial;
    t.depth = 0;
    t.q = o.q.value_or(15.0 / 64);
    t.m = number("-m", o.m, 4, uts_most_children);
  } else {
    t.depth = number("-d", o.depth, 6, uts_most_depth);
  }
  t.check();
  return t;
}

struct uts_job final : job {
  uts_job(const device& d, const runtime_options& o, const uts_tree& t) : tree(t), program(d, o) {
    for (const uts_published& p : uts_trees())
      if (p.tree == t) published = &p;
  }

  void run(const progress_callback& between) override { got = program.run(tree, between); }
  runtime_stats stats() override { return program.stats(); }
  void run_on_cpu() override { on_cpu = uts_on_host(tree); }
  bool is_small() const override { return got.nodes <= 5'000'000; }
  std::string name() const override {
    return published ? std::string(published->name) : tree.text();
  }
  std::string outcome() const override {
    return fmt::format("{}: {} nodes, {} leaves, depth {}", name(), tool::grouped(got.nodes),
                       tool::grouped(got.leaves), std::uint64_t{got.depth});
  }
  std::string outcome_json() const override {
    return fmt::format(R"({{"tree":"{}","nodes":{},"leaves":{},"depth":{},"random":{}}})",
                       tree.text(), std::uint64_t{got.nodes}, std::uint64_t{got.leaves},
                       std::uint64_t{got.depth}, std::uint64_t{got.random});
  }
  std::string wrong() const override {
    if (published && (got.nodes != published->nodes || got.depth != published->depth ||
                      (published->leaves != 0 && got.leaves != published->leaves)))
      return fmt::format("published are {} nodes, {} leaves, depth {}", published->nodes,
                         published->leaves, published->depth);
    if (on_cpu && got != *on_cpu)
      return fmt::format(
          "the CPU counts {} nodes, {} leaves, depth {}, random numbers {:x}, not {:x}",
          std::uint64_t{on_cpu->nodes}, std::uint64_t{on_cpu->leaves}, std::uint64_t{on_cpu->depth},
          std::uint64_t{on_cpu->random}, std::uint64_t{got.random});
    return "";
  }
  std::pair<std::string, double> work() const override {
    return {"nodes", static_cast<double>(got.nodes)};
  }

  uts_tree tree;
  const uts_published* published = nullptr;
  uts program;
  uts_count got{};
  std::optional<uts_count> on_cpu;
};

int run(const tree_options& t, const program_options& o) {
  const uts_tree tree = tree_of(t);
  const device where = tool::pick_device(o.device);
  tool::json_file file(o.json);
  uts_job j(where, o.for_runtime(), tree);
  return measure(j, "uts", o, where, std::move(file));
}

}  // namespace
}  // namespace grosr::recursion

int main(int argc, char** argv) {
  CLI::App program{
      "Unbalanced tree search: counts the nodes of a tree that SHA-1 numbers shape, so that nobody "
      "knows beforehand where the work is; a task a node with children",
      "uts"};
  grosr::recursion::program_options o;
  grosr::recursion::tree_options t;
  program.add_option("TREE", t.name, "A published tree: " + grosr::recursion::all_names());
  program.add_option("-t", t.kind, "Without TREE: 1 geometric, the default; 0 binomial")
      ->type_name("KIND");
  program.add_option("-a", t.shape, "Shape of a geometric tree: 3, fixed")->type_name("SHAPE");
  program.add_option("-d", t.depth, "Depth of a geometric tree; 6 by default")->type_name("D");
  program
      .add_option("-b", t.branch,
                  "Children of a geometric tree's node in the mean, of a binomial tree's root "
                  "exactly; 4 by default")
      ->type_name("B");
  program.add_option("-q", t.q, "Binomial: the share of nodes with children; 15/64 by default")
      ->type_name("Q");
  program.add_option("-m", t.m, "Binomial: how many those have; 4 by default")->type_name("M");
  program.add_option("-r", t.seed, "Seed; 0 by default")->type_name("R");
  o.add_to(program);
  program.footer(
      "Options of trees are those of the UTS benchmark (Olivier et al., LCPC 2006). T1 and T3 "
      "have\n"
      "4 million nodes, T1L and T3L 100 million, T1XL 1.6 and T1XXL 4.2 billion. Counts are "
      "compared\n"
      "with the published ones, and with --check with those of one CPU thread.\n\n"
      "Examples:\n"
      "  uts T1\n"
      "  uts -t 0 -b 200 -q 0.12 -m 8 -r 3 --check\n"
      "  uts T1XL --repeat 5 --json uts.json\n\n"
      "Exit code: 0; 1 if a result was wrong; 2 if nothing could be started; 130 on Ctrl-C.");
  return grosr::tool::run_program(program, argc, argv, [&] { return grosr::recursion::run(t, o); });
}
