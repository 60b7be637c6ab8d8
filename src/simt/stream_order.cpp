#include "grosr/simt/stream_order.hpp"

#include <fmt/format.h>

#include "simt/backend.hpp"

namespace grosr::simt {
namespace {

[[noreturn]] void refuse_cuda(const device& d, const std::string& asked, const char* what) {
  throw error(errc::invalid_option,
              fmt::format("{}: {} of CUDA was given to a runtime on {}; give it a simt::stream of "
                          "that device",
                          asked, what, d.name()));
}

}  // namespace

void check_order(const device& d, const any_stream& s, const std::string& asked) {
  if (s.own() && s.own()->where() != d)
    throw error(errc::invalid_option,
                fmt::format("{}: the stream is on {}, the runtime on {}; both must be on one "
                            "device",
                            asked, s.own()->where().name(), d.name()));
  if (d.is_cuda())
    cuda_backend::check_order(d, s.native(), asked);
  else if (!s.own())
    refuse_cuda(d, asked, "a stream");
}

void check_order(const device& d, const moment& when, const std::string& asked) {
  if (!when.is_event()) return check_order(d, when.in(), asked);
  if (!d.is_cuda()) refuse_cuda(d, asked, "an event");
  cuda_backend::check_event(d, when.event(), asked);
}

void wait_for(const device& d, const moment& when) {
  if (!when.is_event() && when.in().own() != nullptr) return when.in().own()->wait();
  if (!d.is_cuda())
    throw error(errc::misuse,
                fmt::format("wait for {} of CUDA, for memory of {}; give it a simt::stream",
                            when.is_event() ? "an event" : "a stream", d.name()));
  cuda_backend::wait_for(d, when);
}

stream_order::stream_order(device d) : backend_(cuda_backend::make_stream_order(d).release()) {}
stream_order::~stream_order() = default;

bool stream_order::store_at(const moment& when, std::uint32_t* word, std::uint32_t value) {
  return backend_->store_at(when, word, value);
}

void stream_order::wait_for(const any_stream& s, const std::uint32_t* word, std::uint32_t value) {
  backend_->wait_for(s, word, value);
}

}  // namespace grosr::simt
