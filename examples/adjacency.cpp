// A graph's adjacency lists, built wholly on the device: every lane appends edges to lists that
// grow, with memory from a heap, and nobody knows beforehand how long they get.
// docs/guide/start.md has the command lines that compile it.
#include <cstdio>
#include <vector>

#include <grosr/grosr.hpp>

namespace simt = grosr::simt;

// A list is a chain of chunks, the newest first, each twice as large as the one before.
struct chunk {
  chunk* next;
  std::uint32_t capacity, count;  // count may pass the capacity: those lanes went on to a new chunk
  std::uint32_t to[];

  GROSR_DEVICE std::uint32_t size() const { return count < capacity ? count : capacity; }
};

struct graph {
  grosr::heap_ref heap;
  chunk** lists;  // by vertex
  std::uint32_t vertices;

  GROSR_DEVICE bool add_edge(std::uint32_t from, std::uint32_t to) const {
    simt::atomic_ref<chunk*> list(lists[from]);
    for (chunk* c = list.load(simt::acquire);;) {
      if (c != nullptr) {
        std::uint32_t i = simt::atomic_ref(c->count).fetch_add(1u, simt::relaxed);
        if (i < c->capacity) {
          c->to[i] = to;
          return true;
        }
      }
      std::uint32_t capacity = c == nullptr ? 4 : 2 * c->capacity;
      auto* fresh = static_cast<chunk*>(heap.allocate(sizeof(chunk) + capacity * sizeof to));
      if (fresh == nullptr) return false;  // the heap is full
      fresh->next = c;
      fresh->capacity = capacity;
      fresh->count = 1;
      fresh->to[0] = to;
      if (list.compare_exchange(c, fresh, simt::acq_rel)) return true;
      heap.deallocate(fresh);  // another lane was faster: c is its chunk now
    }
  }
};

// Edge i goes from one vertex to another; few vertices have many.
GROSR_DEVICE inline std::uint32_t mixed(std::uint32_t x) {
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

struct build {
  graph g;
  std::uint32_t edges;
  std::uint32_t* lost;
  GROSR_DEVICE void operator()() const {
    std::uint32_t lanes = simt::grid_size() * simt::block_size();
    for (std::uint32_t i = simt::block_id() * simt::block_size() + simt::thread_id(); i < edges;
         i += lanes) {
      std::uint32_t from = mixed(i) % g.vertices & mixed(i + 1) % g.vertices;
      if (!g.add_edge(from, i)) simt::atomic_ref(*lost).fetch_add(1u, simt::relaxed);
    }
  }
};

struct measure {
  graph g;
  std::uint32_t* degrees;
  GROSR_DEVICE void operator()() const {
    std::uint32_t lanes = simt::grid_size() * simt::block_size();
    for (std::uint32_t v = simt::block_id() * simt::block_size() + simt::thread_id();
         v < g.vertices; v += lanes)
      for (chunk *c = g.lists[v], *next; c != nullptr; c = next) {
        degrees[v] += c->size();
        next = c->next;
        g.heap.deallocate(c);
      }
  }
};

int main() {
  grosr::device device = grosr::device::best();
  const bool gpu = device.is_cuda();
  const std::uint32_t vertices = gpu ? 1u << 20 : 1u << 10, edges = 16 * vertices;
  const simt::shape grid = gpu ? simt::shape{1024, 256} : simt::shape{4, 64};

  grosr::heap heap(device, std::size_t{edges} * 32 + (std::size_t{16} << 20));
  grosr::heap_resource resource(heap);  // what containers would take
  auto* lists = static_cast<chunk**>(resource.allocate(vertices * sizeof(chunk*)));
  const std::vector<chunk*> none(vertices);
  simt::copy_bytes(device, lists, none.data(), vertices * sizeof(chunk*));
  simt::buffer<std::uint32_t> lost(device, simt::space::device, 1);
  simt::buffer<std::uint32_t> degrees(device, simt::space::device, vertices);

  const graph g{heap.ref(), lists, vertices};
  simt::run(device, grid, build{g, edges, lost.data()});
  std::printf("%s", heap.report().text().c_str());
  simt::run(device, grid, measure{g, degrees.data()});
  resource.deallocate(lists);

  std::vector<std::uint32_t> degree(vertices), not_added(1);
  lost.copy_to(not_added);
  degrees.copy_to(degree);
  std::uint64_t sum = 0, most = 0;
  for (std::uint32_t d : degree) {
    sum += d;
    if (d > most) most = d;
  }
  std::printf("%s: %llu edges in %u lists, the longest has %llu; %llu blocks left\n",
              device.name().c_str(), static_cast<unsigned long long>(sum), vertices,
              static_cast<unsigned long long>(most),
              static_cast<unsigned long long>(heap.report().live));
  return sum == edges && not_added[0] == 0 && heap.report().live == 0 ? 0 : 1;
}
