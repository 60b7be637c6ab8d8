// Calls that move more bytes than a chunk holds are cut into pieces, for every group.
#include <fcntl.h>

#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(long_calls);

// A grid's call may be longer than a piece; a warp's may have its length in its lowest lane alone.
struct move_long {
  server_ref sys;
  int file;
  char* to;  // as long as the file, three times
  std::uint32_t bytes;
  grid_point* points;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    const bool first = simt::block_id() == 0 && simt::thread_id() == 0;
    const long read = pread(sys.grid(consumer, points), file, to, bytes, 0);
    const long written = pwrite(sys.grid(producer, points + 1), file, to, bytes, bytes);
    if (first) r[0] = read;
    if (written != -EINPROGRESS && simt::lane_id() == 0) r[1] = written;
    if (simt::block_id() != 0 || simt::warp_id() != 0) return;
    const bool leads = simt::lane_id() == 0;
    const long by_warp =
        pread(sys.warp(), file, leads ? to + bytes : nullptr, leads ? bytes : 0, 0);
    if (by_warp != static_cast<long>(bytes)) r[2] = by_warp;
  }
};

TEST_P(long_calls, move_all_bytes_for_grids_and_for_one_lane_of_a_warp) {
  own_folder f;
  std::string content(200000, 0);
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7 + i / 1000);
  f.write("in", content);
  const int file = ::open(f.file("in").c_str(), O_RDWR | O_CLOEXEC);
  server s(where(), options_for(f));
  s.grant(file);
  auto to = make<char>(2 * content.size());
  auto points = make<grid_point>(2);
  auto r = make<std::int64_t>(3);
  run(3, 64,
      move_long{s.ref(), file, to.data(), static_cast<std::uint32_t>(content.size()), points.data(),
                r.data()});
  EXPECT_EQ(contents(r), (std::vector<std::int64_t>{200000, 200000, 0}));
  const auto got = contents(to);
  EXPECT_TRUE(std::string(got.begin(), got.end()) == content + content);
  EXPECT_TRUE(f.read("in") == content + content);
  ::close(file);
}

}  // namespace
}  // namespace grosr::sys
