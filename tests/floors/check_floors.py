#!/usr/bin/env python3
"""Checks the floors rule: code includes only from lower floors, no room's detail/ or private headers are
included by another, programs keep apart, and only simt/ touches raw CUDA. Inside a room, headers stand on at
most 9 floors of includes without a circle, and public headers are short.

    check_floors.py [ROOT]       check the repository at ROOT (default: the one this file is in)
    check_floors.py --self-test  check that bad trees are reported and a good one is not

One line a finding, `file:line: what is wrong; what to do`. Exit status 0 clean, 1 findings, 2 bad use.
"""

import re
import sys
import tempfile
from pathlib import Path

FLOORS = {
    "simt": 0,
    "queue": 1, "alloc": 1,
    "run": 2, "sys": 2,
    "flow": 3, "place": 3, "net": 3, "await": 3,
    "graph": 4,
    "kit": 5, "bench": 5, "examples": 5, "apps": 5, "tools": 5, "python": 5,
}
PROGRAMS = [room for room, floor in FLOORS.items() if floor == 5]
# Programs on the top floor: what else of it each may include.
NEIGHBOURS = {
    "kit": [],
    "bench": ["kit", "examples", "apps"],
    "examples": ["kit", "bench"],
    "apps": ["kit", "bench", "examples"],
    "tools": ["kit", "bench", "examples"],
    "python": ["kit"],
}
# Folders that programs include by names below them.
ROOTS = ["src", "kit", "bench", "examples", "tools", "tools/grosr", "apps/common"]
MOST_FLOORS_IN_A_ROOM = 9
MOST_LINES = 150  # of a public header, on average over all rooms
EVERYWHERE = {"version.hpp"}  # headers in include/grosr/ itself that any room may include
SUFFIXES = {".hpp", ".inl", ".cpp", ".h", ".cc", ".cu", ".cuh", ".inc", ".ipp"}

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
# (pattern, only in public headers?, what to use instead)
FORBIDDEN = [
    (re.compile(r"\b(__CUDA_ARCH__|GROSR_ON_GPU)\b"), False, "a function of simt/ that differs by backend"),
    (re.compile(r"\b(threadIdx|blockIdx|blockDim|gridDim)\b"), False, "lane_id() and its kin from simt/"),
    (re.compile(r"\b__shared__\b"), False, "block_shared<T>() from simt/"),
    (re.compile(r"\b__sync(threads|warp)\w*"), False, "sync_block() or sync_warp(mask) from simt/"),
    (re.compile(r"\b__(threadfence\w*|shfl_\w+|ballot_sync|match_\w+_sync|activemask|nanosleep)\b"), False,
     "the lane vocabulary, scoped atomics and wait_until of simt/"),
    (re.compile(r"\batomic(Add|Sub|Exch|Min|Max|Inc|Dec|CAS|And|Or|Xor)(_system|_block)?\s*\("), False,
     "scoped atomics from simt/"),
    (re.compile(r"\b(std|cuda|cuda::std|boost)::atomic_ref\b"), True, "scoped atomics from simt/"),
]


