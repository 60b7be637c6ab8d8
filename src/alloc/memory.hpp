// What a heap owns.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "grosr/alloc/heap.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/launch.hpp"

namespace grosr {

struct heap::memory {
  memory(device d, std::size_t bytes, const heap_options& o);
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;
  ~memory();
  std::string name(std::uint16_t owner);

  device where;
  std::mutex names_lock;
  std::vector<std::string> names{""};  // by owner; 0 is nobody
  simt::buffer<unsigned char> slabs;
  simt::buffer<unsigned char> metadata;
  alloc::heap_view view{};

  // For the calls of the host, one at a time. Made with the heap, so that they work while a
  // resident kernel holds the device.
  struct calls {
    explicit calls(const device& d);
    std::mutex lock;
    simt::stream stream;
    simt::buffer<void*> result;  // pinned
  } calls;
};

struct heap::share {
  std::shared_ptr<heap::memory> memory;
};

}  // namespace grosr
