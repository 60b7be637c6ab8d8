#include <memory>
#include <vector>

#include "work/chains.hpp"

#include "grosr/run/join.hpp"
#include "work/hosted.hpp"

namespace grosr::tool {
namespace {

template <width W>
struct link {
  static constexpr unsigned number = 0;
  static constexpr grosr::width width = W;
  std::uint32_t* result;
  std::uint32_t left, done;
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.rank() != 0) return;
    if (left == 1)
      *result = done + 1;
    else
      context.spawn(link{result, left - 1, done + 1});
  }
};
static_assert(sizeof(link<width::lane>) == 16);

/// A link of forks, and the child of one. The child brings how many links have run.
struct child {
  static constexpr unsigned number = 0;
  using result = std::uint32_t;
  std::uint32_t done;
  GROSR_DEVICE void operator()(auto& context) const { context.give(done + 1); }
};
struct forking_link {
  static constexpr unsigned number = 1;
  using result = std::uint32_t;
  std::uint32_t* to;
  std::uint32_t left, done;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    if (left == 0) {
      *to = done;
      context.give(done);
      return 0;
    }
    auto& next = context.join(forking_link{to, left - 1, 0});
    context.fork(child{done}, &next.done);
    return 0;
  }
};

template <width W>
ticket start_as(any_runtime& r, std::uint32_t count, std::uint32_t hops, std::uint32_t* results) {
  std::vector<link<W>> all(count);
  for (std::uint32_t i = 0; i < count; ++i) all[i] = {results + i, hops, 0};
  return r.submit(all);
}

}  // namespace

chains::chains(const device& d, width w, const runtime_options& options, bool forks)
    : width_(w), forks_(forks) {
  if (forks) {
    runtime_ = std::make_unique<hosted<child, forking_link>>(d, options);
    return;
  }
  switch (w) {
    case width::lane:
      runtime_ = std::make_unique<hosted<link<width::lane>>>(d, options);
      break;
    case width::warp:
      runtime_ = std::make_unique<hosted<link<width::warp>>>(d, options);
      break;
    case width::block:
      runtime_ = std::make_unique<hosted<link<width::block>>>(d, options);
      break;
  }
}

ticket chains::start(std::uint32_t count, std::uint32_t hops, std::uint32_t* results) {
  if (forks_) {
    std::vector<forking_link> all(count);
    for (std::uint32_t i = 0; i < count; ++i) all[i] = {results + i, hops, 0};
    return runtime_->submit(all);
  }
  switch (width_) {
    case width::lane:
      return start_as<width::lane>(*runtime_, count, hops, results);
    case width::warp:
      return start_as<width::warp>(*runtime_, count, hops, results);
    case width::block:
      return start_as<width::block>(*runtime_, count, hops, results);
  }
  return {};
}

}  // namespace grosr::tool
