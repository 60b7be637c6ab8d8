// The one exception type of GROSR's host functions.
#pragma once

#include <cstddef>
#include <string>
#include <system_error>

namespace grosr {

/// Kinds of failure that have no errno of their own.
enum class errc {
  device_lost = 1,  ///< the device faulted; nothing on it can be used any more
  watchdog,         ///< no progress within the watchdog's time while work was outstanding
  deadlock,         ///< lanes wait for each other and none can go on (host backend)
  stopped,          ///< the runtime was stopped
  timed_out,        ///< a deadline passed
  no_such_device,   ///< a device was named that is not here
  invalid_option,   ///< an option is outside its documented range
  out_of_memory,    ///< memory of the named space is exhausted
  not_built,        ///< the program, or the driver, lacks what was asked for
  misuse,           ///< a documented contract was broken, e.g. a caller outside its own mask
  task_failed,      ///< a task ended with an error, and was to bring a result
  bad_input,        ///< a file that was to be read is not what it must be, or is too large
  write_failed,     ///< a file cannot be written
};

const std::error_category& error_category() noexcept;
inline std::error_code make_error_code(errc e) noexcept {
  return {static_cast<int>(e), error_category()};
}

/// What every host function of GROSR throws. `what()` is one line: what was asked, what was
/// found, what to do. A deadlock has more: one line for each set of lanes that wait alike.
class error : public std::system_error {
 public:
  error(errc code, const std::string& text)
      : std::system_error(make_error_code(code)), text_(text) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

/// In a catch clause: throws an error as it is, and what else the host's system says (memory,
/// threads or descriptors that there are none of) as error(out_of_memory), whose text begins with
/// what was `asked`; other exceptions as they are.
[[noreturn]] void rethrow_as_error(const std::string& asked);

namespace simt {
/// A size as texts give it: "1.50 GiB".
std::string in_units(std::size_t bytes);
}  // namespace simt

}  // namespace grosr

template <>
struct std::is_error_code_enum<grosr::errc> : std::true_type {};
