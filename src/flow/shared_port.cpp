#include "grosr/flow/shared_port.hpp"

#include "flow/port_server.hpp"

namespace grosr::flow {

shared_port::shared_port(const any_source& of, const std::string& name,
                         const shared_port_options& options) try
    : server_(new server(port_side::source, channel_end(of), name, options)) {
} catch (...) {
  rethrow_as_error("share port '" + name + "'");
}

shared_port::shared_port(const any_sink& of, const std::string& name,
                         const shared_port_options& options) try
    : server_(new server(port_side::sink, channel_end(of), name, options)) {
} catch (...) {
  rethrow_as_error("share port '" + name + "'");
}

shared_port::~shared_port() = default;

shared_port_stats shared_port::stats() const { return server_->stats(); }
std::string shared_port::why_ended() const { return server_->why_ended(); }

}  // namespace grosr::flow
