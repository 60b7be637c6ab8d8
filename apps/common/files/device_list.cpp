#include "files/device_list.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <thread>

namespace grosr::tool {
namespace {

/// Files that are read at a time, each with a descriptor: more than a GPU has warps that look at
/// them, if the process may have as many.
std::uint32_t seats_of(const device& d) {
  constexpr std::uint32_t least = 32, others = 64;
  const std::uint32_t most = d.is_cuda() ? 768 : least;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= most + others) return most;
  const auto may = static_cast<std::uint32_t>(limit.rlim_cur);
  return may < least + others ? least : (may - others) / 32 * 32;
}

template <class T>
void grow(simt::buffer<T>& b, const device& d, std::size_t count) {
  if (b.size() < count) b = simt::buffer<T>(d, simt::space::device, count + count / 4);
}

}  // namespace

sys::options reading_options(const file_list& list, const device& d, unsigned threads) {
  sys::options o;
  for (const source_tree& t : list.trees) o.policy.folders.push_back({t.folder, sys::access::read});
  o.threads = threads;
  o.descriptors = 4096;               // more than there are seats
  o.chunks[2] = seats_of(d) * 4 / 3;  // awaited calls may hold three quarters of them
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

runtime_options reading_runtime(const device& d) {
  runtime_options o;
  o.blocks_per_sm = 1;
  o.watchdog = {};
  o.memory_limit = std::size_t{64} << 20;
  if (!d.is_cuda()) o.sms = 2;
  return o;
}

device_list::device_list(const device& d)
    : where_(d),
      now_(d, simt::space::device, 1),
      seats_(d, simt::space::device, seats_of(d) / 32),
      windows_(d, simt::space::device, std::size_t{seats_of(d)} * window_bytes) {}

void device_list::load(const file_list& list, std::span<const std::uint32_t> files) {
  std::string names;
  std::vector<std::uint64_t> name;
  name.reserve(files.size());
  for (const std::uint32_t f : files) {
    name.push_back(names.size());
    names += name_for_device(list, f);
    names += '\0';
  }
  grow(names_, where_, names.size());
  grow(name_, where_, name.size());
  names_.copy_from(names);
  name_.copy_from(name);
  files_ = static_cast<std::uint32_t>(files.size());
}

reading device_list::ref(const sys::server& server) const {
  return {server.ref(),   names_.data(), name_.data(),
          files_,         now_.data(),   {seats_.data(), static_cast<std::uint32_t>(seats_.size())},
          windows_.data()};
}

std::vector<place> device_list::begin() {
  std::vector<place> first(std::min(files_, seats_of(where_)));
  std::vector<std::uint32_t> taken(seats_.size());
  for (std::uint32_t i = 0; i < first.size(); ++i) {
    first[i] = {i, i, 0, 0};
    taken[i / 32] |= 1u << i % 32;
  }
  seats_.copy_from(taken);
  const reading::progress now{static_cast<std::uint32_t>(first.size()), 0};
  now_.copy_from({&now, 1});
  return first;
}

void device_list::stop() {
  const std::uint32_t yes = 1;
  simt::copy_bytes(where_, &now_.data()->stop, &yes, sizeof yes);
}

}  // namespace grosr::tool
