#include <memory>

#include "work/basic.hpp"

#include "cli/interrupt.hpp"
#include "work/hosted.hpp"

namespace grosr::tool {

namespace {

using basic = hosted<store, second_stage, first_stage>;

void notice_interrupt(std::uint32_t turn) {
  if (turn % 4096 == 0) interrupt::check();
}

}  // namespace

std::unique_ptr<any_runtime> make_basic_runtime(const device& d, const runtime_options& options) {
  return std::make_unique<basic>(d, options);
}

std::unique_ptr<any_runtime> make_store_runtime(const device& d, const runtime_options& options) {
  return std::make_unique<hosted<store>>(d, options);
}

struct single_tasks::state {
  basic r;
};

single_tasks::single_tasks(const device& d, const runtime_options& options)
    : state_(new state{{d, options}}) {}
single_tasks::~single_tasks() = default;

any_runtime& single_tasks::runtime() const { return state_->r; }

void single_tasks::submit(std::uint32_t* results, std::uint32_t from, std::uint32_t to) const {
  auto& r = state_->r.direct();
  for (std::uint32_t i = from; i < to; ++i) {
    notice_interrupt(i);
    r.submit(store{results, i, i});
  }
}

void single_tasks::keep_in_flight(std::uint32_t* results, std::uint32_t n,
                                  std::uint32_t tickets) const {
  auto& r = state_->r.direct();
  std::vector<ticket> ring(tickets);  // empty ones are done
  for (std::uint32_t i = 0; i < n; ++i) {
    notice_interrupt(i);
    ticket& oldest = ring[i % tickets];
    oldest.wait();
    oldest = r.submit(store{results, i, i});
  }
  for (const ticket& t : ring) t.wait();
}

}  // namespace grosr::tool
