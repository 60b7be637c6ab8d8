#!/usr/bin/env python3
"""Checks the floors rule: code includes only from lower floors, and only simt/ touches raw CUDA.

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
    "flow": 3, "place": 3, "net": 3,
    "apps": 4, "bench": 4, "tools": 4, "examples": 4, "python": 4,
}
PROGRAMS = [room for room, floor in FLOORS.items() if floor == 4]
EVERYWHERE = {"version.hpp"}  # headers in include/grosr/ itself that any room may include
SUFFIXES = {".hpp", ".cpp", ".h", ".cc", ".cu", ".cuh", ".inc", ".inl", ".ipp"}

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
# (pattern, only in public headers?, what to use instead)
FORBIDDEN = [
    (re.compile(r"\b__CUDA_ARCH__\b"), False, "a function of simt/ that differs by backend"),
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
    for candidate in (near, root / "src" / target, root / target):
        if candidate.is_file():
            resolved = candidate.resolve()
            if resolved.is_relative_to(root):
                relative = resolved.relative_to(root)
                return None if relative.parts[-1] in EVERYWHERE else room_of(relative)
    return None


def why_not(room, other):
    """Why `room` may not include from `other`, or None if it may."""
    if other not in FLOORS and other != "":
        return f"includes from '{other}', which is no room; rooms are {', '.join(FLOORS)}"
    if room == other or room not in FLOORS:
        return None  # its own room, or the top of include/grosr, which may show the whole house
    if other == "":
        return None if FLOORS[room] == 4 else "includes the whole house; include the headers of single rooms"
    if FLOORS[other] > FLOORS[room]:
        return (f"{room} (floor {FLOORS[room]}) includes from {other} (floor {FLOORS[other]}), which is above; "
                f"move what is shared down, or pass it in")
    if FLOORS[other] == FLOORS[room]:
        return (f"{room} includes from {other}, its neighbour on floor {FLOORS[room]}; "
                f"move what is shared to a lower floor")
    return None


def check(root):
    root = root.resolve()
    findings, files = [], []
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
            reason = why_not(room, other) if other is not None and room is not None else None
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
    "tools/grosr/main.cpp": "#include <grosr/grosr.hpp>\n#include <grosr/run/runtime.hpp>\n",
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
    ("include/grosr/run/ref.hpp", "std::atomic_ref<int> a(i);\n", "'std::atomic_ref' outside simt/"),
    ("include/grosr/run/cuda_ref.hpp", "cuda::atomic_ref<int> a(i);\n", "'cuda::atomic_ref' outside simt/"),
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
    for name, text, expected in BAD_FILES:
        found = findings_in({name: text})
        if len(found) != 1 or expected not in found[0]:
            failures += 1
            print(f"self-test: {name} must give one finding with \"{expected}\"; found {found}")
    print(f"floors self-test: {len(BAD_FILES) + 1} trees, {failures} wrong")
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
