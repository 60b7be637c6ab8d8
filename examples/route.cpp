// Sorts readings by the sensor that they are from, and adds up each sensor's where blocks take many
// at a time.
#include <cstdio>
#include <grosr/grosr.hpp>
#include <vector>

// [add_up]
struct reading {
  std::uint32_t sensor, value;
};
struct total {
  std::uint64_t sum, count;
};

struct add_up {  // serves one sensor
  using element = reading;
  static constexpr grosr::width width = grosr::width::block;
  static constexpr std::uint32_t batch = 1024;  // at a time, at most
  total* of;
  GROSR_DEVICE void operator()(const grosr::batch<reading>& some, auto& context) const {
    std::uint64_t sum = 0;
    for (std::uint32_t i = context.rank(); i < some.size(); i += context.size())
      sum += some[i].value;
    for (unsigned step = 16; step != 0; step /= 2)
      sum += grosr::simt::shuffle(grosr::simt::full_mask, sum, grosr::simt::lane_id() ^ step);
    using word = grosr::simt::atomic_ref<std::uint64_t>;
    if (context.rank() % 32 == 0) word(of->sum).fetch_add(sum, grosr::simt::relaxed);
    if (context.rank() == 0) word(of->count).fetch_add(some.size(), grosr::simt::relaxed);
  }
};
// [add_up]

// [sample]
struct sample {  // makes readings, and sends each to its sensor's channel
  using element = std::uint32_t;
  grosr::router<reading> to;
  GROSR_DEVICE void operator()(const std::uint32_t& n, auto& context) const {
    const std::uint32_t sensor = (n * 2654435761u >> 8) % to.size();
    to.push(context, sensor, reading{sensor, n % 1000 + sensor});
  }
};
// [sample]

int main() {
  constexpr std::uint32_t sensors = 24, readings = 20000;
  // [host]
  grosr::element_graph<sample, add_up, grosr::route<reading>> graph;
  grosr::simt::buffer<total> totals(graph.where(), grosr::simt::space::device, sensors);
  totals.copy_from(std::vector<total>(sensors));
  std::vector<grosr::channel<reading>> by_sensor;
  for (std::uint32_t k = 0; k < sensors; ++k) {
    by_sensor.push_back(graph.channel<reading>());
    graph.connect(by_sensor[k], add_up{totals.data() + k});
  }
  auto raw = graph.channel<std::uint32_t>();
  const grosr::router_options collected{.aggregation = grosr::aggregation::indirect};
  graph.connect(raw, sample{graph.router(by_sensor, collected)});
  // [host]
  std::vector<std::uint32_t> numbers(readings);
  std::vector<total> expected(sensors), found(sensors);
  for (std::uint32_t n = 0; n < readings; ++n) {
    const std::uint32_t sensor = (n * 2654435761u >> 8) % sensors;
    numbers[n] = n;
    expected[sensor].sum += n % 1000 + sensor;
    ++expected[sensor].count;
  }
  graph.push(raw, numbers);
  graph.wait();
  totals.copy_to(found);
  int wrong = 0;
  for (std::uint32_t k = 0; k < sensors; ++k) {
    wrong += found[k].sum != expected[k].sum || found[k].count != expected[k].count ? 1 : 0;
    if (k < 3)
      std::printf("sensor %u: %llu readings, %.1f on average\n", k,
                  static_cast<unsigned long long>(found[k].count),
                  static_cast<double>(found[k].sum) / static_cast<double>(found[k].count));
  }
  return wrong == 0 ? 0 : 1;
}
