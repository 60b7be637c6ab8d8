#include "grosr/simt/error.hpp"

#include <cerrno>
#include <new>

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

void rethrow_as_error(const std::string& asked) {
  try {
    throw;
  } catch (const error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw error(errc::out_of_memory,
                asked +
                    ": the process has no memory left; end other programs, ask for less, or "
                    "raise its limit (ulimit -v)");
  } catch (const std::system_error& e) {
    const int code = e.code().value();
    throw error(errc::out_of_memory,
                asked + ": " + e.what() +
                    (code == EMFILE   ? "; raise the limit of descriptors (ulimit -n)"
                     : code == EAGAIN ? "; end some threads, or raise their limit (ulimit -u)"
                                      : ""));
  }
}

const std::error_category& error_category() noexcept {
  static const category c;
  return c;
}

}  // namespace grosr
