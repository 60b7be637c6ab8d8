// The GPU opens, reads and counts: a warp a file, its lanes a part of each window.
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>

#include "counting.hpp"
#include "cpu_time.hpp"
#include "files/device_list.hpp"
#include "grosr/sys/server.hpp"

namespace grosr::wordcount {
namespace {

// A window is what one call reads. They overlap, so that each is counted for itself: a word belongs
// to the window that it ends in, the first `overlap` bytes of a later window not being its own.
constexpr std::uint32_t window_bytes = sys::piece_bytes, stride = window_bytes - overlap;

struct totals {
  std::uint64_t counts[most_words];
  std::uint64_t bytes;
};

struct count_files {
  sys::server_ref sys;
  tool::file_work_ref work;
  automaton_ref words;
  unsigned char* windows;  // a warp has window_bytes and room for a struct stat
  std::uint32_t place_bytes;
  std::uint32_t* error;  // by file
  totals* all;

  GROSR_DEVICE void operator()() const {
    auto& mine = simt::block_shared<totals>();
    for (unsigned i = simt::thread_id(); i < most_words; i += simt::block_size())
      mine.counts[i] = 0;
    if (simt::thread_id() == 0) mine.bytes = 0;
    simt::sync_block();
    const std::uint32_t warps = simt::block_size() / simt::warp_size;
    unsigned char* window =
        windows + std::size_t{simt::block_id() * warps + simt::warp_id()} * place_bytes;
    tool::file_share s;
    while (work.next(s)) {
      const long bad = take(s, window, mine);
      if (simt::lane_id() == 0) {
        if (bad != 0)
          simt::atomic_ref<std::uint32_t>(error[s.file])
              .store(static_cast<std::uint32_t>(-bad), simt::relaxed);
        if (s.windows == 0) work.begun();
      }
      simt::sync_warp();
    }
    simt::sync_block();
    for (unsigned i = simt::thread_id(); i < most_words; i += simt::block_size())
      simt::atomic_ref<std::uint64_t>(all->counts[i]).fetch_add(mine.counts[i], simt::relaxed);
    if (simt::thread_id() == 0)
      simt::atomic_ref<std::uint64_t>(all->bytes).fetch_add(mine.bytes, simt::relaxed);
  }

 private:
  // 0, or why the file could not be read.
  GROSR_DEVICE long take(const tool::file_share& s, unsigned char* window, totals& mine) const {
    const auto warp = sys.warp();
    const long file = sys::openat(warp, AT_FDCWD, work.names + work.name[s.file], tool::open_flags);
    if (file < 0) return file;
    long result = 0;
    std::uint32_t end = s.windows == 0 ? 0 : s.first + s.windows;
    for (std::uint32_t w = s.first; end == 0 || w < end; ++w) {
      result = sys::pread(warp, static_cast<int>(file), window, window_bytes,
                          static_cast<std::int64_t>(std::uint64_t{w} * stride));
      if (result <= 0) break;
      const auto bytes = static_cast<std::uint32_t>(result);
      count(window, bytes, w == 0 ? 0 : overlap, mine);
      if (bytes < window_bytes) break;
      if (s.windows == 0 && w + 1 == tool::windows_a_share)
        end = share_rest(s.file, static_cast<int>(file), w + 1, window + window_bytes);
    }
    sys::close(warp, static_cast<int>(file));
    return result < 0 ? result : 0;
  }

  // Hands the windows from `first` on to others. Where its own windows end.
  GROSR_DEVICE std::uint32_t share_rest(std::uint32_t number, int file, std::uint32_t first,
                                        unsigned char* room) const {
    auto* about = reinterpret_cast<struct stat*>(room);
    const long failed = sys::fstat(sys.warp(), file, about);
    simt::sync_warp();
    std::uint32_t end = 0;
    if (simt::lane_id() == 0 && failed == 0) {
      const auto size = static_cast<std::uint64_t>(about->st_size);
      const std::uint64_t windows = size <= overlap ? 0 : (size - overlap + stride - 1) / stride;
      constexpr std::uint64_t most = 0xfffffff0u;
      end = windows <= first ? first : static_cast<std::uint32_t>(windows < most ? windows : most);
      const std::uint32_t left = work.hand_out(number, first, end);
      end = left == end ? first : end;
    }
    simt::sync_warp();
    return simt::shuffle(simt::full_mask, end, 0);
  }

