"""A function that cannot be a node's is refused by the compiler, in GROSR's own words."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from refusals import check

HEADERS = """
#include "grosr/flow/graph.hpp"
#include "grosr/flow/heap_out.hpp"
"""
PROGRAM = """
using namespace grosr::flow;
namespace simt = grosr::simt;
%s
void use(graph& g, const node& n, const std::vector<port>& ports) {
  %s
}
"""
AUTO = "grosr: a node's function has one call operator, and says the types of its parameters, as in<float>; auto is none"
PORTS = ("grosr: a node's function takes an in<T>, out<T>, inout<T> or heap_out<T> for each of its ports, behind the"
         " point of a kernel or the stream of on_stream(); a pointer is none of these")
KERNEL = "struct f { void operator()(%s) const {} };"
HOST = "g.host(\"f\", [](%s) {}, ports);"
STREAM = "g.on_stream(\"f\", [](%s) {}, ports);"

# what it is; declarations; code; the words that must be in an error, or None when it must compile
CASES = [
    ("a good function of each kind", KERNEL % "point, const in<int>&, inout<int>, out<int>, heap_out<int>",
     "g.kernel(\"f\", f{}, ports);" + HOST % "in<int>, out<int>"
     + STREAM % "simt::stream&, in<int>, heap_out<int>", None),
    ("a resident function", KERNEL % "point, in<int>, out<int>", "g.resident(\"f\", f{}, ports);", None),
    ("a plain function", "void f(in<int>, out<int>) {}", "g.host(\"f\", f, ports); g.also_host(n, &f);", None),
    ("a mutable lambda, and one that throws nothing", "",
     "g.host(\"f\", [i = 0](in<int>) mutable { ++i; }, ports);"
     "g.host(\"f\", [](in<int>) noexcept {}, ports);"
     "g.host(\"f\", [i = 0](in<int>) mutable noexcept { ++i; }, ports);", None),
    ("a lambda with auto", "", HOST % "auto a, out<int> b", AUTO),
    ("a lambda with auto alone, by reference", "", HOST % "const auto&... a", AUTO),
    ("a stream function with auto", "", STREAM % "simt::stream&, auto a", AUTO),
    ("a kernel with auto", "struct f { void operator()(point, auto a) const {} };", "g.kernel(\"f\", f{}, ports);", AUTO),
    ("a resident function with auto", "struct f { void operator()(point, auto a) const {} };",
     "g.resident(\"f\", f{}, ports);", AUTO),
    ("another function with auto", "", "g.also_host(n, [](auto a) {});", AUTO),
    ("two call operators", "struct f { void operator()(in<int>) const {} void operator()(in<float>) const {} };",
     "g.host(\"f\", f{}, ports);", AUTO),
    ("no function", "", "g.host(\"f\", 3, ports);", AUTO),
    ("a pointer", "", HOST % "in<int> a, int* b", PORTS),
    ("a pointer first", "", HOST % "const int* a, out<int> b",
     "grosr: a host function takes in<T>, out<T> and inout<T> alone"),
    ("pointers alone", "", HOST % "const int* a, int* b", PORTS),
    ("a pointer in a kernel", KERNEL % "point, in<int>, int*", "g.kernel(\"f\", f{}, ports);", PORTS),
    ("a pointer in a resident function", KERNEL % "point, int*", "g.resident(\"f\", f{}, ports);", PORTS),
    ("a pointer in a stream function", "", STREAM % "simt::stream&, in<int>, int*", PORTS),
    ("a number behind a port", "", HOST % "in<int> a, int b", PORTS),
    ("a point behind a port", KERNEL % "in<int>, point", "g.kernel(\"f\", f{}, ports);", PORTS),
    ("no parameters", "", HOST % "", PORTS),
    ("a host function with a point", "", HOST % "point, in<int>",
     "grosr: a host function takes in<T>, out<T> and inout<T> alone"),
    ("a kernel without a point", KERNEL % "in<int>, out<int>", "g.kernel(\"f\", f{}, ports);",
     "grosr: a kernel function takes a point, then in<T>, out<T> and inout<T>"),
    ("a stream function without a stream", "", STREAM % "in<int>, out<int>",
     "grosr: a stream function takes a simt::stream&, then in<T>, out<T> and inout<T>"),
]

programs = [(name, HEADERS + PROGRAM % (declarations, code), words) for name, declarations, code, words in CASES]
sys.exit(1 if check("function_rules_test", HEADERS, programs) else 0)