def without_comments(text, keep_strings):
    """The same text, same line numbers, with comments (and string literals) blanked."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"([^\s()\\]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S)

    def blank(match):
        found = match.group(0)
        if found.startswith("/"):
            return " " + "\n" * found.count("\n")
        return found if keep_strings else '""' + "\n" * found.count("\n")

    return pattern.sub(blank, text)


def room_of(path):
    """The room that a path relative to the root belongs to; '' for the top of include/grosr; None for none."""
    parts = path.parts
    if parts[:2] == ("include", "grosr"):
        return parts[2] if len(parts) > 3 else ""
    if parts[0] == "src":
        return parts[1] if len(parts) > 2 else None
    return parts[0] if parts[0] in PROGRAMS else None


def room_of_include(root, file, target):
    """The room that an included name belongs to, or None for headers that are not ours."""
    if target.startswith("grosr/"):
        if target[len("grosr/"):] in EVERYWHERE:
            return None
        return room_of(Path("include") / target)
    near = (root / file).parent / target
    own = [root / Path(*file.parts[:2]) / target] if file.parts[0] == "apps" else []
    for candidate in (near, *own, *(root / r / target for r in ROOTS), root / target):
        if candidate.is_file():
            resolved = candidate.resolve()
            if resolved.is_relative_to(root):
                relative = resolved.relative_to(root)
                return None if relative.parts[-1] in EVERYWHERE else room_of(relative)
    return None


def is_private(target):
    """Whether an included name is for its own room alone: in detail/, or a header of src/."""
    parts = target.split("/")
    return "detail" in parts if parts[0] == "grosr" else parts[0] in FLOORS and FLOORS[parts[0]] < 5


def why_not(room, other, target):
    """Why `room` may not include `target` from `other`, or None if it may."""
    if other not in FLOORS and other != "":
        return f"includes from '{other}', which is no room; rooms are {', '.join(FLOORS)}"
    if room == other or room not in FLOORS:
        return None  # its own room, or the top of include/grosr, which may show the whole house
    if other in FLOORS and FLOORS[other] < 5 and is_private(target):
        return f"{room} includes what is {other}'s own; use a public header of {other}, or make one"
    if other == "":
        return None if FLOORS[room] == 5 else "includes the whole house; include the headers of single rooms"
    if FLOORS[other] > FLOORS[room]:
        return (f"{room} (floor {FLOORS[room]}) includes from {other} (floor {FLOORS[other]}), which is above; "
                f"move what is shared down, or pass it in")
    if FLOORS[room] == 5 and FLOORS[other] == 5:
        return None if other in NEIGHBOURS[room] else (
            f"{room} includes from {other}; of other programs it may include {', '.join(NEIGHBOURS[room]) or 'none'}: "
            f"move what is shared there")
    if FLOORS[other] == FLOORS[room]:
        return (f"{room} includes from {other}, its neighbour on floor {FLOORS[room]}; "
                f"move what is shared to a lower floor")
    return None


def includes_in_room(root):
    """{header: the headers of its own room that it includes}, of all headers in include/grosr/<room>/."""
    folder = root / "include"
    headers = {p.relative_to(folder).as_posix(): p for p in sorted((folder / "grosr").rglob("*"))
               if p.suffix in SUFFIXES and len(p.relative_to(folder).parts) > 2}
    graph = {}
    for name, path in headers.items():
        lines = without_comments(path.read_text(encoding="utf-8", errors="replace"), keep_strings=True).split("\n")
        targets = [match.group(1) for match in map(INCLUDE.match, lines) if match]
        near = [(Path(name).parent / t).as_posix() for t in targets]
        room = name.split("/")[1]
        graph[name] = [t for t in (*targets, *near) if t in headers and t.split("/")[1] == room]
    return graph


def check_shape(root):
    """Findings about rooms as a whole: floors and circles of includes inside a room, length of public headers."""
    graph, findings, below = includes_in_room(root), [], {}

    def path_below(name, above):  # the longest chain of includes that begins at a header
        if name in above:
            circle = [*above[above.index(name):], name]
            findings.append(f"include/{name}:1: includes itself: {' -> '.join(circle)}; move what both need down")
            return [name]
        if name not in below:
            chains = [path_below(other, [*above, name]) for other in graph[name]]
            below[name] = [name, *max(chains, key=len, default=[])]
        return below[name]

    highest = {}
    for name in graph:
        room, chain = name.split("/")[1], path_below(name, [])
        if len(chain) > len(highest.get(room, [])):
            highest[room] = chain
    for room, chain in highest.items():
        if len(chain) > MOST_FLOORS_IN_A_ROOM:
            findings.append(f"include/{chain[0]}:1: stands on floor {len(chain)} of {room}/; at most "
                            f"{MOST_FLOORS_IN_A_ROOM}: flatten {' -> '.join(chain)}")
    lengths = {name: len((root / "include" / name).read_text(encoding="utf-8", errors="replace").split("\n")) - 1
               for name in graph if "detail" not in name.split("/")}
    if lengths and sum(lengths.values()) > MOST_LINES * len(lengths):
        longest = max(lengths, key=lengths.get)
        findings.append(f"include/{longest}:1: public headers have {sum(lengths.values()) // len(lengths)} lines on average; "
                        f"at most {MOST_LINES}: move what users do not need into detail/, first here ({lengths[longest]} lines)")
    return findings


def check(root):
    root = root.resolve()
    findings, files = check_shape(root), []
    for folder in ["include", "src", *PROGRAMS]:
        files += [f for f in sorted((root / folder).rglob("*")) if f.suffix in SUFFIXES and f.is_file()]
    for path in files:
        file = path.relative_to(root)
        room = room_of(file)
        text = path.read_text(encoding="utf-8", errors="replace")
        if file.parts[0] in ("include", "src") and room not in FLOORS and room not in ("", None):
            findings.append(f"{file}:1: '{room}' is no room; rooms are {', '.join(FLOORS)}")
            continue
        for number, line in enumerate(without_comments(text, keep_strings=True).split("\n"), 1):
            match = INCLUDE.match(line)
            other = room_of_include(root, file, match.group(1)) if match else None
            if file.parts[:3] == ("bench", "baselines", other):
                continue  # the same steps as the room's, driven otherwise: they share its insides
            reason = why_not(room, other, match.group(1)) if other is not None and room is not None else None
            if reason:
                findings.append(f"{file}:{number}: {reason}")
        if room == "simt":
            continue
        for number, line in enumerate(without_comments(text, keep_strings=False).split("\n"), 1):
            for pattern, headers_only, instead in FORBIDDEN:
                match = pattern.search(line)
                if match and (not headers_only or file.parts[0] == "include"):
                    findings.append(f"{file}:{number}: '{match.group(0).strip('( ')}' outside simt/; use {instead}")
    return findings, len(files)


GOOD_TREE = {
    "include/grosr/simt/lanes.hpp": "#if defined(__CUDA_ARCH__)\nint x = threadIdx.x;\n#endif\n",
    "include/grosr/queue/ring.hpp": '#include <atomic>\n#include "grosr/simt/lanes.hpp"\n#include "ring_detail.hpp"\n',
    "include/grosr/queue/ring_detail.hpp": "// unlike atomicAdd(), and not __shared__\nconst char* s = \"threadIdx\";\n",
    "include/grosr/run/runtime.hpp": "#include <grosr/queue/ring.hpp>\n#include <grosr/version.hpp>\n",
    "include/grosr/version.hpp": "\n",
    "include/grosr/grosr.hpp": "#include <grosr/run/runtime.hpp>\n",
    "src/run/runtime.cpp": "#include <grosr/run/runtime.hpp>\nstd::atomic_ref<int> host_only(i);\n",
    "include/grosr/run/detail/loop.hpp": '#include "grosr/simt/lanes.hpp"\n',
    "include/grosr/run/detail/loop.inl": '#include "grosr/run/detail/loop.hpp"\n',
    "src/run/private.hpp": '#include "grosr/run/detail/loop.hpp"\n',
    "include/grosr/graph/bfs.hpp": "#include <grosr/run/runtime.hpp>\n",
    "tools/grosr/main.cpp": '#include <grosr/grosr.hpp>\n#include <grosr/run/runtime.hpp>\n#include "cli/text.hpp"\n',
    "kit/cli/text.hpp": "#include <string>\n",
    "bench/measure/row.hpp": '#include "cli/text.hpp"\n',
    "apps/common/net/socket.hpp": '#include "measure/row.hpp"\n',
    "apps/words/words.hpp": '#include "net/socket.hpp"\n#include "detail/mine.hpp"\n',
    "apps/words/detail/mine.hpp": "\n",
    "include/grosr/graph/detail/steps.hpp": "\n",
    "bench/baselines/graph/launched.cpp": '#include "grosr/graph/detail/steps.hpp"\n',
}
# (file, text, what the one finding must say)
BAD_FILES = [
    ("include/grosr/simt/up.hpp", "\n#include <grosr/queue/ring.hpp>\n", "up.hpp:2: simt (floor 0) includes from queue"),
    ("include/grosr/queue/up.hpp", '#include "grosr/run/runtime.hpp"\n', "queue (floor 1) includes from run (floor 2)"),
    ("include/grosr/queue/relative.hpp", '#include "../run/runtime.hpp"\n', "queue (floor 1) includes from run"),
    ("include/grosr/sys/sibling.hpp", "#include <grosr/run/runtime.hpp>\n", "its neighbour on floor 2"),
    ("src/alloc/sibling.cpp", "# include <grosr/queue/ring.hpp>\n", "its neighbour on floor 1"),
    ("include/grosr/queue/house.hpp", "#include <grosr/grosr.hpp>\n", "includes the whole house"),
    ("include/grosr/queue/unknown.hpp", "#include <grosr/attic/x.hpp>\n", "'attic', which is no room"),
    ("src/attic/x.cpp", "\n", "'attic' is no room"),
    ("include/grosr/queue/target.hpp", "#ifdef __CUDA_ARCH__\n#endif\n", "'__CUDA_ARCH__' outside simt/"),
    ("src/run/index.cpp", "/* one\n two */ int i = threadIdx.x;\n", "index.cpp:2: 'threadIdx' outside simt/"),
    ("tools/grosr/block.cpp", "int i = blockIdx.x;\n", "'blockIdx' outside simt/"),
    ("apps/words/shared.cpp", "__shared__ int i;\n", "'__shared__' outside simt/"),
    ("bench/sync.cpp", "void f() { __syncthreads(); }\n", "'__syncthreads' outside simt/"),
    ("examples/add.cpp", "void f(int* p) { atomicAdd(p, 1); }\n", "'atomicAdd' outside simt/"),
    ("include/grosr/run/cas.hpp", "int i = atomicCAS_system(p, 0, 1);\n", "'atomicCAS_system' outside simt/"),
    ("include/grosr/flow/insides.hpp", '#include "grosr/run/detail/loop.hpp"\n', "flow includes what is run's own"),
    ("tools/grosr/insides.cpp", "#include <grosr/run/detail/loop.hpp>\n", "tools includes what is run's own"),
    ("src/flow/insides.cpp", '#include "run/private.hpp"\n', "flow includes what is run's own"),
    ("include/grosr/net/beside.hpp", '#include "grosr/flow/element_graph.hpp"\n', "its neighbour on floor 3"),
    ("include/grosr/flow/above.hpp", "#include <grosr/graph/bfs.hpp>\n", "flow (floor 3) includes from graph (floor 4)"),
    ("bench/baselines/graph/other.cpp", '#include "grosr/run/detail/loop.hpp"\n', "bench includes what is run's own"),
    ("bench/cases/bfs.cpp", '#include "grosr/graph/detail/steps.hpp"\n', "bench includes what is graph's own"),
    ("apps/words/main.cpp", '#include "grosr/main.hpp"\n#include "../../tools/grosr/main.cpp"\n', "apps includes from tools"),
    ("tools/grosr/apps.cpp", '#include "../../apps/words/words.hpp"\n', "tools includes from apps"),
    ("tools/grosr/net.cpp", '#include "net/socket.hpp"\n', "tools includes from apps"),
    ("kit/cli/up.cpp", '#include "measure/row.hpp"\n', "kit includes from bench"),
    ("include/grosr/run/on_gpu.hpp", "#if GROSR_ON_GPU\n#endif\n", "'GROSR_ON_GPU' outside simt/"),
    ("include/grosr/run/ref.hpp", "std::atomic_ref<int> a(i);\n", "'std::atomic_ref' outside simt/"),
    ("include/grosr/run/cuda_ref.hpp", "cuda::atomic_ref<int> a(i);\n", "'cuda::atomic_ref' outside simt/"),
]

# ({file: text}, what the one finding must say)
BAD_TREES = [
    ({f"include/grosr/queue/f{i}.hpp": f'#include "grosr/queue/f{i + 1}.hpp"\n' if i < 9 else "\n" for i in range(10)},
     "f0.hpp:1: stands on floor 10 of queue/"),
    ({f"include/grosr/queue/f{i}.hpp": f'#include "f{i + 1}.hpp"\n' if i < 9 else "\n" for i in range(10)},
     "f0.hpp:1: stands on floor 10 of queue/"),
    ({"include/grosr/run/a.hpp": '#include "grosr/run/b.hpp"\n', "include/grosr/run/b.hpp": "#include <grosr/run/a.hpp>\n"},
     "grosr/run/a.hpp -> grosr/run/b.hpp -> grosr/run/a.hpp"),
    ({"include/grosr/run/long.hpp": "\n" * 4000}, "public headers have"),
]


def self_test():
    failures = 0

    def findings_in(extra):
        with tempfile.TemporaryDirectory(prefix="grosr-floors-") as folder:
            for name, text in {**GOOD_TREE, **extra}.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return check(Path(folder))[0]

    clean = findings_in({})
    if clean:
        failures += 1
        print(f"self-test: the good tree must be clean; found {clean}")
    for files, expected in [({name: text}, expected) for name, text, expected in BAD_FILES] + BAD_TREES:
        found = findings_in(files)
        if len(found) != 1 or expected not in found[0]:
            failures += 1
            print(f"self-test: {', '.join(files)} must give one finding with \"{expected}\"; found {found}")
    print(f"floors self-test: {len(BAD_FILES) + len(BAD_TREES) + 1} trees, {failures} wrong")
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) > 1 or (arguments and arguments[0].startswith("-")):
        print(f"check_floors.py: did not understand {' '.join(arguments)}; usage: check_floors.py [ROOT | --self-test]",
              file=sys.stderr)
        return 2
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[2]
    if not (root / "include" / "grosr").is_dir():
        print(f"check_floors.py: {root} has no include/grosr; name the root of a GROSR repository", file=sys.stderr)
        return 2
    findings, files = check(root)
    for finding in findings:
        print(finding)
    print(f"floors: {files} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