  GROSR_DEVICE void count(const unsigned char* window, std::uint32_t bytes, std::uint32_t own,
                          totals& mine) const {
    simt::sync_warp();
    if (bytes > own) {
      const std::uint32_t each =
          ((bytes - own + simt::warp_size - 1) / simt::warp_size + 15) & ~15u;
      const std::uint32_t begin = own + each * simt::lane_id();
      const std::uint32_t end = begin + each < bytes ? begin + each : bytes;
      const std::uint32_t from = begin < overlap ? 0 : begin - overlap;
      if (begin < end)
        words.scan(automaton_ref::start, window + from, end - from,
                   [&](std::uint32_t i, std::uint32_t state) {
                     if (from + i < begin) return;
                     words.each_word(state, [&](std::uint8_t word) {
                       simt::atomic_ref<std::uint64_t, simt::scope::block>(mine.counts[word])
                           .fetch_add(1, simt::relaxed);
                     });
                   });
      if (simt::lane_id() == 0)
        simt::atomic_ref<std::uint64_t, simt::scope::block>(mine.bytes)
            .fetch_add(bytes - own, simt::relaxed);
    }
    simt::sync_warp();
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
        server_(d, (load_kernel(d), tool::reading_options(q.list, d, threads))),
        work_(d),
        stream_(d),
        automaton_(q.words),
        next_(on_device(d, automaton_.next)),
        first_word_(on_device(d, automaton_.first_word)),
        column_(on_device(d, automaton_.column)),
        words_(on_device(d, automaton_.words)),
        error_(d, simt::space::device, std::max<std::size_t>(q.list.files.size(), 1)),
        all_(d, simt::space::device, 1) {
    if (d.is_cuda())
      grid_ = {d.properties().sms, 4 * simt::warp_size};
    else
      grid_ = {2, 2 * simt::warp_size};
    windows_ = {d, simt::space::device,
                std::size_t{place_bytes} * grid_.blocks * grid_.threads / simt::warp_size};
    order_.resize(q.list.files.size());
    for (std::uint32_t i = 0; i < order_.size(); ++i) order_[i] = i;
    work_.load(q.list, order_);
  }

  answer count() override {
    answer a;
    take_time(a, [&] { run(a); });
    return a;
  }

  std::string name() const override { return where_.is_cuda() ? "GPU" : "device " + where_.name(); }

 private:
  static constexpr unsigned most_threads = 256;
  static constexpr std::uint32_t place_bytes = window_bytes + 256;
  static_assert(sizeof(struct stat) <= 256);

  // Before the server is there: loading waits for what it keeps going on the device.
  static void load_kernel(const device& d) {
    simt::fit<most_threads, 1, count_files>(d, most_threads);
  }

  void run(answer& a) {
    if (order_.empty()) return;
    work_.rewind();
    std::vector<std::uint32_t> error(order_.size(), 0);
    error_.copy_from(error);
    totals t{};
    all_.copy_from({&t, 1});
    const automaton_ref words{next_.data(),  column_.data(),       first_word_.data(),
                              words_.data(), automaton_.accepting, automaton_.row_shift};
    simt::launch<most_threads, 1>(stream_, grid_,
                                  count_files{server_.ref(), work_.ref(), words, windows_.data(),
                                              place_bytes, error_.data(), all_.data()});
    tool::wait_asleep(stream_, work_);
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
  sys::server server_;
  tool::device_list work_;
  simt::stream stream_;
  simt::shape grid_;
  automaton automaton_;
  simt::buffer<std::uint32_t> next_, first_word_;
  simt::buffer<std::uint8_t> column_, words_;
  simt::buffer<unsigned char> windows_;
  simt::buffer<std::uint32_t> error_;
  simt::buffer<totals> all_;
  std::vector<std::uint32_t> order_;
};

}  // namespace

std::unique_ptr<counter> count_on_device(const question& q, const device& d, unsigned threads) {
  return std::make_unique<device_counter>(q, d, threads);
}

}  // namespace grosr::wordcount
