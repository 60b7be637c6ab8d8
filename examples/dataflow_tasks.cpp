// Tasks on the device push samples into a graph, and other tasks pull what a function of the host
// makes of them. Thousands of tasks may wait for the graph, and none holds a worker meanwhile.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <grosr/flow/device_port.hpp>
#include <grosr/grosr.hpp>

namespace flow = grosr::flow;

constexpr std::uint32_t samples = 15, rounds = 100;

struct measured {  // runs when the block is in the graph
  using result = long;
  long code;  // what push returned
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    context.give(code);
    return static_cast<int>(code);
  }
};
struct measure {
  using result = long;
  grosr::sys::server_ref sys;
  flow::device_source_ref<float> to;
  std::uint32_t round;
  GROSR_DEVICE void operator()(auto& context) const {
    float block[samples];
    for (std::uint32_t i = 0; i < samples; ++i)
      block[i] = static_cast<float>(round + i * 7 % samples);
    auto& next = context.join(measured{});
    to.push(context.await(sys, &next.code), block, samples);
  }
};

struct reported {  // runs when a block has come
  using result = long;
  long elements;  // what pull returned
  float median;   // what it pulled
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    if (elements < 0) return static_cast<int>(elements);
    context.give(static_cast<long>(median));
    return 0;
  }
};
struct report {
  using result = long;
  grosr::sys::server_ref sys;
  flow::device_sink_ref<float> from;
  GROSR_DEVICE void operator()(auto& context) const {
    auto& next = context.join(reported{});
    from.pull(context.await(sys, &next.elements), &next.median, 1);
  }
};

int main() {
  flow::executor where;
  flow::graph graph(where, {.name = "medians"});
  const flow::node median =
      graph.host("median",
                 [](flow::in<float> block, flow::out<float> result) {
                   std::vector<float> sorted(block.begin(), block.end());
                   std::nth_element(sorted.begin(), sorted.begin() + samples / 2, sorted.end());
                   result[0] = sorted[samples / 2];
                 },
                 {{"block", flow::block_template::of<float>(samples)},
                  {"result", flow::block_template::of<float>(1)}});
  const auto blocks = graph.source<float>(median["block"]);
  const auto medians = graph.sink<float>(median["result"]);
  graph.compile();

  const grosr::device device = grosr::device::best();
  grosr::sys::server server(device);
  const flow::device_source<float> to(blocks, server);
  const flow::device_sink<float> from(medians, server);
  grosr::runtime<measure, measured, report, reported, grosr::awaited> runtime(device);
  std::vector<grosr::future<long>> all;
  for (std::uint32_t i = 0; i < rounds; ++i)
    all.push_back(runtime.fork(report{server.ref(), from.ref()}));
  for (std::uint32_t i = 0; i < rounds; ++i) runtime.submit(measure{server.ref(), to.ref(), i});
  long sum = 0, right = 0;
  for (std::uint32_t i = 0; i < rounds; ++i) right += i + samples / 2;
  for (auto& f : all) sum += f.get();
  std::printf("the sum of %u medians is %ld\n", rounds, sum);
  return sum == right ? 0 : 1;
}
