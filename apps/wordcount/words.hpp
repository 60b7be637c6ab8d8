// Which words are counted.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace grosr::wordcount {

/// One word a line of the file, at most 64 of at most 64 bytes; without a file, 64 that occur in
/// sources. Throws tool::usage_error.
std::vector<std::string> words_to_count(const std::optional<std::string>& file);

}  // namespace grosr::wordcount
