#include "clustering.hpp"

namespace grosr::kmeans {

const std::vector<named_way>& all_ways() {
  static const std::vector<named_way> ways{
      {"kernel", "kernels of the whole device, atomics to one set of sums", &by_kernel},
      {"coprocessor", "kernels of all ranks, the host exchanges buffers",
       [](const problem& p) { return by_coprocessor(p, 1); }},
      {"coprocessor-large", "the same with buffers that are eight times as large",
       [](const problem& p) { return by_coprocessor(p, 8); }},
      {"direct", "tasks of all ranks, atomics to the memory of the others",
       [](const problem& p) { return by_tasks(p, net::path::automatic); }},
      {"messages", "tasks of all ranks, messages to the others",
       [](const problem& p) { return by_tasks(p, net::path::messages); }}};
  return ways;
}

}  // namespace grosr::kmeans
