// By kernels that cannot send: they fill buffers, which the host exchanges between ranks.
#include "coprocessor/exchange.hpp"
#include "grosr/net/array.hpp"
#include "random_updates.hpp"

namespace grosr::gups {
namespace {

/// The updates of a rank, as items of an exchange: each is one update.
struct rank_updates {
  net::layout table;
  std::uint64_t seed, updates;
  std::uint32_t shift, back;

  struct position {
    random_numbers random;
    std::uint64_t x, left;
  };
  GROSR_DEVICE position begin(std::uint32_t thread, std::uint32_t threads) const {
    position at{random_numbers(seed + thread), 0,
                updates / threads + (thread < updates % threads ? 1 : 0)};
    at.x = at.random.next();
    return at;
  }
  GROSR_DEVICE bool ended(const position& at) const { return at.left == 0; }
  GROSR_DEVICE std::uint32_t look(const position& at) const {
    return table.find(at.x >> shift).rank;
  }
  GROSR_DEVICE coprocessor::update get(const position& at, std::uint32_t) const {
    return {table.find(at.x >> shift).offset, addend_of(at.x, back != 0)};
  }
  GROSR_DEVICE void advance(position& at, std::uint32_t) const {
    at.x = at.random.next();
    --at.left;
  }
};

class exchanged_buffers : public way {
 public:
  exchanged_buffers(const problem& p, std::size_t buffer_bytes)
      : p_(p),
        layout_(p.elements, p.ranks, net::distribution::block),
        table_(p.where, simt::space::device, p.elements),
        exchanger_(p.where, p.ranks, grid_of(p.where, p.sms), 1, buffer_bytes) {}

  void round(bool back) override {
    std::vector<coprocessor::assignment<rank_updates>> all;
    for (std::uint32_t r = 0; r < p_.ranks; ++r)
      all.push_back({{layout_, (std::uint64_t{r} << 32) + 1, p_.updates, shift_of(p_.elements),
                      back ? 1u : 0u},
                     table_.data() + layout_.index_of({r, 0})});
    exchanges_ += static_cast<double>(exchanger_.run(all));
    ++rounds_;
  }

  std::uint64_t wrong() override { return wrong_in(table_, p_.where); }
  double exchanges() override { return exchanges_ / rounds_; }

 private:
  problem p_;
  net::layout layout_;
  simt::buffer<std::uint64_t> table_;
  coprocessor::exchanger<rank_updates> exchanger_;
  double exchanges_ = 0, rounds_ = 0;
};

}  // namespace

std::unique_ptr<way> by_coprocessor(const problem& p, unsigned times) {
  return std::make_unique<exchanged_buffers>(p, p.buffer_bytes * times);
}

}  // namespace grosr::gups
