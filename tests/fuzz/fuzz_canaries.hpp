// What a fuzzer of system calls must never touch: files, descriptors and memory of the program, and
// what the process is.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fuzz/fuzz.hpp"

namespace grosr::tool {

/// Makes a folder `rw` to play in, a folder `ro` to read, and beside them what is out of bounds;
/// all is gone with it.
class canaries {
 public:
  canaries();
  ~canaries();
  canaries(const canaries&) = delete;

  static constexpr std::uint64_t magic = 0xd15ea5e0c0ffee99ull;

  const std::string& top() const { return top_; }
  std::string rw() const { return top_ + "/rw"; }
  std::string ro() const { return top_ + "/ro"; }

  /// Empties `rw`, and puts in some files, and links that lead out.
  void furnish();
  fuzz::path_list paths() const;
  const std::vector<int>& strangers() const { return private_; }
  std::vector<std::uint64_t> memory() const;

  /// What was touched, or empty. Cheap; may be asked while kernels run.
  std::string touched();
  /// The same, more thoroughly: when no server is there.
  std::string changed();

 private:
  using facts = std::map<std::string, std::string>;
  facts look() const;
  void write(const std::string& name, const std::string& text) const;
  std::string top_;
  std::vector<int> private_;
  int events_ = -1;
  unsigned char* pages_ = nullptr;
  facts before_;
};

/// What is open, mapped and held by the process, for finding leaks.
std::map<int, std::string> open_descriptors();
/// Mappings of the kinds that nobody but a leak leaves behind, as text.
std::string odd_mappings();
std::uint64_t status_bytes(const char* key);

}  // namespace grosr::tool
