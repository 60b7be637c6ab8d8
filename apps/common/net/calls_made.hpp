// What the calls of a server's kernels cost its service threads.
#pragma once

#include "grosr/sys/server.hpp"
#include "measure/row.hpp"

namespace grosr::tool {

struct calls_made {
  double waited_percent = 0;  ///< of all calls: those that had to wait for a peer
  double receive_us = 0;      ///< that Linux and the service thread spent on one, on average
  double send_us = 0;

  calls_made() = default;
  explicit calls_made(const sys::statistics& s) {
    double calls = 0;
    for (const auto& c : s.calls) {
      calls += static_cast<double>(c.calls);
      const double us = c.timed() == 0 ? 0 : c.seconds * 1e6 / static_cast<double>(c.timed());
      if (c.name == "recvfrom") receive_us = us;
      if (c.name == "sendto") send_us = us;
    }
    if (calls != 0) waited_percent = 100 * static_cast<double>(s.waited) / calls;
  }

  void add_to(row& r) const {
    if (receive_us == 0) return;  // no kernel's
    r.set("recvfrom_us", receive_us).set("sendto_us", send_us);
    r.set("waited_percent", waited_percent);
  }
};

}  // namespace grosr::tool
