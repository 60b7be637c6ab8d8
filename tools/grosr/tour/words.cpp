// Tour: the words of every text file under a folder. Files are read into pinned memory in batches;
// a task a file starts a task for each chunk of 64 KB; each file's count is checked by the CPU.
#include "work/words.hpp"

#include <memory>

#include "cli/text.hpp"
#include "grosr/simt/buffer.hpp"
#include "limits/limits.hpp"
#include "tour/parts.hpp"
#include "tour/text_files.hpp"

namespace grosr::tool {
namespace {

constexpr std::size_t most_segments = 1u << 16;

struct tally {
  std::uint64_t words = 0;
  double device_us = 0, cpu_us = 0;
  std::string wrong;
};

class counter {
 public:
  counter(const session& s, std::size_t batch_bytes)
      : text_(s.where, simt::space::pinned, batch_bytes),
        words_(s.where, simt::space::device, most_segments),
        options_(usual_options(s.where)),
        runtime_(make_words_runtime(s.where, options_)) {}

  std::span<unsigned char> memory() { return {text_.data(), text_.size()}; }

  /// Counts one batch on the device and checks it on the CPU.
  void count(const std::vector<text_segment>& batch, const text_files& files, tally& t) {
    std::vector<std::uint32_t> got(batch.size());
    words_.copy_from(got);
    std::vector<count_file> tasks;
    for (const text_segment& s : batch)
      tasks.push_back({text_.data() + s.offset, words_.data() + tasks.size(), s.bytes, s.before});
    t.device_us += timed([&] {
      runtime_->submit(tasks);
      await(*runtime_);
    });
    words_.copy_to(got);
    std::vector<std::uint64_t> expected(batch.size());
    t.cpu_us += timed([&] {
      for (std::size_t i = 0; i < batch.size(); ++i)
        expected[i] = count_words_plainly(
            {reinterpret_cast<const char*>(text_.data()) + batch[i].offset, batch[i].bytes},
            batch[i].before);
    });
    for (std::size_t i = 0; i < batch.size(); ++i) {
      t.words += got[i];
      if (got[i] != expected[i] && t.wrong.empty())
        t.wrong = files.paths()[batch[i].file] + " has " + grouped(expected[i]) + " words, not " +
                  grouped(got[i]);
    }
  }

  std::string trouble() {
    return tool::trouble(*runtime_, settled_stats(*runtime_), options_.memory_limit);
  }

 private:
  simt::buffer<unsigned char> text_;
  simt::buffer<std::uint32_t> words_;
  runtime_options options_;
  std::unique_ptr<any_runtime> runtime_;
};

std::string left_out(const text_census& c) {
  std::string text;
  const auto add = [&](std::uint64_t n, const char* what) {
    if (n != 0) text += (text.empty() ? "left out: " : ", ") + grouped(n) + " " + what;
  };
  add(c.binary, "binary");
  add(c.unreadable, "unreadable");
  add(c.links, "links");
  add(c.special, "special");
  return text;
}

}  // namespace

void tour_words(session& s, const std::string& folder) {
  const std::size_t mb = 1 << 20, batch_bytes = s.sized(64 * mb, 8 * mb);
  const limits::figure bus = limits::lanes_load(s.where, s.sized(64 * mb, 1 * mb));
  text_files files(folder);
  tally t;
  {
    counter count(s, batch_bytes);
    progress shown("words, files", files.paths().size());
    for (;;) {
      const auto batch = files.next(count.memory(), most_segments);
      if (batch.empty()) break;
      count.count(batch, files, t);
      shown.at(files.done());
    }
    if (t.wrong.empty()) t.wrong = count.trouble();
  }
  const text_census& c = files.census();
  row line("words");
  line.set("files", static_cast<double>(c.files))
      .set("bytes", static_cast<double>(c.bytes))
      .set("words", static_cast<double>(t.words));
  if (c.bytes > 0)
    line.set("gb_per_s", static_cast<double>(c.bytes) / t.device_us / 1e3)
        .limit(s.gpu() ? "the bus, by lanes" : "memory, by lanes", "gb_per_s", bus.number)
        .baseline("one CPU thread", "gb_per_s", static_cast<double>(c.bytes) / t.cpu_us / 1e3);
  else
    line.note("no text under " + one_line(folder));
  if (const std::string out = left_out(c); !out.empty()) line.note(out);
  s.out.add(line.check(t.wrong.empty(), t.wrong));
}

}  // namespace grosr::tool
