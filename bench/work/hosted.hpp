// The one implementation of any_runtime. For files with device code.
#pragma once

#include <exception>

#include "work/any_runtime.hpp"

namespace grosr::tool {

template <class... Tasks>
class hosted final : public any_runtime {
 public:
  hosted(const device& d, const runtime_options& options) : runtime_(d, options) {
    unsigned place = 0;
    bool numbered = ((Tasks::number == place++) && ...);
    if (!numbered) throw std::logic_error("task types are not numbered in the runtime's order");
  }

  // What is left behind on Ctrl-C or after an error is dropped, not finished.
  ~hosted() override {
    if (std::uncaught_exceptions() == exceptions_) return;
    try {
      runtime_.stop(std::chrono::milliseconds(200));
    } catch (...) {  // the reason to leave is already under way
    }
  }

  void wait_all() override { runtime_.wait_all(); }
  bool wait_all_for(std::chrono::nanoseconds limit) override {
    return runtime_.wait_all_for(limit);
  }
  void park() override { runtime_.park(); }
  bool resident() const override { return runtime_.resident(); }
  void stop(std::chrono::nanoseconds limit) override { runtime_.stop(limit); }
  runtime_stats stats() const override { return runtime_.stats(); }
  std::vector<task_error> errors() const override { return runtime_.errors(); }
  const device& where() const override { return runtime_.where(); }

  /// For files with device code: without a virtual call a task.
  runtime<Tasks...>& direct() { return runtime_; }

 protected:
  ticket submit_bytes(unsigned type, const void* tasks, std::size_t n, priority p) override {
    ticket t;
    (void)((type == Tasks::number ? (t = submit_as<Tasks>(tasks, n, p), true) : false) || ...);
    return t;
  }

 private:
  template <class Task>
  ticket submit_as(const void* tasks, std::size_t n, priority p) {
    return runtime_.submit(std::span<const Task>(static_cast<const Task*>(tasks), n), p);
  }

  int exceptions_ = std::uncaught_exceptions();
  runtime<Tasks...> runtime_;
};

}  // namespace grosr::tool
