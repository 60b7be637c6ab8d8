#include "grosr/simt/affinity.hpp"

#include <sched.h>

#include <algorithm>
#include <memory>
#include <new>
#include <type_traits>

#include "simt/backend.hpp"

#if GROSR_HAS_HWLOC
#include <hwloc.h>
#endif

namespace grosr::simt {
namespace {

// Sets of as many processors as Linux has anywhere.
constexpr unsigned most = 1u << 16;

struct free_set {
  void operator()(cpu_set_t* s) const { CPU_FREE(s); }
};
using cpu_set = std::unique_ptr<cpu_set_t, free_set>;

const std::size_t set_bytes = CPU_ALLOC_SIZE(most);

cpu_set make_set() {
  cpu_set s(CPU_ALLOC(most));
  if (!s) throw std::bad_alloc();
  CPU_ZERO_S(set_bytes, s.get());
  return s;
}

}  // namespace

bool set_affinity(const std::vector<unsigned>& processors) {
  const cpu_set s = make_set();
  for (unsigned p : processors) CPU_SET_S(p, set_bytes, s.get());
  return sched_setaffinity(0, set_bytes, s.get()) == 0;
}

std::vector<unsigned> processors_near(device d) {
  return d.is_cuda() ? processors_near(cuda_backend::pci_address(d.index()))
                     : std::vector<unsigned>{};
}

#if GROSR_HAS_HWLOC

namespace {

struct end_topology {
  void operator()(hwloc_topology_t t) const { hwloc_topology_destroy(t); }
};
using topology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, end_topology>;

topology load(bool with_pci) {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) return nullptr;
  topology t(made);
  if (with_pci)
    for (hwloc_obj_type_t type : {HWLOC_OBJ_PCI_DEVICE, HWLOC_OBJ_BRIDGE})
      hwloc_topology_set_type_filter(made, type, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_load(made) != 0) t.reset();
  return t;
}

}  // namespace

bool knows_topology() { return true; }

std::vector<unsigned> processors_near(const std::string& pci_address) {
  std::vector<unsigned> near;
  const cpu_set may = make_set();
  if (sched_getaffinity(0, set_bytes, may.get()) != 0) return near;
  // Looking at the PCI bus takes ten times as long as all the rest.
  const topology nodes = load(false);
  if (!nodes || hwloc_get_nbobjs_by_type(nodes.get(), HWLOC_OBJ_NUMANODE) < 2) return near;
  const topology t = load(true);
  if (!t) return near;
  const hwloc_obj_t found = hwloc_get_pcidev_by_busidstring(t.get(), pci_address.c_str());
  const hwloc_obj_t beside =
      found != nullptr ? hwloc_get_non_io_ancestor_obj(t.get(), found) : nullptr;
  if (beside == nullptr || beside->cpuset == nullptr) return near;
  for (unsigned p = 0; p < most; ++p)
    if (CPU_ISSET_S(p, set_bytes, may.get()) && hwloc_bitmap_isset(beside->cpuset, p))
      near.push_back(p);
  if (near.size() == static_cast<std::size_t>(CPU_COUNT_S(set_bytes, may.get()))) near.clear();
  return near;
}

#else

bool knows_topology() { return false; }
std::vector<unsigned> processors_near(const std::string&) { return {}; }

#endif

}  // namespace grosr::simt
