// What a datablock holds: its extents, and the type of its elements.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "grosr/run/task.hpp"

namespace grosr::flow {

class block_users;
struct port_welcome;

/// An element as templates compare it. Numbers by kind and size, all else by name and size.
struct element_type {
  enum class kind : std::uint8_t { integer, natural, real, other };
  kind is = kind::natural;
  std::uint32_t bytes = 1;
  const char* name = "byte";  ///< for texts; and what tells others apart

  template <class T>
  static element_type of() {
    static_assert(std::is_trivially_copyable_v<T>,
                  "grosr: blocks hold elements that can be copied as bytes");
    element_type e;
    e.is = std::is_floating_point_v<T> ? kind::real
           : std::is_integral_v<T>     ? std::is_signed_v<T> ? kind::integer : kind::natural
                                       : kind::other;
    e.bytes = sizeof(T);
    e.name = run::task_name<T>::text();
    return e;
  }

  friend bool operator==(const element_type& a, const element_type& b) {
    return a.is == b.is && a.bytes == b.bytes &&
           (a.is != kind::other || std::string_view(a.name) == b.name);
  }
};

/// Describes the blocks of a channel: extents, element type, and whether their number varies. A
/// value.
class block_template {
 public:
  enum class records : std::uint8_t {
    fixed,     ///< all elements of the extents
    variable,  ///< any number of elements, up to the extent
    bytes,     ///< the same, of no type: functions take them as elements of one byte
  };

  /// x * y * z elements; neighbours in x are adjacent in memory. Throws error(invalid_option)
  /// unless each extent is from 1 to 2^32 - 1, and for more than PTRDIFF_MAX bytes.
  template <class T>
  static block_template of(std::size_t x, std::size_t y = 1, std::size_t z = 1) {
    return block_template(records::fixed, element_type::of<T>(), {x, y, z});
  }
  /// Up to `most` elements in all. Throws as of().
  template <class T>
  static block_template variable(std::size_t most) {
    return block_template(records::variable, element_type::of<T>(), {most, 1, 1});
  }
  /// Up to `most` bytes without a type. Throws as of().
  static block_template bytes(std::size_t most) {
    return block_template(records::bytes, {}, {most, 1, 1});
  }

  records layout() const { return layout_; }
  const element_type& element() const { return element_; }
  const std::array<std::size_t, 3>& extents() const { return extents_; }
  /// Elements, at most.
  std::size_t count() const { return extents_[0] * extents_[1] * extents_[2]; }
  std::size_t size_bytes() const { return count() * element_.bytes; }

  /// "float[512 x 512]"
  std::string text() const;

  friend bool operator==(const block_template&, const block_template&) = default;

 private:
  friend class block_users;
  friend block_template template_of(const port_welcome&, const char*);
  block_template(records layout, element_type element, std::array<std::size_t, 3> extents);

  records layout_;
  element_type element_;
  std::array<std::size_t, 3> extents_;
};

}  // namespace grosr::flow
