// genome: the de Bruijn graph of reads, in a hash table that lies on several ranks, and its
// contigs.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "assembly.hpp"
#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/program.hpp"
#include "cli/text.hpp"
#include "measure/report.hpp"
#include "measure/samples.hpp"
#include "ranks/messages.hpp"
#include "ranks/options.hpp"

namespace grosr::genome {
namespace {

using ranks::number_or, tool::row;

struct genome_options {
  ranks::options where;
  std::optional<std::string> json, fasta, bases, seed, kmer, coverage, read_bases, repeat;
};

/// What is found sequentially, and in what time.
struct expectation {
  kmer_table kmers;
  std::vector<std::string> contigs;
  double count_us, walk_us;

  expectation(const read_set& reads, kmer_size size) {
    count_us = tool::timed([&] { kmers = count_sequentially(reads, size); });
    walk_us = tool::timed([&] { contigs = contigs_sequentially(kmers, size); });
  }
  double bases() const {
    double all = 0;
    for (const std::string& c : contigs) all += static_cast<double>(c.size());
    return all;
  }
};

bool same(const kmer_table& a, const kmer_table& b) {
  return a.size() == b.size() && std::all_of(a.begin(), a.end(), [&](const auto& e) {
           const auto at = b.find(e.first);
           return at != b.end() && at->second.count == e.second.count &&
                  at->second.beside.bits == e.second.beside.bits;
         });
}

std::string wrong_contigs(const std::vector<std::string>& found,
                          const std::vector<std::string>& expected) {
  if (found == expected) return {};
  std::vector<std::string> missing;
  std::set_difference(expected.begin(), expected.end(), found.begin(), found.end(),
                      std::back_inserter(missing));
  return fmt::format("{} contigs were found instead of {}; {} of these are missing", found.size(),
                     expected.size(), missing.size());
}

std::uint64_t words_of(const assembly& a) { return ranks::messages(a.stats()).words; }

/// Both phases, measured and checked.
void measure(tool::report& out, const placement& p, const sequences& genome, const read_set& reads,
             kmer_size size, unsigned repeats) {
  const expectation expected(reads, size);
  tool::interrupt::check();
  const std::string on = fmt::format("{} rank{}", p.ranks, p.ranks == 1 ? "" : "s");
  row kmers("k-mers counted, " + on), contigs("contigs followed, " + on);
  assembly a(p, reads, size, expected.kmers.size());
  // The first run brings the kernels to the GPU.
  const unsigned before = p.where.is_cuda() ? 1 : 0;
  std::vector<double> count_us, walk_us;
  std::uint64_t count_words = 0, walk_words = 0;
  for (unsigned i = 0; i < before + repeats; ++i) {
    a.begin();
    std::uint64_t words = words_of(a);
    const double counted = tool::timed([&] { a.count(); });
    count_words = words_of(a) - words;
    tool::interrupt::check();
    kmers.check(same(a.kmers(), expected.kmers),
                "k-mers, their numbers or what is beside them are not what a thread finds");
    double walked = 0;
    for (bool done = false; !done;) {
      words = words_of(a);
      walked = tool::timed([&] { done = a.walk(); });
      walk_words = words_of(a) - words;
    }
    tool::interrupt::check();
    const std::vector<std::string> found = a.contigs();
    for (const std::string& wrong :
         {wrong_contigs(found, expected.contigs), not_in_genome(found, genome, reads, size)})
      contigs.check(wrong.empty(), wrong);
    if (i < before) continue;
    count_us.push_back(counted);
    walk_us.push_back(walked);
  }
  const auto seen = static_cast<double>(reads.kmers(size.k));
  std::size_t longest = 0;
  for (const std::string& c : expected.contigs) longest = std::max(longest, c.size());
  out.add(kmers.rate(tool::samples(count_us), "kmers", seen)
              .set("different_kmers", static_cast<double>(expected.kmers.size()))
              .set("kmer_words", static_cast<double>(count_words) / std::max(seen, 1.0))
              .baseline("one thread of the CPU", "kmers_per_s", seen * 1e6 / expected.count_us));
  const double bases = expected.bases();
  contigs.rate(tool::samples(walk_us), "bases", bases)
      .set("contigs", static_cast<double>(expected.contigs.size()))
      .set("longest_bases", static_cast<double>(longest));
  out.add(ranks::messages(a.stats())
              .add_to(contigs, "base_words", walk_words, bases)
              .baseline("one thread of the CPU", "bases_per_s", bases * 1e6 / expected.walk_us));
}

int run(const genome_options& o) {
  const placement p = o.where.read();
  const bool gpu = p.where.is_cuda();
  const auto repeats = number_or<unsigned>("--repeat", o.repeat, gpu ? 10 : 1, 1, 1000);
  const kmer_size size{number_or<std::uint32_t>("--kmer", o.kmer, 21, 3, most_k)};
  if (size.k % 2 == 0)
    throw tool::usage_error("--kmer: it must be odd, so that no k-mer is its own complement");
  const auto read_bases = number_or<std::uint32_t>("--read", o.read_bases, 100, 1, 1'000'000);
  if (read_bases <= size.k)
    throw tool::usage_error(fmt::format(
        "--read: reads of {} bases have no {}-mer with a base beside it; give more than {}",
        read_bases, size.k, size.k));
  const auto coverage = number_or<double>("--coverage", o.coverage, 10, 1, 10'000);
  const std::uint64_t seed = number_or("--seed", o.seed, 1, 0, ~std::uint64_t{0} / 4);
  const std::uint64_t bases =
      number_or("--bases", o.bases, gpu ? 1'000'000 : 5'000, size.k + 1, std::uint64_t{1} << 32);
  tool::json_file json(o.json);
  const sequences genome = o.fasta ? read_fasta(*o.fasta, size.k + 1) : random_genome(bases, seed);
  const read_set reads(genome, read_bases, coverage, seed);
  tool::report out("genome", p.where, std::move(json), tool::report::style::full);
  std::uint64_t all = 0;
  for (const std::string& s : genome) all += s.size();
  out.remark(fmt::format("{}: {} bases in {} sequence{}, {} reads of {} bases, k-mers of {}",
                         o.fasta ? tool::one_line(*o.fasta) : "a random genome", tool::grouped(all),
                         tool::grouped(genome.size()), genome.size() == 1 ? "" : "s",
                         tool::grouped(reads.size()), read_bases, size.k));
  try {
    measure(out, p, genome, reads, size, repeats);
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
}  // namespace grosr::genome

int main(int argc, char** argv) {
  using namespace grosr::genome;
  CLI::App program{
      "The de Bruijn graph of a genome's reads, in a hash table that lies on several ranks, and "
      "its "
      "contigs, which tasks follow from rank to rank",
      "genome"};
  genome_options o;
  auto* const bases =
      program.add_option("--bases", o.bases, "Of a random genome; 1,000,000 on GPUs, else 5,000")
          ->type_name("N");
  program.add_option("--fasta", o.fasta, "Take the sequences of this file instead")
      ->excludes(bases)
      ->type_name("FILE");
  program.add_option("--seed", o.seed, "Of the random genome, and of where reads are cut; 1")
      ->type_name("N");
  program.add_option("--coverage", o.coverage, "Reads that a base lies in, on average; 10")
      ->type_name("N");
  program.add_option("--read", o.read_bases, "Bases of a read, more than a k-mer's; 100")
      ->type_name("N");
  program.add_option("--kmer", o.kmer, "Bases of a k-mer, odd, 3 to 31; 21")->type_name("K");
  o.where.add_device(program);
  o.where.add_ranks(program);
  o.where.add_link(program);
  program.add_option("--repeat", o.repeat, "Measured runs, 1 to 1000; 10 on GPUs, else 1")
      ->type_name("N");
  program.add_option("--json", o.json, "Also write the results to FILE; - is standard output")
      ->type_name("FILE");
  program.footer(
      "Examples:\n"
      "  genome\n"
      "  genome --bases 10M --coverage 20 --kmer 31 --ranks 4 --json genome.json\n"
      "  genome --fasta ecoli.fa --read 150\n\n"
      "Exit code: 0; 1 if a result was wrong; 2 if nothing could be started; 130 on Ctrl-C.");
  return grosr::tool::run_program(program, argc, argv, [&] { return run(o); });
}
