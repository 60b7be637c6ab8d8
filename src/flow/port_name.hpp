// Where the names of shared ports lie: a socket and a lock file each, in a folder.
#pragma once

#include <string>

#include "flow/port_wire.hpp"

namespace grosr::flow {

/// The folder of names: `given`, or, where that is empty, that of the own user, which is made.
/// Throws error(invalid_option) unless it belongs to the own user or one of `owners`, and others
/// cannot write there.
std::string folder_of_ports(const std::string& given, const port_users& owners);

/// Throws error(invalid_option) for a name that is empty, longer than 64 characters, begins with
/// '.', or has other characters than letters, digits, '.', '-' and '_'; and where the path is too
/// long for a socket.
std::string path_of_port(const std::string& folder, const std::string& name);

/// A name that this process has, and the socket by which others come.
class port_name {
 public:
  /// Takes the place of what a process that is dead has left. `for_others`: users besides the own
  /// one may connect. Throws error(invalid_option), naming the process, when the name is taken;
  /// std::system_error.
  port_name(const std::string& folder, const std::string& name, bool for_others);
  ~port_name();
  port_name(const port_name&) = delete;

  int socket() const { return socket_.get(); }

 private:
  const std::string path_, lock_path_;
  owned_descriptor lock_, socket_;
};

/// A connection to a name of another process, of which nothing has been received. Waits until
/// somebody serves the name. None: nobody did until then. Throws error(misuse) where the own user
/// may not connect; std::system_error.
owned_descriptor connect_to_port(const std::string& folder, const std::string& name,
                                 port_clock::time_point until);

}  // namespace grosr::flow
