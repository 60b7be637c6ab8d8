// What a heap owns.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "grosr/alloc/heap.hpp"
#include "grosr/simt/buffer.hpp"

namespace grosr {

struct heap::memory {
  memory(device d, std::size_t bytes, const heap_options& o);
  std::string name(std::uint16_t owner);

  device where;
  std::mutex names_lock;
  std::vector<std::string> names{""};  // by owner; 0 is nobody
  simt::buffer<unsigned char> slabs;
  simt::buffer<unsigned char> metadata;
  alloc::heap_view view{};
};

}  // namespace grosr
