// The audit log has a line a call, with what was asked and what came of it.
#include <fcntl.h>

#include <regex>

#include "support/scale.hpp"
#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(audit);

struct twice {
  static constexpr std::uint16_t number = 7;
  long operator()(std::int64_t n) const { return 2 * n; }
};

struct some_calls {
  server_ref sys;
  const char* outside;
  std::uint64_t at;  // shared memory
  handler_ref added;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    const long file = open(sys, "data \"x\"\n", O_RDWR | O_CREAT, 0600);
    char some[8] = {1, 2, 3};
    pwrite(sys, static_cast<int>(file), some, 8, 0);
    rename(sys, "data \"x\"\n", "y");
    sys::syscall(sys, SYS_symlinkat, at, AT_FDCWD, at + 5);
    sys::syscall(sys, SYS_renameat2, AT_FDCWD, 8, AT_FDCWD, at + 5, 0);
    open(sys, outside, O_RDONLY);
    close(sys, static_cast<int>(file));
    close(sys, static_cast<int>(file));
    call<twice>(sys, -21);
    call(sys, added, -21);
    sys::syscall(sys, SYS_getppid);
    sys::syscall(sys, 9999L);
    print(sys, "");
    unlink(sys, nullptr);
    const timespec span{0, 1000};
    nanosleep(sys, &span);
  }
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    lines.push_back(text.substr(at, end - at));
  return lines;
}

TEST_P(audit, has_a_line_a_call) {
  own_folder f, logs;
  const int log = ::open(logs.file("log").c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ASSERT_GE(log, 0);
  const std::string outside = "/etc/passwd";
  auto path = make<char>(outside.size() + 1);
  path.copy_from({outside.c_str(), outside.size() + 1});
  {
    options o = options_for(f);
    o.threads = 1;
    o.audit_to = log;
    server s(where(), o);
    s.install(twice{});
    simt::buffer<char> names(where(), simt::space::pinned, 10);
    std::memcpy(names.data(), "text\0link", 10);
    s.share(std::as_writable_bytes(std::span(names.data(), 10)));
    run(1, 32,
        some_calls{s.ref(), path.data(), reinterpret_cast<std::uint64_t>(names.data()),
                   s.add(twice{})});
    s.drain(std::chrono::seconds(10));
    const char* const expected[] = {
        R"(openat\(-100, "data \\"x\\"\\x0a", 66, 384\) = (\d+))",
        R"(pwrite64\(\d+, 0x[0-9a-f]+, 8, 0\) = 8)",
        R"(renameat2\(-100, "data \\"x\\"\\x0a", -100, "y", 0\) = 0)",
        R"(symlinkat\("text", -100, "link"\) = 0)",
        R"(renameat2\(-100, 0x8, -100, 0x[0-9a-f]+, 0\) = -EFAULT)",
        R"(openat\(-100, "/etc/passwd", 0, 0\) = -EPERM)",
        R"(close\(\d+\) = 0)",
        R"(close\(\d+\) = -EBADF)",
        R"(handler_7\(-21, 0, 0, 0, 0, 0\) = -42)",
        R"(added_0\(-21, 0, 0, 0, 0, 0\) = -42)",
        R"(getppid\(\) = \d+)",
        R"(system_call_9999\(0, 0, 0, 0, 0, 0\) = -ENOSYS)",
        R"(print\(\) = 0)",
        R"(nanosleep\(0x[0-9a-f]+, 0x0\) = 0)",
    };
    const auto lines = lines_of(logs.read("log"));
    const std::string when = R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z )";
    ASSERT_EQ(lines.size(), std::size(expected)) << logs.read("log");
    for (std::size_t i = 0; i < lines.size(); ++i)
      EXPECT_TRUE(std::regex_match(lines[i], std::regex(when + expected[i]))) << lines[i] << "\n"
                                                                              << expected[i];
  }
  ::close(log);
}

struct many_calls {
  server_ref sys;
  std::uint32_t each;
  GROSR_DEVICE void operator()() const {
    for (std::uint32_t i = 0; i < each; ++i) sys::syscall(sys, SYS_getppid);
  }
};

TEST_P(audit, loses_no_line) {
  own_folder logs;
  const int log = ::open(logs.file("log").c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const auto each = static_cast<std::uint32_t>(testing::scaled(50, 5));
  {
    options o;
    o.threads = 3;
    o.audit_to = log;
    server s(where(), o);
    run(2, 128, many_calls{s.ref(), each});
  }
  const auto lines = lines_of(logs.read("log"));
  EXPECT_EQ(lines.size(), 256 * each);
  for (const auto& line : lines) ASSERT_NE(line.find(" getppid() = "), std::string::npos) << line;
  ::close(log);
}

}  // namespace
}  // namespace grosr::sys
