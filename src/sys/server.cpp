#include "grosr/sys/server.hpp"

#include <fmt/format.h>

#include "sys/service.hpp"

namespace grosr::sys {

server::server(device d, const options& o) try : service_(new service(d, o)) {
} catch (...) {
  rethrow_as_error("a server of system calls was asked for");
}
server::~server() = default;

server_ref server::ref() const { return server_ref(service_->device_view()); }

void server::install(call_number number, detail::installed_handler handler) {
  service_->install(number, std::move(handler));
}

handler_ref server::add(detail::installed_handler handler) {
  return service_->add(std::move(handler));
}
void server::remove(handler_ref h) noexcept { service_->remove(h); }

void server::share(std::span<std::byte> bytes) { service_->share(bytes.data(), bytes.size()); }

void server::grant(int descriptor) {
  if (!service_->grant(descriptor))
    throw error(errc::invalid_option,
                fmt::format("grant descriptor {}: {}", descriptor,
                            descriptor < 0 ? "it is none; did opening it fail?"
                                           : "it is not open, or not below 1048576; grant it after "
                                             "it was opened"));
}

void server::coalesce(unsigned batch, std::chrono::nanoseconds window) {
  service_->coalesce(batch, window);
}

void server::drain(std::chrono::nanoseconds limit) {
  if (!service_->drain(limit))
    throw error(errc::timed_out,
                fmt::format("drain system calls: some were not complete within {} ms; a call that "
                            "waits for a peer ends when that answers, or at stop()",
                            std::chrono::duration_cast<std::chrono::milliseconds>(limit).count()));
}

void server::stop() { service_->stop(); }
device server::where() const { return service_->where(); }
sys::statistics server::statistics() const { return service_->statistics(); }

}  // namespace grosr::sys
