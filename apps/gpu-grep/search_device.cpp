// Runs tasks over files, and makes results of its records.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <thread>

#include "files/device_list.hpp"
#include "host_lines.hpp"
#include "search_files.hpp"

namespace grosr::grep {
namespace {

template <class T>
simt::buffer<T> on_device(const device& d, const std::vector<T>& from) {
  simt::buffer<T> to(d, simt::space::device, from.size());
  to.copy_from(from);
  return to;
}

}  // namespace

struct searcher::state {
  const tool::file_list& list;
  const line_automaton& lines;
  device where;
  std::optional<sys::server> server;        // outlives the tasks that await its calls
  tool::reading_tasks<search_files> tasks;  // loaded before the server rests
  tool::device_list work;
  simt::buffer<std::uint32_t> next;
  simt::buffer<std::uint8_t> column;
  simt::buffer<file_state> states;
  simt::buffer<record> records;
  simt::buffer<char> texts;
  simt::buffer<search_files::usage> used;
  simt::buffer<search_files> reader;

  state(const tool::file_list& files, const line_automaton& a, const device& d)
      : list(files),
        lines(a),
        where(d),
        tasks(d, tool::reading_runtime(d)),
        work(d),
        next(on_device(d, a.next)),
        column(on_device(d, a.column)),
        records(d, simt::space::device, d.is_cuda() ? 1u << 20 : 1u << 16),
        texts(d, simt::space::device, d.is_cuda() ? 64u << 20 : 4u << 20),
        used(d, simt::space::device, 1),
        reader(d, simt::space::device, 1) {
    server.emplace(d, tool::reading_options(files, d));
  }

  struct harvest {
    std::vector<file_state> states;
    std::vector<record> records;
    std::vector<char> texts;
  };

  harvest run(std::span<const std::uint32_t> files, wanted what, bool numbers) {
    tasks.park();  // memory is given back, which would wait for a resident kernel
    work.load(list, files);
    if (states.size() < files.size())
      states = simt::buffer<file_state>(where, simt::space::device, files.size());
    harvest h{std::vector<file_state>(files.size()), {}, {}};
    states.copy_from(h.states);
    search_files::usage u{};
    used.copy_from({&u, 1});
    const line_automaton_ref a{next.data(), column.data(), lines.start, lines.accepting};
    const search_files how{work.ref(*server),     a,
                           what == wanted::lines, numbers,
                           states.data(),         records.data(),
                           texts.data(),          records.size(),
                           texts.size(),          used.data()};
    reader.copy_from({&how, 1});
    tool::read_all(tasks, work, reader.data());
    states.copy_to(h.states);
    used.copy_to({&u, 1});
    h.records.resize(std::min<std::uint64_t>(u.records, records.size()));
    h.texts.resize(std::min<std::uint64_t>(u.text, texts.size()));
    records.copy_to(h.records);
    texts.copy_to(h.texts);
    return h;
  }

  // `begin` to `end`: the records of one file, in the order of the file.
  void finish(std::uint32_t file, const file_state& s, const record* begin, const record* end,
              const std::vector<char>& texts_here, bool numbers, wanted what, file_result& r) {
    r.error = static_cast<int>(s.error);
    r.binary = (s.flags & file_state::binary) != 0;
    r.matches = s.matches;
    int fd = -1;
    const auto opened = [&] {
      if (fd < 0) fd = open_file(list, file);
      if (fd < 0) r.error = errno;
      return fd >= 0;
    };
    std::uint64_t before = 0, counted = 0;  // lines of earlier windows
    std::uint32_t window = 0;
    for (const record* x = begin; x != end; ++x) {
      if (x->window != window) {
        before = counted;
        window = x->window;
      }
      if (x->bytes == record::line_count) {
        counted = before + x->line;
        continue;
      }
      const std::uint64_t number = numbers ? before + x->line + 1 : 0;
      if (x->bytes == record::too_long) {
        std::string text;
        if (!opened() || !read_line(fd, x->offset, lines.ref(), text)) continue;
        ++r.matches;
        if (what == wanted::lines) r.lines.push_back({number, std::move(text)});
      } else if (x->text != record::no_text) {
        const char* text = texts_here.data() + x->text;
        r.lines.push_back({number, std::string(text, text + x->bytes)});
      } else if (opened()) {
        r.lines.push_back({number, read_text(fd, x->offset, x->bytes)});
      }
    }
    if (fd >= 0) ::close(fd);
  }
};

searcher::searcher(const tool::file_list& list, const line_automaton& lines, const device& d)
    : state_(std::make_unique<state>(list, lines, d)) {}
searcher::~searcher() = default;

std::vector<file_result> searcher::search(std::span<const std::uint32_t> files, wanted what,
                                          bool numbers) {
  std::vector<file_result> results(files.size());
  std::vector<std::uint32_t> pending(files.size());  // positions in `files`
  for (std::uint32_t i = 0; i < pending.size(); ++i) pending[i] = i;
  while (!pending.empty()) {
    std::vector<std::uint32_t> now;
    for (const std::uint32_t i : pending) now.push_back(files[i]);
    state::harvest h = state_->run(now, what, numbers);
    // Line counts come before the lines of later windows and after those of their own.
    std::sort(h.records.begin(), h.records.end(), [](const record& a, const record& b) {
      const auto key = [](const record& r) {
        return std::tuple(r.file, r.window, r.bytes == record::line_count, r.offset);
      };
      return key(a) < key(b);
    });
    std::vector<std::uint32_t> again;
    std::size_t at = 0;
    for (std::uint32_t i = 0; i < pending.size(); ++i) {
      const std::size_t begin = at;
      while (at < h.records.size() && h.records[at].file == i) ++at;
      if ((h.states[i].flags & file_state::again) != 0)
        again.push_back(pending[i]);
      else
        state_->finish(now[i], h.states[i], h.records.data() + begin, h.records.data() + at,
                       h.texts, numbers, what, results[pending[i]]);
    }
    if (again.size() == pending.size()) {  // no run will do
      for (const std::uint32_t i : again)
        results[i] = search_on_host(state_->list, files[i], state_->lines.ref(), what, numbers);
      again.clear();
    }
    pending = std::move(again);
  }
  return results;
}

}  // namespace grosr::grep
