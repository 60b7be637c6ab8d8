// Vectorscan, or Hyperscan, whose interface it has: the fastest matcher of many strings on CPUs.
#include "cli/errors.hpp"
#include "counting.hpp"

#ifdef GROSR_HAS_VECTORSCAN
#include <hs.h>

#include <memory>
#include <stdexcept>

#include "cpu_files.hpp"
#include "cpu_time.hpp"
#endif

namespace grosr::wordcount {

#ifdef GROSR_HAS_VECTORSCAN
namespace {

struct found {
  std::array<std::uint64_t, most_words> counts{};
  hs_scratch_t* scratch = nullptr;
  std::uint32_t own = 0;
};

int on_match(unsigned word, unsigned long long, unsigned long long to, unsigned, void* context) {
  auto& f = *static_cast<found*>(context);
  if (to > f.own) ++f.counts[word];
  return 0;
}

class vectorscan_counter final : public counter {
 public:
  vectorscan_counter(const question& q, unsigned threads) : files_(q.list), threads_(threads) {
    std::vector<const char*> text;
    std::vector<std::size_t> length;
    std::vector<unsigned> flags(q.words.size(), 0), number;
    for (const std::string& w : q.words) {
      number.push_back(static_cast<unsigned>(text.size()));
      text.push_back(w.data());
      length.push_back(w.size());
    }
    hs_compile_error_t* bad = nullptr;
    if (hs_compile_lit_multi(text.data(), flags.data(), number.data(), length.data(),
                             static_cast<unsigned>(text.size()), HS_MODE_BLOCK, nullptr, &words_,
                             &bad) != HS_SUCCESS) {
      const std::string why = bad != nullptr ? bad->message : "it does not say why";
      hs_free_compile_error(bad);
      throw std::runtime_error("vectorscan does not take the words: " + why);
    }
    if (hs_alloc_scratch(words_, &scratch_) != HS_SUCCESS) throw std::bad_alloc();
  }
  ~vectorscan_counter() override {
    hs_free_scratch(scratch_);
    hs_free_database(words_);
  }

  answer count() override {
    answer a;
    take_time(a, [&] {
      files_.read(
          threads_, a,
          [&] {
            found f;
            hs_clone_scratch(scratch_, &f.scratch);
            return f;
          },
          [&](found& f, const unsigned char* text, std::uint32_t bytes, std::uint32_t own) {
            f.own = own;
            hs_scan(words_, reinterpret_cast<const char*>(text), bytes, 0, f.scratch, on_match, &f);
          },
          [&](found& f) {
            hs_free_scratch(f.scratch);
            for (unsigned i = 0; i < most_words; ++i) a.counts[i] += f.counts[i];
          });
    });
    return a;
  }

  std::string name() const override {
    return "vectorscan, " + std::to_string(threads_) + " threads";
  }

 private:
  cpu_files files_;
  unsigned threads_;
  hs_database_t* words_ = nullptr;
  hs_scratch_t* scratch_ = nullptr;
};

}  // namespace

bool has_vectorscan() { return true; }

std::unique_ptr<counter> count_by_vectorscan(const question& q, unsigned threads) {
  return std::make_unique<vectorscan_counter>(q, threads);
}
#else
bool has_vectorscan() { return false; }

std::unique_ptr<counter> count_by_vectorscan(const question&, unsigned) {
  throw tool::usage_error(
      "--by vectorscan: this program was built without it; install libvectorscan-dev or "
      "libhyperscan-dev and build again");
}
#endif

}  // namespace grosr::wordcount
