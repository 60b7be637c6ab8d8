// Things that one thread at a time uses, as many as are used at once.
#pragma once

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace grosr::cryptfs {

template <class T>
class pool {
 public:
  explicit pool(std::function<T()> make) : make_(std::move(make)) {}

  class taken {
   public:
    taken(pool& p, T thing) : of_(p), thing_(std::move(thing)) {}
    taken(const taken&) = delete;
    ~taken() { of_.give_back(std::move(thing_)); }
    T& get() { return thing_; }

   private:
    pool& of_;
    T thing_;
  };

  taken take() {
    {
      std::lock_guard guard(lock_);
      if (!idle_.empty()) {
        T thing = std::move(idle_.back());
        idle_.pop_back();
        return taken(*this, std::move(thing));
      }
    }
    return taken(*this, make_());
  }

 private:
  void give_back(T thing) {
    std::lock_guard guard(lock_);
    idle_.push_back(std::move(thing));
  }

  std::function<T()> make_;
  std::mutex lock_;
  std::vector<T> idle_;
};

}  // namespace grosr::cryptfs
