#include "files/device_list.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "cli/interrupt.hpp"

namespace grosr::tool {
namespace {

constexpr std::uint32_t most_ranges = 1u << 18;  // 256 KiB of a file each
constexpr auto between_looks = std::chrono::microseconds(200);

template <class T>
void grow(simt::buffer<T>& b, const device& d, std::size_t count) {
  if (b.size() < count) b = simt::buffer<T>(d, simt::space::device, count + count / 4);
}

}  // namespace

sys::options reading_options(const file_list& list, const device& d, unsigned threads) {
  sys::options o;
  for (const source_tree& t : list.trees) o.policy.folders.push_back({t.folder, sys::access::read});
  o.threads = threads;
  o.descriptors = 4096;  // more than there are warps that read
  if (threads == 0 && d.is_cuda())
    o.threads = std::clamp(std::thread::hardware_concurrency() * 5 / 8, 1u, 256u);
  return o;
}

// Relative names are below the first folder.
std::string name_for_device(const file_list& list, std::size_t file) {
  const source_file& f = list.files[file];
  const std::string& folder = list.trees[f.tree].folder;
  if (folder == list.trees.front().folder) return f.below;
  return folder.back() == '/' ? folder + f.below : folder + "/" + f.below;
}

void device_list::load(const file_list& list, std::span<const std::uint32_t> files) {
  std::string names;
  std::vector<std::uint64_t> name;
  name.reserve(files.size());
  for (const std::uint32_t f : files) {
    name.push_back(names.size());
    names += name_for_device(list, f);
    names += '\0';
  }
  files_ = static_cast<std::uint32_t>(files.size());
  grow(names_, where_, names.size());
  grow(name_, where_, name.size());
  names_.copy_from(names);
  name_.copy_from(name);
  rewind();
}

void device_list::rewind() {
  file_work_ref::counters counts{};
  if (range_.size() == 0) {
    range_ = {where_, simt::space::device, most_ranges};
    ready_ = {where_, simt::space::device, most_ranges};
    counts_ = {where_, simt::space::device, 1};
  }
  counts_.copy_to({&counts, 1});
  if (counts.handed_out != 0) {
    const std::vector<std::uint32_t> none(counts.handed_out, 0);
    ready_.copy_from(none);
  }
  counts = {};
  counts_.copy_from({&counts, 1});
}

file_work_ref device_list::ref() const {
  return {names_.data(), name_.data(),  files_,        most_ranges,
          range_.data(), ready_.data(), counts_.data()};
}

void device_list::stop() {
  const std::uint32_t yes = 1;
  simt::copy_bytes(where_, &counts_.data()->stop, &yes, sizeof yes);
}

void wait_asleep(const simt::stream& s, device_list& work) {
  while (!s.done()) {
    if (interrupt::requested()) {
      work.stop();
      s.wait();
      interrupt::check();
    }
    std::this_thread::sleep_for(between_looks);
  }
}

}  // namespace grosr::tool
