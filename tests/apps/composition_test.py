"""composition: all ways compute the same, a graph copies no more than it must, bad input is one line."""

import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from cli import check, finish, run, run_json  # noqa: E402

COMPOSITION = os.path.join(os.environ.get("GROSR_APPS", "build/host/apps"), "composition")
WAYS = ["modular-1", "modular", "by-hand", "best-by-hand", "flow"]


def composition(*arguments):
    return run(*arguments, "--device", "host:0", program=COMPOSITION)


# Elements that a graph copies: each input once, and each output.
EXPECTED = {
    **{f"{operation}, tree of 6 levels, side 5": (64 + 1) * 25 for operation in ("gemm", "madd", "mcopy")},
    **{f"{operation}, 6 columns of 10, side 5": (66 + 6) * 25 for operation in ("gemm", "madd", "mcopy")},
    "bitonic, 4096 elements": 2 * 4096,
    **{f"fdtd, {steps} time steps, side 5": 2 * (25 + 30 + 30) for steps in (5, 10)},
    **{f"pca, {iterations} iterations, side 5": 25 + 3 * (5 + 5) for iterations in (10, 54)},
    "group-by, 4096 records, 64 groups": 2 * 4096 + 2 * 64,
}

# More rounds than sets of buffers where that is quick.
checked = []
for rounds, works in (("4", ["gemm", "madd", "mcopy", "fdtd"]), ("1", ["bitonic", "pca", "group-by"])):
    code, document, out, err = run_json(*works, "--device", "host:0", "--side", "5", "--rounds", rounds, program=COMPOSITION)
    check(code == 0 and document is not None, f"{works}: exit code {code}: {out} {err}")
    for row in document["rows"] if document else []:
        checked.append(row["name"])
        check(row["valid"] and all(row[f"{way}_us"] > 0 for way in WAYS), f"{row}")
        least = 4 * EXPECTED.get(row["name"], 0)
        check(row["copied_bytes"] == least, f"the graph copies {row['copied_bytes']} bytes, not {least}: {row['name']}")
check(sorted(checked) == sorted(EXPECTED), f"works: {checked}")

# Several blocks of threads.
code, out, err = composition("fdtd", "pca", "--side", "70", "--rounds", "1", "--way", "by-hand")
check(code == 0 and out.count("side 70") == 4 and "bitonic" not in out, f"side 70: {code} {out} {err}")
code, out, err = composition("madd", "--shape", "tree", "--side", "3", "--rounds", "1", "--way", "by-hand", "--way", "flow")
check(code == 0 and "madd, tree" in out and "modular" not in out, f"two ways: {code} {out} {err}")
for arguments, said in (
    (["--side", "0"], "--side"),
    (["pca", "--side", "3"], "--side of pca"),
    (["bitonic", "--side", "wide"], "--side"),
    (["--rounds", "none"], "--rounds"),
    (["sum"], "sum"),
    (["--shape", "ring"], "ring"),
    (["--way", "magic"], "magic"),
    (["--device", "cuda:99"], "cuda:99"),
):
    code, out, err = run(*arguments, program=COMPOSITION)
    check(code == 2 and err.count("\n") == 1 and said in err and err.startswith("composition: "), f"{arguments}: {code} {out} {err}")
code, out, err = composition("--help")
check(code == 0 and "Examples" in out, f"--help: {code} {err}")

finish("composition")
