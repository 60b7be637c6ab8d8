"""A task that breaks a rule is refused by the compiler, in GROSR's own words."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from refusals import check

HEADERS = """
#include <string>
#include <vector>
#include "grosr/grosr.hpp"
"""
PROGRAM = """
struct good {
  std::uint32_t* x;
  void operator()(auto&) const { *x = 1; }
};
%s
void use() {
  %s
}
"""

# a continuation
JOINS = ("struct sum { using result = int; int a, b; long wide;"
         " int operator()(auto& x) const { x.give(a); return x.status(); } };")
AWAITS = ("struct s { using result = int; grosr::sys::server_ref sys; void operator()(auto& x) const"
          " { auto& n = x.join(sum{}); grosr::sys::nothing(x.await(sys, &n.%s)); } };")

# what it is; declarations; code; the words that must be in an error, or None when it must compile
CASES = [
    ("a good task", "", "grosr::runtime<good> r; r.submit(good{}); r.submit(std::vector<good>(3));", None),
    ("64 bytes", "struct big { char c[64]; void operator()(auto&) const {} };",
     "grosr::runtime<big> r; r.submit(big{});", None),
    ("65 bytes", "struct big { char c[65]; void operator()(auto&) const {} };",
     "grosr::runtime<big> r;",
     "grosr: a task has at most 64 bytes: put larger data behind a pointer"),
    ("a string member", "struct s { std::string t; void operator()(auto&) const {} };",
     "grosr::runtime<s> r;",
     "grosr: a task must be trivially copyable: no virtual functions, no owning members"),
    ("a virtual function", "struct s { int i; virtual void f(); void operator()(auto&) const {} };",
     "grosr::runtime<good, s> r;",
     "grosr: a task must be trivially copyable: no virtual functions, no owning members"),
    ("an alignment of 32", "struct alignas(32) s { int i; void operator()(auto&) const {} };",
     "grosr::runtime<s> r;", "grosr: a task is aligned to at most 16 bytes"),
    ("no task types", "", "grosr::runtime<> r;", "grosr: a runtime needs at least one task type"),
    ("17 task types", "template <int N> struct t { int i; void operator()(auto&) const {} };",
     "grosr::runtime<%s> r;" % ", ".join("t<%d>" % i for i in range(17)),
     "grosr: a runtime has at most 16 task types"),
    ("16 task types", "template <int N> struct t { int i; void operator()(auto&) const {} };",
     "grosr::runtime<%s> r;" % ", ".join("t<%d>" % i for i in range(16)), None),
    ("submitting an unknown type", "struct other { int i; void operator()(auto&) const {} };",
     "grosr::runtime<good> r; r.submit(other{});",
     "grosr: this task type is not among the runtime's: add it to runtime<...>"),
    ("submitting a span of an unknown type",
     "struct other { int i; void operator()(auto&) const {} };",
     "grosr::runtime<good> r; r.submit(std::vector<other>(2));",
     "grosr: this task type is not among the runtime's: add it to runtime<...>"),
    ("submitting arrays and spans", "",
     "grosr::runtime<good> r; good g[3]; r.submit(g); r.submit(std::span(g)); "
     "r.submit(std::span<good>(g)); r.submit(std::span<const good>(g));", None),
    ("a member named width that is no width",
     "struct s { int width; void operator()(auto&) const {} };",
     "grosr::runtime<s> r; r.submit(s{});", None),
    ("a call operator that is not const", "struct s { int i; void operator()(auto&) {} };",
     "grosr::runtime<s> r; r.submit(s{});",
     "grosr: a task needs GROSR_DEVICE void (or int) operator()(auto& context) const"),
    ("a call operator without the context", "struct s { int i; void operator()() const {} };",
     "grosr::runtime<s> r; r.submit(s{});",
     "grosr: a task needs GROSR_DEVICE void (or int) operator()(auto& context) const"),
    ("a task that returns a bool",
     "struct s { int i; bool operator()(auto&) const { return true; } };",
     "grosr::runtime<s> r; r.submit(s{});",
     "grosr: a task returns void, or int: 0 or a negative errno"),
    ("spawning an unknown type",
     "struct other { int i; void operator()(auto&) const {} };"
     "struct s { int i; void operator()(auto& c) const { c.spawn(other{}); } };",
     "grosr::runtime<s> r;",
     "grosr: this task type is not among the runtime's: add it to runtime<...>"),
]


CASES += [
    ("a task with a result and 56 bytes",
     "struct big { using result = char; char c[56]; void operator()(auto& x) const { x.give('a'); } };",
     "grosr::runtime<big> r; r.fork(big{}).get();", None),
    ("a task with a result and 57 bytes",
     "struct big { using result = int; char c[57]; void operator()(auto& x) const { x.give(1); } };",
     "grosr::runtime<big> r;",
     "grosr: a task that brings a result has at most 56 bytes, 48 if it is aligned to 16"),
    ("a result of 49 bytes",
     "struct s { struct result { char c[49]; }; int i; void operator()(auto& x) const { x.give(result{}); } };",
     "grosr::runtime<s> r;",
     "grosr: a result is trivially copyable and has at most 48 bytes"),
    ("a result that is a string",
     "struct s { using result = std::string; int i; void operator()(auto& x) const { x.give(result{}); } };",
     "grosr::runtime<s> r;",
     "grosr: a result is trivially copyable and has at most 48 bytes"),
    ("a continuation that brings another result",
     "struct u { using result = int; int i; void operator()(auto& x) const { x.give(1); } };"
     "struct s { using result = long; int i; void operator()(auto& x) const { x.join(u{}); } };",
     "grosr::runtime<s, u> r;", "grosr: a continuation brings the result of the task that joins"),
    ("a constructor", "struct s { std::uint32_t* x; explicit s(std::uint32_t* p) : x(p) {}"
     " void operator()(auto&) const { *x = 1; } };",
     "grosr::runtime<s> r; r.submit(s{nullptr}); r.submit(std::vector<s>(3, s{nullptr}));", None),
    ("a lambda as a type", "", "auto l = [](auto&) {}; grosr::runtime<decltype(l)> r;",
     "grosr: a task is a struct with a name"),
    ("submitting a lambda", "", "grosr::runtime<good> r; r.submit([](auto&) {});",
     "grosr: a task is a struct with a name"),
    ("a slot of another type", JOINS + "struct s { using result = int; int i;"
     " void operator()(auto& x) const { auto& n = x.join(sum{}); x.fork(s{1}, &n.wide); } };",
     "grosr::runtime<s, sum> r;",
     "grosr: the slot that a task is forked into has the type of its result"),
    ("forking what brings no result", JOINS + "struct s { using result = int; int i;"
     " void operator()(auto& x) const { auto& n = x.join(sum{}); x.fork(good{}, &n.a); } };",
     "grosr::runtime<s, sum, good> r;", "grosr: a task that is forked brings a result"),
    ("forking what brings no result without a slot", JOINS + "struct s { using result = int; int i;"
     " void operator()(auto& x) const { x.join(sum{}); x.fork(good{}); } };",
     "grosr::runtime<s, sum, good> r;", "grosr: a task that is forked brings a result"),
    ("the host forking what brings no result", "", "grosr::runtime<good> r; r.fork(good{});",
     "grosr: a task that is forked brings a result"),
    ("joining what brings no result", "struct s { using result = int; int i;"
     " void operator()(auto& x) const { x.join(good{}); } };",
     "grosr::runtime<s, good> r;",
     "grosr: a continuation brings a result: it says `using result = R;`"),
    ("passing on to another result", "struct u { using result = long; int i;"
     " void operator()(auto& x) const { x.give(1l); } };"
     "struct s { using result = int; int i; void operator()(auto& x) const { x.pass(u{1}); } };",
     "grosr::runtime<s, u> r;",
     "grosr: a task that is passed on to brings the result of the task that passes"),
    ("passing on to what brings no result", "struct s { using result = int; int i;"
     " void operator()(auto& x) const { x.pass(good{}); } };",
     "grosr::runtime<s, good> r;", "grosr: a task that is passed on to brings a result"),
    ("giving another type", "struct other {}; struct s { using result = int; int i;"
     " void operator()(auto& x) const { x.give(other{}); } };",
     "grosr::runtime<s> r;", "grosr: what a task gives converts to its result"),
    ("joining in a task without a result", JOINS + "struct s { int i;"
     " void operator()(auto& x) const { x.join(sum{}); } };",
     "grosr::runtime<s, sum> r;",
     "grosr: only a task that brings a result joins, forks, awaits, passes and gives"),
    ("forking in a task without a result", JOINS + "struct s { int i;"
     " void operator()(auto& x) const { int n; x.fork(sum{}, &n); } };",
     "grosr::runtime<s, sum> r;",
     "grosr: only a task that brings a result joins, forks, awaits, passes and gives"),
    ("awaiting a call", JOINS + AWAITS % "wide", "grosr::runtime<s, sum, grosr::awaited> r;", None),
    ("awaiting without the type that completes", JOINS + AWAITS % "wide", "grosr::runtime<s, sum> r;",
     "grosr: tasks of this runtime await calls: add grosr::awaited to runtime<...>"),
    ("awaiting into another type", JOINS + AWAITS % "a", "grosr::runtime<s, sum, grosr::awaited> r;",
     "grosr: the result of a call that is awaited goes to a member `long` of the continuation"),
    ("awaiting in a task without a result", "struct s { grosr::sys::server_ref sys; long* n;"
     " void operator()(auto& x) const { grosr::sys::nothing(x.await(sys, n)); } };",
     "grosr::runtime<s, grosr::awaited> r;",
     "grosr: only a task that brings a result joins, forks, awaits, passes and gives"),
    ("pushing into a channel from a task of a runtime", "struct s { grosr::channel<int> c;"
     " void operator()(auto& x) const { c.push(x, 1); } };",
     "grosr::runtime<s> r;", "grosr: only functions of a graph push into its channels"),
    ("a graph", "struct node { using element = int; grosr::channel<int> to;"
     " void operator()(const int& e, auto& c) const { to.push(c, e); } };",
     "grosr::element_graph<node> g; auto c = g.channel<int>(); g.connect(c, node{c}); g.push(c, 1);", None),
    ("a graph of 9 functions", "template <int N> struct node { using element = int;"
     " void operator()(const int&, auto&) const {} };",
     "grosr::element_graph<%s> g;" % ", ".join("node<%d>" % i for i in range(9)),
     "grosr: a graph has at most 8 functions"),
    ("an element of 57 bytes", "struct big { char c[57]; }; struct node { using element = big;"
     " void operator()(const big&, auto&) const {} };", "grosr::element_graph<node> g;",
     "grosr: an element of a graph has at most 56 bytes"),
    ("a function that is not the graph's", "template <int N> struct node { using element = int;"
     " void operator()(const int&, auto&) const {} };",
     "grosr::element_graph<node<1>> g; g.connect(g.channel<int>(), node<2>{});",
     "grosr: this function is not among the graph's: add it to element_graph<...>"),
]

programs = [(name, HEADERS + PROGRAM % (declarations, code), words) for name, declarations, code, words in CASES]
sys.exit(1 if check("task_rules_test", HEADERS, programs) else 0)
