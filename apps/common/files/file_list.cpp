#include "files/file_list.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>

#include "cli/progress.hpp"

namespace grosr::tool {
namespace {

class walker {
 public:
  walker(file_list& to, const std::function<bool(const std::string&)>& wanted)
      : to_(to), wanted_(wanted), shown_("looking for files") {}

  void add(const std::string& given) {
    char resolved[PATH_MAX];
    struct stat found {};
    if (::realpath(given.empty() ? "." : given.c_str(), resolved) == nullptr ||
        ::stat(resolved, &found) != 0)
      return fail(given, errno);
    tree_ = static_cast<std::uint32_t>(to_.trees.size());
    if (S_ISDIR(found.st_mode)) {
      to_.trees.push_back({given, resolved});
      walk(resolved);
    } else if (S_ISREG(found.st_mode)) {
      const std::string path = resolved;
      const std::size_t slash = path.rfind('/');
      if (!asks_for(given.substr(given.rfind('/') + 1))) return;
      to_.trees.push_back({given, slash == 0 ? "/" : path.substr(0, slash), true});
      to_.files.push_back({tree_, path.substr(slash + 1)});
    } else {
      ++to_.special;
    }
  }

 private:
  bool asks_for(const std::string& name) const { return !wanted_ || wanted_(name); }
  void fail(const std::string& path, int error) { to_.failures.push_back({path, error}); }

  std::string shown(const std::string& below) const {
    return to_.trees[tree_].given.empty() ? below : to_.trees[tree_].given + "/" + below;
  }

  void walk(const char* root) {
    const int top = ::open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0) return fail(to_.trees[tree_].given, errno);
    const std::size_t first = to_.files.size();
    std::vector<std::string> folders{""};
    while (!folders.empty()) {
      const std::string below = std::move(folders.back());
      folders.pop_back();
      shown_.at(to_.files.size());
      read_folder(top, below, folders);
    }
    ::close(top);
    std::sort(to_.files.begin() + static_cast<std::ptrdiff_t>(first), to_.files.end(),
              [](const auto& a, const auto& b) { return a.below < b.below; });
  }

  void read_folder(int top, const std::string& below, std::vector<std::string>& folders) {
    const int fd = ::openat(top, below.empty() ? "." : below.c_str(),
                            O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return fail(shown(below), errno);
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::fdopendir(fd), ::closedir);
    if (!folder) {
      ::close(fd);
      return fail(shown(below), ENOMEM);
    }
    while (const dirent* entry = ::readdir(folder.get())) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      const std::string path = below.empty() ? name : below + "/" + name;
      unsigned char type = entry->d_type;
      if (type == DT_UNKNOWN) {
        struct stat found {};
        if (::fstatat(fd, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0)
          type = IFTODT(found.st_mode);
      }
      if (type == DT_DIR)
        folders.push_back(path);
      else if (type == DT_REG && asks_for(name))
        to_.files.push_back({tree_, path});
      else if (type != DT_REG && type != DT_LNK)
        ++to_.special;
    }
  }

  file_list& to_;
  const std::function<bool(const std::string&)>& wanted_;
  std::uint32_t tree_ = 0;
  progress shown_;
};

}  // namespace

std::string file_list::shown(std::size_t file) const {
  const source_file& f = files[file];
  const source_tree& t = trees[f.tree];
  if (t.is_file) return t.given;
  if (t.given.empty()) return f.below;
  return t.given.back() == '/' ? t.given + f.below : t.given + "/" + f.below;
}

file_list list_files(const std::vector<std::string>& given,
                     const std::function<bool(const std::string&)>& wanted) {
  file_list all;
  walker w(all, wanted);
  for (const std::string& g : given) w.add(g);
  return all;
}

}  // namespace grosr::tool
