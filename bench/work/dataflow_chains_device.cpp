#include "grosr/simt/buffer.hpp"
#include "measure/samples.hpp"
#include "work/dataflow_chains.hpp"

namespace grosr::tool {
namespace {

constexpr unsigned room = 64;  // of a channel

struct increment {
  GROSR_DEVICE void operator()(flow::point p, flow::in<std::uint32_t> from,
                               flow::out<std::uint32_t> to) const {
    to[p.index] = from[p.index] + 1;
  }
};

struct increment_in_place {
  std::uint32_t* number;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() == 0) ++*number;
  }
};

}  // namespace

dataflow_chain::dataflow_chain(const device& d, chain_nodes kind, unsigned nodes, unsigned threads)
    : nodes_(nodes),
      executor_({.devices = {d}, .threads = threads}),
      graph_(executor_, {.name = "chain"}) {
  const auto number = flow::block_template::of<std::uint32_t>(1);
  const std::vector<flow::port> ports{{"from", number}, {"to", number}};
  std::vector<flow::node> all;
  for (unsigned i = 0; i < nodes; ++i) {
    const std::string name = "add " + std::to_string(i);
    all.push_back(kind == chain_nodes::kernel ? graph_.kernel(name, increment{}, ports)
                  : kind == chain_nodes::resident
                      ? graph_.resident(name, increment{}, ports)
                      : graph_.host(
                            name,
                            [](flow::in<std::uint32_t> from, flow::out<std::uint32_t> to) {
                              to[0] = from[0] + 1;
                            },
                            ports));
    if (i != 0) graph_.connect(all[i - 1]["to"], all[i]["from"]);
  }
  in_ = std::make_unique<flow::source<std::uint32_t>>(
      graph_.source<std::uint32_t>(all.front()["from"], {.capacity = room}));
  out_ = std::make_unique<flow::sink<std::uint32_t>>(
      graph_.sink<std::uint32_t>(all.back()["to"], {.capacity = room}));
  const flow::plan& p = graph_.compile();
  for (flow::space_number s = 0; s < 2; ++s) planned_ += p.bytes(s);
}

std::size_t dataflow_chain::held_bytes() const {
  return executor_.memory().bytes(0) + executor_.memory().bytes(1);
}

dataflow_chain::~dataflow_chain() = default;

void dataflow_chain::stream(unsigned blocks, unsigned in_flight) {
  for (unsigned pushed = 0, pulled = 0; pulled < blocks;) {
    while (pushed < blocks && pushed - pulled < in_flight) {
      flow::datablock b = in_->make();
      b.write<std::uint32_t>()[0] = pushed++;
      in_->push(std::move(b));
    }
    const flow::datablock b = out_->pull();
    const std::uint32_t got = b.read<std::uint32_t>()[0];
    if (got != pulled + nodes_ && wrong_.empty())
      wrong_ = "block " + std::to_string(pulled) + " holds " + std::to_string(got) + ", not " +
               std::to_string(pulled + nodes_);
    ++pulled;
  }
}

double launch_increments(const device& d, unsigned kernels) {
  simt::stream s(d);
  simt::buffer<std::uint32_t> here(d, simt::space::pinned, 1), there(d, simt::space::device, 1);
  here.data()[0] = 0;
  const double us = timed([&] {
    simt::copy_bytes(s, there.data(), here.data(), sizeof(std::uint32_t));
    for (unsigned i = 0; i < kernels; ++i)
      simt::launch(s, {1, 32}, increment_in_place{there.data()});
    simt::copy_bytes(s, here.data(), there.data(), sizeof(std::uint32_t));
    s.wait();
  });
  return here.data()[0] == kernels ? us : -1;
}

}  // namespace grosr::tool
