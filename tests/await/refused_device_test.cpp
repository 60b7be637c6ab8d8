// Calls that cannot be awaited say why, and those beside them go on; bytes come back whole.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "await/small_runtime.hpp"
#include "grosr/await/awaited.hpp"
#include "grosr/run/runtime.hpp"
#include "support/scale.hpp"
#include "sys/calls.hpp"

namespace grosr {
namespace {

GROSR_DEVICE_SUITE(awaited_bytes);

using testing::small;

/// Whatever the call brought.
struct seen {
  using result = long;
  long code;
  GROSR_DEVICE int operator()(auto& context) const {
    context.give(code);
    return context.status();
  }
};

enum class asks : std::uint32_t { denied, unknown, null, too_long, stack };
struct ask {
  using result = long;
  sys::server_ref sys;
  asks what;
  int file;
  char* to;
  GROSR_DEVICE void operator()(auto& context) const {
    auto& next = context.join(seen{1});
    const auto c = context.await(sys, &next.code);
    char own[8];
    if (what == asks::denied) sys::socket(c, 2, 1);
    if (what == asks::unknown) sys::syscall(c, 100'000);
    if (what == asks::null) sys::pread(c, file, nullptr, 8, 0);
    if (what == asks::too_long) sys::pread(c, file, to, 200'000, 0);
    if (what == asks::stack) sys::pread(c, file, own, 8, 0);
  }
};

TEST_P(awaited_bytes, of_calls_that_are_refused) {
  sys::own_folder f;
  f.write("long", std::string(100'000, 'x'));
  const int file = ::open(f.file("long").c_str(), O_RDONLY | O_CLOEXEC);
  simt::buffer<char> to(where(), simt::space::device, 100'000);
  to.copy_from(std::vector<char>(100'000));
  sys::server server(where(), sys::options_for(f));
  server.grant(file);
  runtime<ask, seen, awaited> rt(where(), small(where()));
  const auto result = [&](asks what) {
    return rt.fork(ask{server.ref(), what, file, to.data()}).get();
  };
  EXPECT_EQ(result(asks::denied), -EPERM);
  EXPECT_EQ(result(asks::unknown), -ENOSYS);
  EXPECT_EQ(result(asks::null), -EFAULT);
  EXPECT_EQ(result(asks::too_long), 65'536);
  if (where().is_cuda()) {
    EXPECT_EQ(result(asks::stack), -EFAULT);
  }
  std::vector<char> got(100'000);
  to.copy_to(got);
  EXPECT_EQ(std::count(got.begin(), got.end(), 'x'), 65'536);
  EXPECT_EQ(got[65'536], 0);
  ::close(file);
}

/// What awaits without a join, or into something else.
enum class wrongs : std::uint32_t { alone, copy };
struct wrong {
  using result = long;
  sys::server_ref sys;
  wrongs what;
  long* elsewhere;
  GROSR_DEVICE void operator()(auto& context) const {
    if (what == wrongs::copy) context.join(seen{7});
    sys::nothing(context.await(sys, elsewhere));
  }
};

TEST_P(awaited_bytes, of_tasks_that_await_wrongly) {
  simt::buffer<long> elsewhere(where(), simt::space::device, 1);
  elsewhere.copy_from(std::vector<long>{5});
  sys::server server(where());
  runtime<wrong, seen, awaited> rt(where(), small(where()));
  const auto status = [&](wrongs what) {
    return rt.fork(wrong{server.ref(), what, elsewhere.data()}).status();
  };
  EXPECT_EQ(status(wrongs::alone), -EINVAL);
  EXPECT_EQ(status(wrongs::copy), -EFAULT);
  std::vector<long> got(1);
  elsewhere.copy_to(got);
  EXPECT_EQ(got[0], 5);
}

/// More calls than there is room for: each is made or says -EAGAIN.
struct made {
  using result = void;
  std::uint32_t* counts;  // made, without room, else
  long code;
  GROSR_DEVICE void operator()(auto&) const {
    const int i = code == 0 ? 0 : code == -EAGAIN ? 1 : 2;
    simt::atomic_ref<std::uint32_t>(counts[i]).fetch_add(1, simt::relaxed);
  }
};
struct makes {
  using result = void;
  sys::server_ref sys;
  std::uint32_t* counts;
  GROSR_DEVICE void operator()(auto& context) const {
    auto& next = context.join(made{counts, 1});
    sys::poll(context.await(sys, &next.code), nullptr, 0, 30);
  }
};

TEST_P(awaited_bytes, without_room_are_not_lost) {
  const auto each = static_cast<std::uint32_t>(testing::scaled(500, 200));
  simt::buffer<std::uint32_t> counts(where(), simt::space::device, 3);
  counts.copy_from(std::vector<std::uint32_t>(3));
  sys::options so;
  so.awaited_calls = 64;
  sys::server server(where(), so);
  runtime<makes, made, awaited> rt(where(), small(where()));
  std::vector<std::uint32_t> got(3);
  for (std::uint32_t turn = 1; turn <= 3; ++turn) {
    rt.submit(std::vector<makes>(each, makes{server.ref(), counts.data()}));
    rt.wait_all();
    counts.copy_to(got);
    ASSERT_EQ(got[0] + got[1], turn * each);
    ASSERT_GE(got[0], turn * 64) << "places that were not given back";
  }
  EXPECT_NE(got[1], 0u);
  rt.park();
  EXPECT_EQ(rt.stats().awaited, got[0]);
  EXPECT_THROW(sys::server(where(),
                           [] {
                             sys::options few;
                             few.awaited_calls = 31;
                             return few;
                           }()),
               error);
}

/// Many at once, of many sizes, beside forks in the same join.
struct twice {
  static constexpr std::uint16_t number = 3;
  long operator()(std::span<std::uint32_t> values, long n) const {
    for (auto& v : values) v *= 2;
    return n;
  }
};
struct one {
  using result = std::uint32_t;
  std::uint32_t number;
  GROSR_DEVICE void operator()(auto& context) const { context.give(number); }
};
struct checked {
  using result = std::uint32_t;
  std::uint32_t* values;
  long count, code;
  std::uint32_t first;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    if (code != count || values[0] != 2 * first) return -EIO;
    for (long i = 0; i < count; ++i)
      if (values[i] != 2 * (first + static_cast<std::uint32_t>(i))) return -EILSEQ;
    context.give(first);
    return 0;
  }
};
template <grosr::width W>
struct doubles {
  using result = std::uint32_t;
  static constexpr grosr::width width = W;
  sys::server_ref sys;
  std::uint32_t* values;
  std::uint32_t count, first;
  GROSR_DEVICE void operator()(auto& context) const {
    for (std::uint32_t i = context.rank(); i < count; i += context.size()) values[i] = first + i;
    context.sync();
    checked* next = nullptr;
    if (context.rank() == 0) {
      next = &context.join(checked{values, count, -1, 0});
      context.fork(one{first}, &next->first);
    }
    const long n = count;
    if constexpr (W == grosr::width::warp) {
      next = reinterpret_cast<checked*>(
          simt::shuffle(simt::full_mask, reinterpret_cast<std::uint64_t>(next), 0));
      sys::call<twice>(context.await(sys.warp(), &next->code), sys::exchanged(values, count), n);
    } else if (context.rank() == 0) {
      sys::call<twice>(context.await(sys, &next->code), sys::exchanged(values, count), n);
    }
  }
};

template <class Doubles>
void come_and_go(const device& d) {
  constexpr std::uint32_t stride = 4096;
  const auto count = static_cast<std::uint32_t>(testing::scaled(300, 40));
  simt::buffer<std::uint32_t> values(d, simt::space::device, std::size_t{count} * stride);
  sys::options so;
  so.use_arena = true;
  sys::server server(d, so);
  server.install(twice{});
  runtime<Doubles, one, checked, awaited> rt(d, small(d));
  std::vector<future<std::uint32_t>> all;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t size = i % 5 == 0 ? stride : 1 + i * 37 % 300;
    all.push_back(rt.fork(Doubles{server.ref(), values.data() + std::size_t{i} * stride, size, i}));
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    // There are fewer of the large chunks than tasks that may want one at a time.
    const int status = all[i].status();
    if (status == -EIO && i % 5 == 0) continue;
    ASSERT_EQ(status, 0) << i;
    ASSERT_EQ(all[i].get(), i);
  }
}
TEST_P(awaited_bytes, of_lanes_come_and_go) { come_and_go<doubles<grosr::width::lane>>(where()); }
TEST_P(awaited_bytes, of_warps_come_and_go) { come_and_go<doubles<grosr::width::warp>>(where()); }
TEST_P(awaited_bytes, of_blocks_come_and_go) { come_and_go<doubles<grosr::width::block>>(where()); }

}  // namespace
}  // namespace grosr
