// The GPU opens, reads and counts: a task of a warp for each window, a part of it for each lane.
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <optional>

#include "counting.hpp"
#include "cpu_time.hpp"
#include "files/device_list.hpp"
#include "grosr/sys/server.hpp"

namespace grosr::wordcount {
namespace {

struct totals {
  std::uint64_t counts[most_words];
  std::uint64_t bytes;
};

// Windows overlap, so that each is counted for itself: a word belongs to the window that it ends
// in, the first `overlap` bytes of a later window not being its own.
struct count_words {
  static constexpr std::uint32_t stride = tool::window_bytes - overlap;

  tool::reading io;
  automaton_ref words;
  std::uint32_t* error;  // by file
  totals* all;

  GROSR_DEVICE static std::uint64_t offset_of(std::uint32_t window) {
    return std::uint64_t{window} * stride;
  }
  GROSR_DEVICE static std::uint64_t windows_in(std::uint64_t bytes) {
    return bytes <= overlap ? 0 : (bytes - overlap + stride - 1) / stride;
  }

  GROSR_DEVICE void take(std::uint32_t, std::uint32_t window, const unsigned char* text,
                         std::uint32_t bytes) const {
    const std::uint32_t own = window == 0 ? 0 : overlap;
    if (bytes <= own) return;
    const unsigned lane = simt::lane_id();
    std::uint64_t* const mine = simt::block_shared<warps>().counts[simt::warp_id()];
    for (unsigned i = lane; i < most_words; i += simt::warp_size) mine[i] = 0;
    simt::sync_warp();
    count(text, bytes, own, mine);
    simt::sync_warp();
    for (unsigned i = lane; i < most_words; i += simt::warp_size) add(all->counts[i], mine[i]);
    if (lane == 0) add(all->bytes, bytes - own);
  }

  GROSR_DEVICE void failed(std::uint32_t file, long bad) const {
    simt::atomic_ref<std::uint32_t>(error[file])
        .store(static_cast<std::uint32_t>(-bad), simt::relaxed);
  }

 private:
  struct warps {
    std::uint64_t counts[run::warps_per_block][most_words];
  };

  GROSR_DEVICE static void add(std::uint64_t& sum, std::uint64_t n) {
    if (n != 0) simt::atomic_ref<std::uint64_t>(sum).fetch_add(n, simt::relaxed);
  }

  /// Each lane counts its part.
  GROSR_DEVICE void count(const unsigned char* window, std::uint32_t bytes, std::uint32_t own,
                          std::uint64_t* mine) const {
    const std::uint32_t each = ((bytes - own + simt::warp_size - 1) / simt::warp_size + 15) & ~15u;
    const std::uint32_t begin = own + each * simt::lane_id();
    const std::uint32_t end = begin + each < bytes ? begin + each : bytes;
    const std::uint32_t from = begin < overlap ? 0 : begin - overlap;
    if (begin >= end) return;
    words.scan(automaton_ref::start, window + from, end - from,
               [&](std::uint32_t i, std::uint32_t state) {
                 if (from + i < begin) return;
                 words.each_word(state, [&](std::uint8_t word) {
                   simt::atomic_ref<std::uint64_t, simt::scope::block>(mine[word])
                       .fetch_add(1, simt::relaxed);
                 });
               });
  }
};

template <class T>
simt::buffer<T> on_device(const device& d, const std::vector<T>& from) {
  simt::buffer<T> to(d, simt::space::device, from.size());
  to.copy_from(from);
  return to;
}

class device_counter final : public counter {
 public:
  device_counter(const question& q, const device& d, unsigned threads)
      : question_(q),
        where_(d),
        tasks_(d, tool::reading_runtime(d)),
        work_(d),
        automaton_(q.words),
        next_(on_device(d, automaton_.next)),
        first_word_(on_device(d, automaton_.first_word)),
        column_(on_device(d, automaton_.column)),
        words_(on_device(d, automaton_.words)),
        error_(d, simt::space::device, std::max<std::size_t>(q.list.files.size(), 1)),
        all_(d, simt::space::device, 1),
        reader_(d, simt::space::device, 1) {
    server_.emplace(d, tool::reading_options(q.list, d, threads));
    order_.resize(q.list.files.size());
    for (std::uint32_t i = 0; i < order_.size(); ++i) order_[i] = i;
    work_.load(q.list, order_);
    const automaton_ref words{next_.data(),  column_.data(),       first_word_.data(),
                              words_.data(), automaton_.accepting, automaton_.row_shift};
    const count_words reader{work_.ref(*server_), words, error_.data(), all_.data()};
    reader_.copy_from({&reader, 1});
  }

  answer count() override {
    answer a;
    take_time(a, [&] { run(a); });
    return a;
  }

  std::string name() const override { return where_.is_cuda() ? "GPU" : "device " + where_.name(); }

 private:
  void run(answer& a) {
    if (order_.empty()) return;
    std::vector<std::uint32_t> error(order_.size(), 0);
    error_.copy_from(error);
    totals t{};
    all_.copy_from({&t, 1});
    tool::read_all(tasks_, work_, reader_.data());
    all_.copy_to({&t, 1});
    error_.copy_to(error);
    std::copy(std::begin(t.counts), std::end(t.counts), a.counts.begin());
    a.bytes = t.bytes;
    for (std::size_t i = 0; i < error.size(); ++i)
      if (error[i] != 0)
        a.failures.push_back({question_.list.shown(i), static_cast<int>(error[i])});
  }

  const question& question_;
  device where_;
  std::optional<sys::server> server_;       // outlives the tasks that await its calls
  tool::reading_tasks<count_words> tasks_;  // loaded before the server rests
  tool::device_list work_;
  automaton automaton_;
  simt::buffer<std::uint32_t> next_, first_word_;
  simt::buffer<std::uint8_t> column_, words_;
  simt::buffer<std::uint32_t> error_;
  simt::buffer<totals> all_;
  simt::buffer<count_words> reader_;
  std::vector<std::uint32_t> order_;
};

}  // namespace

std::unique_ptr<counter> count_on_device(const question& q, const device& d, unsigned threads) {
  return std::make_unique<device_counter>(q, d, threads);
}

}  // namespace grosr::wordcount
