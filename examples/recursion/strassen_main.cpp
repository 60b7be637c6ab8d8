// strassen: multiplies matrices of floats on a device by fork and join.
#include "recursion/strassen.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "cli/errors.hpp"
#include "cli/program.hpp"
#include "cli/text.hpp"
#include "measure/report.hpp"
#include "recursion/sized_program.hpp"

namespace grosr::recursion {
namespace {

constexpr std::uint32_t most = 32'768;

struct strassen_options : sized_options {
  std::optional<std::string> leaf;
  bool plain = false;
};

/// The largest whole number that matrices may hold so that all sums are exact in floats: those
/// of Strassen's factors double at each level, and the results are sums of four products.
int largest_exact(double n, double leaf) {
  const double levels = std::log2(n / std::min(n, leaf));
  return static_cast<int>(
      std::min(100.0, std::sqrt(0x1p22 / std::min(n, leaf)) / std::exp2(levels)));
}

class multiplying {
 public:
  explicit multiplying(const strassen_options& o)
      : plan_(o, {4096, 256, 64, most, 8192}), n_(static_cast<std::uint32_t>(plan_.size)) {
    if (!strassen::fits(n_))
      throw tool::usage_error(fmt::format("N is {}; give 64 times a power of two, such as {}", n_,
                                          std::clamp<std::uint32_t>(std::bit_floor(n_), 64, most)));
    if (o.plain && o.leaf)
      throw tool::usage_error("--plain and --leaf: plain has no recursion; give one of them");
    leaf_ = o.leaf ? static_cast<std::uint32_t>(tool::parse_number("--leaf", *o.leaf, 64, most))
            : plan_.where.is_cuda() ? 1024
                                    : 64;
    if (o.plain) leaf_ = n_;
    largest_ = largest_exact(n_, leaf_);
    if (largest_ == 0)
      throw tool::usage_error(fmt::format(
          "N {} with --leaf {}: floats are not exact there; choose a larger leaf", n_, leaf_));
    json_ = o.json;
  }

  int run() {
    tool::report out("strassen", plan_.where, tool::json_file(json_),
                     tool::report::style::one_line_a_row);
    try {
      out.add(measure());
    } catch (const tool::interrupt::interrupted&) {
      out.interrupted();
      out.finish();
      throw;
    } catch (const std::exception& e) {
      out.failed(e.what());
      out.finish();
      throw;
    }
    return out.finish();
  }

 private:
  std::vector<float> make(std::uint64_t seed) const {
    std::vector<float> m(cells());
    for (float& v : m) {
      seed = seed * 6364136223846793005ull + 1442695040888963407ull;
      v = static_cast<float>(static_cast<int>((seed >> 33) % (2 * largest_ + 1)) - largest_);
    }
    return m;
  }
  std::size_t cells() const { return std::size_t{n_} * n_; }

  tool::row measure() {
    const auto space = simt::space::device;
    const std::vector<float> a = make(1), b = make(2);
    const std::uint64_t more = strassen::arena_size(n_, leaf_);
    simt::buffer<float> da(plan_.where, space, cells()), db(plan_.where, space, cells()),
        dc(plan_.where, space, cells()), arena(plan_.where, space, more);
    da.copy_from(a);
    db.copy_from(b);
    strassen product(plan_.where, plan_.runtime);
    const tool::samples times = plan_.repeat(
        "multiply", [] {}, [&] { product.run(da, db, dc, arena, n_, leaf_); });
    tool::row r(leaf_ >= n_ ? fmt::format("{} x {}, plain", n_, n_)
                            : fmt::format("{} x {}, leaves of {}", n_, n_, leaf_));
    r.rate(times, "flop", 2.0 * n_ * n_ * n_);
    r.set("arena_bytes", static_cast<double>(more * sizeof(float)));
    r.set("tasks_a_product_tasks",
          static_cast<double>(product.stats().tasks) / (plan_.repeats + 1));
    if (!plan_.checks) return r.note("not checked: --check on has the CPU look at it");
    std::vector<float> c(cells());
    dc.copy_to(c);
    if (n_ <= 1024)
      r.check(c == multiply_on_host(a, b, n_), "it is not the product that the CPU computes");
    else
      r.check(is_product(a, b, c, n_), "c x is not a (b x) for some vector x");
    return r;
  }

  sized_plan plan_;
  std::uint32_t n_, leaf_ = 0;
  int largest_ = 0;
  std::optional<std::string> json_;
};

}  // namespace
}  // namespace grosr::recursion

int main(int argc, char** argv) {
  using namespace grosr::recursion;
  CLI::App program{
      "Multiplies matrices of floats on a device as Strassen does: tasks fork seven products of "
      "half the size, and join to add them",
      "strassen"};
  strassen_options o;
  add_options(program, o,
              "Rows and columns, 64 times a power of two; 4096 on GPUs, 256 on the host backend");
  program
      .add_option("--leaf", o.leaf,
                  "Products up to this side are computed in the plain way; 1024 on GPUs, 64 on the "
                  "host backend")
      ->type_name("N");
  program.add_flag("--plain", o.plain, "All in the plain way, to compare");
  program.footer(std::string("Rates count the 2 N^3 operations of the plain way. The matrices hold "
                             "whole numbers, so small that results are exact.\n\n"
                             "Examples:\n"
                             "  strassen\n"
                             "  strassen 8192 --leaf 2048\n"
                             "  strassen 4096 --plain --json plain.json\n\n") +
                 exit_codes);
  return grosr::tool::run_program(program, argc, argv, [&] { return multiplying(o).run(); });
}
