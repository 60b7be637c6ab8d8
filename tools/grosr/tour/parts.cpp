#include "tour/parts.hpp"

namespace grosr::tool {

const std::vector<tour_part>& tour_parts() {
  static const std::vector<tour_part> all{
      {"words", "counts the words of every text file: a task a file starts a task a chunk",
       tour_words},
      {"spawn", "a binary tree of tasks that start tasks", tour_spawn},
      {"fork-join", "recursion: tasks that wait for what the tasks they start have found",
       tour_join},
      {"memory", "blocks of mixed sizes that device code gets and frees", tour_memory},
      {"flow", "blocks that go through a graph of kernels and are copied only where they must be",
       tour_flow},
      {"calls", "system calls that device code makes: a file read and checked, lines printed",
       tour_calls},
      {"messages", "additions to an array that lies on two ranks, sent by lanes of both",
       tour_messages},
      {"latency", "one task from the host and back", tour_latency},
  };
  return all;
}

}  // namespace grosr::tool
