#include "reads.hpp"

#include <errno.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>

#include "cli/text.hpp"
#include "grosr/simt/error.hpp"

namespace grosr::genome {

std::uint32_t code_of(char base) { return base == 'A' ? 0 : base == 'C' ? 1 : base == 'G' ? 2 : 3; }

std::string reverse_complement(const std::string& bases) {
  std::string r(bases.rbegin(), bases.rend());
  for (char& b : r) b = "TGCA"[code_of(b)];
  return r;
}

sequences random_genome(std::uint64_t bases, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string all(bases, 'A');
  std::uint64_t bits = 0;
  for (std::uint64_t i = 0; i < bases; ++i, bits >>= 2) {
    if (i % 32 == 0) bits = random();
    all[i] = "ACGT"[bits & 3];
  }
  return {all};
}

sequences read_fasta(const std::string& path, std::uint64_t least) {
  const std::string name = tool::one_line(path);
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw error(errc::bad_input, fmt::format("{}: {}; name a FASTA file", name, strerror(errno)));
  sequences all;
  std::string line, now;
  const auto end_sequence = [&] {
    if (now.size() >= least) all.push_back(now);
    now.clear();
  };
  bool begun = false;
  std::uint64_t longest = 0;
  for (std::uint64_t number = 1; std::getline(file, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.starts_with('>')) {
      end_sequence();
      begun = true;
      continue;
    }
    if (line.starts_with(';')) continue;  // a comment of old files
    for (const char c : line) {
      const char base = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
      if (!begun)
        throw error(errc::bad_input,
                    fmt::format("{}: line {} is not \">\" and a name, by which a sequence of a "
                                "FASTA file begins",
                                name, number));
      if (std::strchr("ACGT", base) != nullptr && base != 0)
        now.push_back(base);
      else if (base == 'U')
        now.push_back('T');
      else if (std::strchr("RYSWKMBDHVN-", base) != nullptr && base != 0)
        end_sequence();
      else
        throw error(errc::bad_input,
                    fmt::format("{}: line {} has \"{}\", which is no base; give DNA in FASTA", name,
                                number, tool::one_line(std::string(1, c))));
      longest = std::max<std::uint64_t>(longest, now.size());
    }
  }
  if (file.bad() || !file.eof())
    throw error(errc::bad_input, fmt::format("{}: {}", name, strerror(errno)));
  end_sequence();
  if (all.empty())
    throw error(errc::bad_input,
                fmt::format("{}: its longest sequence of known bases has {}; k-mers and what is "
                            "beside them need {}",
                            name, longest, least));
  return all;
}

read_set::read_set(const sequences& genome, std::uint32_t read_bases, double coverage,
                   std::uint64_t seed)
    : stride(1 + (read_bases + 15) / 16) {
  std::mt19937_64 random(seed * 2 + 1);
  for (std::uint32_t s = 0; s < genome.size(); ++s) {
    const std::uint64_t all = genome[s].size(), bases = std::min<std::uint64_t>(all, read_bases);
    const auto add = [&](std::uint64_t first) {
      places.push_back({s, first, static_cast<std::uint32_t>(bases), random() % 2 != 0});
    };
    add(0);
    if (all > bases) add(all - bases);
    const double wanted = std::ceil(static_cast<double>(all) * coverage / read_bases);
    for (double i = 2; i < wanted; ++i) add(random() % (all - bases + 1));
  }
  words.resize(places.size() * stride);
  for (std::size_t r = 0; r < places.size(); ++r) {
    const read_place& at = places[r];
    std::string bases = genome[at.sequence].substr(at.first, at.bases);
    if (at.reversed) bases = reverse_complement(bases);
    std::uint32_t* const to = words.data() + r * stride;
    to[0] = at.bases;
    for (std::uint32_t i = 0; i < at.bases; ++i)
      to[1 + i / 16] |= code_of(bases[i]) << 2 * (i % 16);
  }
}

std::uint64_t read_set::kmers(std::uint32_t k) const {
  std::uint64_t all = 0;
  for (const read_place& p : places) all += p.bases < k ? 0 : p.bases - k + 1;
  return all;
}

}  // namespace grosr::genome
