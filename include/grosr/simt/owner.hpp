// A pointer that owns, as std::unique_ptr: <memory> would bring read(), write() and the rest of
// unistd.h into the global namespace of every user's file.
#pragma once

#include <utility>

namespace grosr::simt {

struct deletes {
  template <class T>
  void operator()(T* what) const {
    delete what;
  }
};

/// Sole owner of an object, or of none. T may be incomplete where the owner is not destroyed, reset
/// or assigned to.
template <class T, class Deleter = deletes>
class owner {
 public:
  owner() = default;
  explicit owner(T* what) : what_(what) {}
  owner(owner&& other) noexcept
      : what_(std::exchange(other.what_, nullptr)), deleter_(other.deleter_) {}
  owner& operator=(owner&& other) noexcept {
    owner(std::move(other)).swap(*this);
    return *this;
  }
  ~owner() {
    if (what_ != nullptr) deleter_(what_);
  }

  void reset(T* what = nullptr) { owner(what).swap(*this); }
  void swap(owner& other) noexcept {
    std::swap(what_, other.what_);
    std::swap(deleter_, other.deleter_);
  }

  T* get() const { return what_; }
  T* operator->() const { return what_; }
  T& operator*() const { return *what_; }
  explicit operator bool() const { return what_ != nullptr; }

 private:
  T* what_ = nullptr;
  Deleter deleter_;
};

}  // namespace grosr::simt
