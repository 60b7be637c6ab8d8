"""mergesort, cilksort, strassen: results are right at every size, and what cannot be done is said in one line."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from cli import check, finish, run, run_json  # noqa: E402

APPS = os.environ.get("GROSR_APPS", "build/host/apps")
FULL = float(os.environ.get("GROSR_TEST_SCALE", "1")) >= 1
ONCE = ["--device", "host:0", "--repeat", "1", "--check", "on"]


def correct(name, *arguments):
    code, document, out, err = run_json(*arguments, *ONCE, program=os.path.join(APPS, name))
    what = f"{name} {' '.join(arguments)}"
    check(code == 0 and err == "", f"{what}: exit code {code}: {out}{err}")
    rows = (document or {}).get("rows", [])
    if check(len(rows) == 1 and rows[0]["valid"], f"{what}: not one valid row: {document}"):
        return rows[0]
    return {}


def refused(name, arguments, *named):
    code, out, err = run(*arguments, program=os.path.join(APPS, name))
    check(code == 2, f"{name} {arguments}: exit code {code}, not 2: {out}{err}")
    check(err.count("\n") == 1 and err.startswith(name + ": "), f"{name} {arguments}: not one line: {err!r}")
    check(all(n in err for n in named), f"{name} {arguments}: does not say {named}: {err!r}")


for sort in ("mergesort", "cilksort"):
    # A tile holds 4096 keys: below, at and above one, two, and more of them.
    for count in (0, 1, 2, 3, 33, 4095, 4096, 4097, 8192, 8193, 20481) + ((70001, 150000) if FULL else ()):
        correct(sort, str(count))
    for distribution in ("equal", "sorted", "reverse"):
        for count in (1, 5000, 20000):
            correct(sort, str(count), "--distribution", distribution)
    correct(sort, "30k", "--memory", "10M")
    here = ["--device", "host:0"]
    refused(sort, ["x", *here], '"x"', "whole number")
    refused(sort, ["-1", *here], "-1")
    refused(sort, ["5G", *here], "5G")
    refused(sort, ["10", "11", *here], "11")
    refused(sort, ["10", "--memory", "5", *here], "--memory", '"5"')
    refused(sort, ["10", "--memory", "1M", *here], "memory_limit", "at least")
    refused(sort, ["10", "--repeat", "0", *here], "--repeat")
    refused(sort, ["10", "--check", "maybe", *here], "maybe")
    refused(sort, ["10", "--distribution", "odd", *here], "odd")
    refused(sort, ["10", "--device", "moon"], "moon")
    refused(sort, ["10", "--json", "/nowhere/out.json", *here], "/nowhere")
    code, out, err = run("--help", program=os.path.join(APPS, sort))
    check(code == 0 and "Examples" in out and "--distribution" in out, f"{sort} --help: {out}{err}")

correct("strassen", "64")
correct("strassen", "128")
correct("strassen", "128", "--plain")
correct("strassen", "256", "--leaf", "100")
plain = correct("strassen", "256", "--plain")
deep = correct("strassen", "256", "--leaf", "64")
check(plain and plain["arena_bytes"] == 0, f"plain takes memory: {plain}")
check(deep and deep["arena_bytes"] == 4 * (17 * 128**2 + 7 * 17 * 64**2), f"another arena: {deep}")
correct("strassen", "128", "--memory", "10M")
for bad, named in ((["0"], "N"), (["1"], "64"), (["65"], "power of two"), (["192"], "power of two"),
                   (["1M"], "32768"), (["128", "--leaf", "8"], "--leaf"),
                   (["128", "--plain", "--leaf", "64"], "--plain"), (["32768", "--leaf", "64"], "larger leaf")):
    refused("strassen", [*bad, "--device", "host:0"], named)

finish("recursion")
