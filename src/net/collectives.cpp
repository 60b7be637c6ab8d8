#include "net/collectives.hpp"

#include <fmt/format.h>

#include "grosr/simt/error.hpp"

namespace grosr::net {
namespace {

const char* does(collective what) {
  switch (what) {
    case collective::make:
    case collective::settle:
      return "makes a world";
    case collective::wait:
    case collective::refusals:
      return "waits for all";
    case collective::end:
      return "ends the world";
    case collective::make_array:
      return "makes an array";
    case collective::end_array:
      return "ends an array";
    case collective::copy:
      return "copies elements of an array";
  }
  return "does something else";
}

}  // namespace

failure failure::of(const std::exception& e) {
  const auto* mine = dynamic_cast<const error*>(&e);
  return {mine != nullptr ? mine->code().value() : static_cast<int>(errc::stopped), e.what()};
}

std::vector<said> collectives::gather(collective what, const said& mine, run::deadline until) {
  if (with_ == nullptr) return {mine};
  const std::vector<std::string> found =
      with_->gather(std::string(said().add(what).add(std::string(mine.rest())).rest()), until);
  std::vector<said> all;
  for (std::uint32_t p = 0; p < found.size(); ++p) {
    said one(found[p]);
    const auto theirs = one.take<collective>();
    if (theirs != what)
      throw error(errc::misuse,
                  fmt::format("world: process {} {}, and process {} {}; have all processes do the "
                              "same, in the same order",
                              process_, does(what), p, does(theirs)));
    all.push_back(std::move(one));
  }
  return all;
}

void collectives::agree(collective what, const std::exception_ptr& mine, run::deadline until) {
  failure found;
  if (mine) {
    try {
      std::rethrow_exception(mine);
    } catch (const std::exception& e) {
      found = failure::of(e);
    }
  }
  std::vector<said> all;
  try {
    all = gather(what, said().add(found.code).add(found.text), until);
  } catch (...) {
    if (mine) std::rethrow_exception(mine);
    throw;
  }
  if (mine) std::rethrow_exception(mine);
  for (std::uint32_t p = 0; p < all.size(); ++p)
    if (const int code = all[p].take<int>(); code != 0) throw_failure(p, code, all[p].rest());
}

void throw_failure(std::uint32_t process, int code, std::string_view text) {
  throw error(static_cast<errc>(code), fmt::format("in process {}: {}", process, text));
}

}  // namespace grosr::net
