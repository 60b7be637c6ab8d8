// The same automaton on the CPU, by OpenMP threads.
#include <memory>

#include "cli/errors.hpp"
#include "counting.hpp"

#ifdef GROSR_HAS_OPENMP
#include "cpu_files.hpp"
#include "cpu_time.hpp"
#endif

namespace grosr::wordcount {

#ifdef GROSR_HAS_OPENMP
namespace {

class openmp_counter final : public counter {
 public:
  openmp_counter(const question& q, unsigned threads)
      : files_(q.list), automaton_(q.words), threads_(threads) {}

  answer count() override {
    answer a;
    take_time(a, [&] {
      const automaton_ref words = automaton_.ref();
      using counts = std::array<std::uint64_t, most_words>;
      files_.read(
          threads_, a, [] { return counts{}; },
          [&](counts& mine, const unsigned char* text, std::uint32_t bytes, std::uint32_t own) {
            words.scan(automaton_ref::start, text, bytes,
                       [&](std::uint32_t i, std::uint32_t state) {
                         if (i >= own)
                           words.each_word(state, [&](std::uint8_t word) { ++mine[word]; });
                       });
          },
          [&](const counts& mine) {
            for (unsigned i = 0; i < most_words; ++i) a.counts[i] += mine[i];
          });
    });
    return a;
  }

  std::string name() const override { return "OpenMP, " + std::to_string(threads_) + " threads"; }

 private:
  cpu_files files_;
  automaton automaton_;
  unsigned threads_;
};

}  // namespace

bool has_openmp() { return true; }

std::unique_ptr<counter> count_by_openmp(const question& q, unsigned threads) {
  return std::make_unique<openmp_counter>(q, threads);
}
#else
bool has_openmp() { return false; }

std::unique_ptr<counter> count_by_openmp(const question&, unsigned) {
  throw tool::usage_error(
      "--by openmp: this program was built without OpenMP; build it with a compiler that has it");
}
#endif

}  // namespace grosr::wordcount
