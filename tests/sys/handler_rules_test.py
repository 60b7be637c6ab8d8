"""A handler that takes addresses, and a call that passes some, are refused by the compiler, in GROSR's own words."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from refusals import check

HEADERS = """
#include <span>
#include "grosr/sys/server.hpp"
"""
PROGRAM = """
using namespace grosr;
struct h {
  static constexpr std::uint16_t number = 1;
  %s
};
GROSR_DEVICE long use(sys::server_ref s, int* at, const float* reals) {
  (void)at, (void)reals;
  return %s;
}
void install(sys::server& s) { s.install(h{}); }
"""

NO_ADDRESS = "grosr: a handler runs on the host and gets no addresses of the device"
OTHER = "grosr: these are not the arguments that the handler takes"
SIX = "grosr: a handler has at most 6 arguments, of which a span counts as two"
SIMPLE = "long operator()(long a) const { return a; }"
READS = "long operator()(std::span<const int> a) const { return a[0]; }"
FILLS = "long operator()(std::span<int> a) const { return a[0]; }"

# what it is; the handler's function; the call; the words that must be in an error, or None when it must compile
CASES = [
    ("a value", SIMPLE, "sys::call<h>(s, 1)", None),
    ("a span that is sent", READS, "sys::call<h>(s, sys::sent(at, 3))", None),
    ("a span that is exchanged, to be read", READS, "sys::call<h>(s, sys::exchanged(at, 3))", None),
    ("a span that is filled", FILLS, "sys::call<h>(s, sys::filled(at, 3))", None),
    ("a span that is exchanged", FILLS, "sys::call<h>(s, sys::exchanged(at, 3))", None),
    ("three spans", "void operator()(std::span<const int>, std::span<int>, std::span<const float>) {}",
     "sys::call<h>(s, sys::sent(at, 3), sys::filled(at, 3), sys::sent(reals, 1))", None),
    ("a handler of a pointer", "long operator()(const int* a) const { return *a; }", "0", NO_ADDRESS),
    ("a pointer", SIMPLE, "sys::call<h>(s, at)", NO_ADDRESS),
    ("a text", SIMPLE, 'sys::call<h>(s, "text")', NO_ADDRESS),
    ("null", SIMPLE, "sys::call<h>(s, nullptr)", NO_ADDRESS),
    ("a pointer for a span", READS, "sys::call<h>(s, at)", NO_ADDRESS),
    ("a value for a span", READS, "sys::call<h>(s, 1)", OTHER),
    ("a span for a value", SIMPLE, "sys::call<h>(s, sys::sent(at, 3))", OTHER),
    ("what is sent, to be filled", FILLS, "sys::call<h>(s, sys::sent(at, 3))", OTHER),
    ("what is filled, to be read", READS, "sys::call<h>(s, sys::filled(at, 3))", OTHER),
    ("a span of others", READS, "sys::call<h>(s, sys::sent(reals, 3))", OTHER),
    ("too few arguments", SIMPLE, "sys::call<h>(s)", OTHER),
    ("too many arguments", SIMPLE, "sys::call<h>(s, 1, 2)", OTHER),
    ("a float for a double", "long operator()(double a) const { return a > 0; }", "sys::call<h>(s, 1.0f)", OTHER),
    ("seven words", "long operator()(std::span<int>, std::span<int>, std::span<int>, int) const { return 0; }",
     "sys::call<h>(s, sys::filled(at, 1), sys::filled(at, 1), sys::filled(at, 1), 1)", SIX),
    ("pointers to be carried", "long operator()(std::span<const int* const>) const { return 0; }",
     "sys::call<h>(s, sys::sent(&at, 1))", "grosr: what is carried to a handler is trivially copyable, no pointer"),
    ("one that replies later", "void operator()(sys::deferred_reply, long, std::span<int>) const {}",
     "sys::call<h>(s, 1, sys::filled(at, 3))", None),
    ("one that replies later and returns", "long operator()(sys::deferred_reply, long) const { return 0; }", "0",
     "grosr: a handler that takes a sys::deferred_reply returns nothing"),
    ("a reply that is passed", "void operator()(sys::deferred_reply, long) const {}", "sys::call<h>(s, 1, 2)", OTHER),
    ("a span of fixed extent", "long operator()(std::span<const int, 3> a) const { return a[0]; }", "0",
     "grosr: an argument of a handler has at most 8 bytes, or is a std::span of dynamic extent"),
]

programs = [(name, HEADERS + PROGRAM % (function, call), words) for name, function, call, words in CASES]
sys.exit(1 if check("handler_rules_test", HEADERS, programs) else 0)
