#include "grosr/simt/error.hpp"

namespace grosr {
namespace {

class category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "grosr"; }
  std::string message(int value) const override {
    switch (static_cast<errc>(value)) {
      case errc::device_lost:
        return "device lost";
      case errc::watchdog:
        return "no progress within the watchdog's time";
      case errc::deadlock:
        return "deadlock";
      case errc::stopped:
        return "stopped";
      case errc::timed_out:
        return "timed out";
      case errc::no_such_device:
        return "no such device";
      case errc::invalid_option:
        return "invalid option";
      case errc::out_of_memory:
        return "out of memory";
      case errc::task_failed:
        return "a task failed";
      case errc::not_built:
        return "not built";
      case errc::bad_input:
        return "bad input";
      case errc::write_failed:
        return "a file cannot be written";
      case errc::misuse:
        return "misuse";
    }
    return "unknown error " + std::to_string(value);
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const category c;
  return c;
}

}  // namespace grosr
