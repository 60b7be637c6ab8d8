// Tasks that get memory from a heap, and a checked heap that names the block nobody freed.
#include <cerrno>
#include <cstdio>
#include <vector>

#include <grosr/grosr.hpp>

namespace simt = grosr::simt;

struct node {
  node* next;
  std::uint32_t value;
  GROSR_DEVICE node(node* next, std::uint32_t value) : next(next), value(value) {}
};

struct append {
  node** list;
  std::uint32_t value;
  GROSR_DEVICE int operator()(auto& context) const {
    grosr::heap_ref heap = context.heap();
    node* mine = heap.make<node>(nullptr, value);  // null when there is no memory
    if (mine == nullptr) return context.retry(*this) ? 0 : -ENOMEM;
    simt::atomic_ref<node*> head(*list);
    mine->next = head.load(simt::acquire);
    while (!head.compare_exchange(mine->next, mine, simt::acq_rel)) {
    }
    return 0;
  }
};

struct add_up {  // frees the list that it walks
  node** list;
  std::uint64_t* sum;
  GROSR_DEVICE void operator()(auto& context) const {
    grosr::heap_ref heap = context.heap();
    for (node *n = *list, *next; n != nullptr; n = next) {
      *sum += n->value;
      next = n->next;
      heap.destroy(n);
    }
  }
};

template <class Heap>  // grosr::heap_ref or grosr::checked_heap_ref
struct forget {
  Heap heap;
  GROSR_DEVICE void operator()() const {
    void* p = heap.allocate(100);  // aligned to 16 bytes
    p = heap.reallocate(p, 300);
    if (simt::thread_id() != 7) heap.deallocate(p);
  }
};

int main() {
  const grosr::device device = grosr::device::best();
  grosr::heap heap{device, std::size_t{16} << 20};
  simt::buffer<node*> list(device, simt::space::device, 1);
  simt::buffer<std::uint64_t> sum(device, simt::space::pinned, 1);
  std::vector<append> tasks;
  for (std::uint32_t i = 0; i < 1000; ++i) tasks.push_back({list.data(), i});
  {
    grosr::runtime_options options;
    options.heap = &heap;
    grosr::runtime<append, add_up> runtime{device, options};
    runtime.submit(tasks);
    runtime.wait_all();
    runtime.submit(add_up{list.data(), sum.data()});
    runtime.wait_all();
  }
  std::printf("%s", heap.report().text().c_str());

  grosr::heap checked{device, std::size_t{16} << 20, {.checked = true}};
  simt::run(device, {1, 32}, forget<grosr::checked_heap_ref>{checked.checked_ref("forget")});
  for (const grosr::heap_finding& f : checked.findings()) std::puts(f.text().c_str());
  const auto leaks = checked.leaks();
  for (const grosr::heap_finding& f : leaks) std::puts(f.text().c_str());
  return sum[0] == 499500 && heap.report().live == 0 && leaks.size() == 1 ? 0 : 1;
}
