// What the processes of a world tell each other where all of them do the same.
#pragma once

#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "grosr/net/detail/world_core.hpp"
#include "grosr/net/transport.hpp"

namespace grosr::net {

/// Values, one after another in bytes.
class said {
 public:
  said() = default;
  explicit said(std::string bytes) : bytes_(std::move(bytes)) {}

  template <class T>
  said& add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  said& add(const std::string& text) {
    bytes_ += text;
    return *this;
  }
  /// The next value; zero where there is none.
  template <class T>
  T take() {
    T value{};
    if (bytes_.size() - at_ < sizeof value) return value;
    std::memcpy(static_cast<void*>(&value), bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  /// What was not taken.
  std::string_view rest() const { return std::string_view(bytes_).substr(at_); }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

/// An error of a process, for all of them.
struct failure {
  int code = 0;  ///< of errc; 0: none
  std::string text;

  static failure of(const std::exception& e);
};

/// Collective operations of a world's processes. With no connection there is one process, which
/// hears itself.
class collectives {
 public:
  collectives() = default;
  collectives(connection* with, std::uint32_t process) : with_(with), process_(process) {}

  /// What all processes say, by number. Throws error(misuse) where they do not do the same; and as
  /// connection::gather().
  std::vector<said> gather(collective what, const said& mine, run::deadline until);
  /// Throws the failure of any of them: one's own as it is.
  void agree(collective what, const std::exception_ptr& mine, run::deadline until);

 private:
  connection* with_ = nullptr;
  std::uint32_t process_ = 0;
};

/// Throws what process p said has failed there.
[[noreturn]] void throw_failure(std::uint32_t process, int code, std::string_view text);

}  // namespace grosr::net
