#include "grosr/simt/device.hpp"

#include <fmt/format.h>

#include <charconv>

#include "simt/backend.hpp"

namespace grosr {
namespace {

std::string names_of(const std::vector<device>& devices) {
  std::string text;
  for (const device& d : devices) text += (text.empty() ? "" : ", ") + d.name();
  return text;
}

}  // namespace

device::device(std::string_view name) {
  const std::size_t colon = name.find(':');
  const std::string_view kind = name.substr(0, colon);
  if (kind != "host" && kind != "cuda") {
    throw error(errc::no_such_device,
                fmt::format("device \"{}\" asked for, which is no device name; write \"cuda:N\" or "
                            "\"host:N\" (this machine has {})",
                            name, names_of(list())));
  }
  backend_ = kind == "cuda" ? backend::cuda : backend::host;
  if (colon != std::string_view::npos) {
    const std::string_view digits = name.substr(colon + 1);
    const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), index_);
    if (bad != std::errc() || end != digits.data() + digits.size() || index_ < 0) {
      throw error(
          errc::no_such_device,
          fmt::format("device \"{}\" asked for, but \"{}\" is not the number of a device; this "
                      "machine has {}",
                      name, digits, names_of(list())));
    }
  }
  const auto present = list();
  for (const device& d : present) {
    if (d == *this) return;
  }
  const std::string reason = is_cuda() ? cuda_status() : "";
#if GROSR_HAS_CUDA
  constexpr auto code = errc::no_such_device;
#else
  const auto code = is_cuda() ? errc::not_built : errc::no_such_device;
#endif
  throw error(code,
              fmt::format("device \"{}\" asked for, but this machine has {}{}; choose one of these",
                          name, names_of(present), reason.empty() ? "" : " (" + reason + ")"));
}

std::vector<device> device::list() {
  std::vector<device> all;
  std::string why;
  const int gpus = simt::cuda_backend::device_count(why);
  for (int i = 0; i < gpus; ++i) all.push_back(device(backend::cuda, i));
  for (int i = 0; i < simt::host_backend::device_count(); ++i)
    all.push_back(device(backend::host, i));
  return all;
}

device device::best() { return list().front(); }

std::string device::cuda_status() {
  std::string why;
  simt::cuda_backend::device_count(why);
  return why;
}

std::string device::name() const {
  return fmt::format("{}:{}", is_cuda() ? "cuda" : "host", index_);
}

device_properties device::properties() const {
  return is_cuda() ? simt::cuda_backend::properties(index_) : simt::host_backend::properties();
}

}  // namespace grosr
