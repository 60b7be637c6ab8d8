// The regular files that a program was asked to look at, in the order of their paths.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace grosr::tool {

/// What was given: a folder with all below it, or one file.
struct source_tree {
  std::string given;   ///< as it is shown; "" for a folder whose files are shown without it
  std::string folder;  ///< absolute, without links; of a file: the folder that it is in
  bool is_file = false;
};

struct source_file {
  std::uint32_t tree;
  std::string below;  ///< relative to the tree's folder
};

/// Something that cannot be read, and why.
struct unreadable {
  std::string path;
  int error;
};

struct file_list {
  std::vector<source_tree> trees;
  std::vector<source_file> files;
  std::vector<unreadable> failures;
  std::uint64_t special = 0;  ///< pipes, sockets and devices that were left out

  std::string shown(std::size_t file) const;  ///< the path as people know it
};

/// Lists trees one after the other, each in the order of bytes of its paths. Links are followed
/// where they are given, not where they are found. `wanted` is asked with a file's name alone.
/// Leaves on Ctrl-C.
file_list list_files(const std::vector<std::string>& given,
                     const std::function<bool(const std::string&)>& wanted = {});

}  // namespace grosr::tool
