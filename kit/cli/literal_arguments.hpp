// Arguments in brackets, which CLI11 takes for lists where an option may have several values: a
// pattern or a file may well be called [a].
#pragma once

#include <string>
#include <vector>

namespace grosr::tool {

/// The program's arguments, those in brackets marked so that they stay what they are. Give count()
/// and values() to run_program(), and take the marks off with as_given().
class literal_arguments {
 public:
  literal_arguments(int count, char** values) : text_(values, values + count) {
    for (std::string& t : text_)
      if (t.size() > 1 && t.front() == '[' && t.back() == ']') t.insert(t.begin(), mark);
    for (std::string& t : text_) values_.push_back(t.data());
    values_.push_back(nullptr);
  }

  int count() const { return static_cast<int>(text_.size()); }
  char** values() { return values_.data(); }

  static void as_given(std::vector<std::string>& arguments) {
    for (std::string& a : arguments)
      if (a.size() > 1 && a[0] == mark && a[1] == '[') a.erase(0, 1);
  }

 private:
  static constexpr char mark = '\x01';
  std::vector<std::string> text_;
  std::vector<char*> values_;
};

}  // namespace grosr::tool
