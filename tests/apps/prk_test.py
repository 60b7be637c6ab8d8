"""prk: all ways pass PRK's verification, a graph starts one node and copies its blocks once, bad input is one line."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from cli import check, finish, run, run_json  # noqa: E402

PRK = os.path.join(os.environ.get("GROSR_APPS", "build/host/apps"), "prk")
WAYS = ["stream", "graph", "flow"]

# For each kernel: the unit of its rate, what an iteration counts for, and the elements that flow.
KERNELS = {
    "p2p": ("flop_per_s", lambda n: 2 * (n - 1) ** 2, lambda n: 1),
    "stencil": ("flop_per_s", lambda n: 19 * (n - 4) ** 2, lambda n: 2 * n * n),
    "transpose": ("gb_per_s", lambda n: 16e-9 * n * n, lambda n: 2 * n * n),
    "dgemm": ("flop_per_s", lambda n: 2 * n**3, lambda n: 3 * n * n),
}


def prk(*arguments):
    return run(*arguments, "--device", "host:0", program=PRK)


def measure(kernels, size, iterations):
    code, document, out, err = run_json(*kernels, "--device", "host:0", "--size", str(size), "--iterations", str(iterations),
                                        program=PRK)
    check(code == 0 and document is not None, f"{kernels}, {size}: exit code {code}: {out} {err}")
    rows = document["rows"] if document else []
    check([row["name"].split(",")[0] for row in rows] == kernels, f"{kernels}, {size}: {rows}")
    for kernel, row in zip(kernels, rows):
        unit, work, elements = KERNELS[kernel]
        check(row["valid"] and not row.get("notes"), f"{row}")
        for way in WAYS:
            per_s = row[f"{way}_iterations_per_s"]
            expected = per_s * work(size)
            check(per_s > 0 and abs(row[f"{way}_{unit}"] - expected) <= 1e-6 * expected, f"rate of {way}: {row}")
        check(row["started_nodes"] == 1, f"a round starts {row['started_nodes']} nodes: {row['name']}")
        check(row["copied_bytes"] == 8 * elements(size), f"the graph copies {row['copied_bytes']} bytes: {row['name']}")


# One tile, tiles of one element, sizes that tiles divide and that they do not; rounds of one iteration and of several.
for size, iterations in ((2, 1), (3, 17), (50, 4)):
    measure(["p2p"], size, iterations)
for size, iterations in ((5, 17), (33, 2), (50, 4)):
    measure(["stencil"], size, iterations)
for size, iterations in ((1, 3), (32, 17), (70, 6)):
    measure(["transpose"], size, iterations)
for size, iterations in ((2, 17), (16, 1), (70, 2)):
    measure(["dgemm"], size, iterations)
measure(["p2p", "stencil", "transpose", "dgemm"], 9, 2)

code, out, err = prk("p2p", "--size", "9", "--iterations", "1", "--way", "stream", "--way", "flow")
check(code == 0 and "flow" in out and "stencil" not in out and "graph by hand" not in out, f"two ways: {code} {out} {err}")
code, out, err = prk("dgemm", "--size", "3", "--way", "graph")
check(code == 0 and "copied" not in out and "baseline" not in out, f"one way by hand: {code} {out} {err}")
for arguments, said in (
    (["p2p", "--size", "1"], "--size of p2p"),
    (["p2p", "--size", "2050"], "--size of p2p"),
    (["stencil", "--size", "4"], "--size of stencil"),
    (["transpose", "--size", "0"], "--size of transpose"),
    (["dgemm", "--size", "1"], "--size of dgemm"),
    (["--size", "wide"], "--size"),
    (["--iterations", "0"], "--iterations"),
    (["--iterations", "none"], "--iterations"),
    (["nstream"], "nstream"),
    (["--way", "magic"], "magic"),
    (["--device", "cuda:99"], "cuda:99"),
):
    code, out, err = run(*arguments, program=PRK)
    check(code == 2 and err.count("\n") == 1 and said in err and err.startswith("prk: "), f"{arguments}: {code} {out} {err}")
code, out, err = prk("--help")
check(code == 0 and "Examples" in out, f"--help: {code} {err}")

finish("prk")
