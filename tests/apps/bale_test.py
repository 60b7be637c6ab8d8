"""bale: what each program finds is right on any number of ranks, messages are sent where there are several, bad input is one line."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from apps import app, check, finish, run  # noqa: E402
from cli import run_json  # noqa: E402

PROGRAM = app("bale")
OPERATIONS = {"histogram": "updates", "gather": "gathers", "permutation": "darts", "transpose": "nonzeros", "sort": "nonzeros",
              "triangles": "wedges"}


def rows_of(*arguments):
    """The rows of a run, which are right."""
    code, document, out, err = run_json("--device", "host:0", "--link", "8K", *arguments, program=PROGRAM)
    if not check(code == 0 and document is not None, f"{arguments}: exit code {code}: {out} {err}"):
        return []
    for row in document["rows"]:
        check(row["valid"], f"{arguments}: {row}")
    return document["rows"]


for ranks, size in ((1, 3000), (2, 500), (5, 40)):
    rows = rows_of("--ranks", str(ranks), "--size", str(size))
    check(len(rows) == len(OPERATIONS), f"{ranks} ranks: {len(rows)} rows")
    for row, operations in zip(rows, OPERATIONS.values()):
        check(row[f"{operations}_per_s"] > 0 and row[operations] > 0 and (row["operation_words"] > 0) == (ranks > 1), f"{ranks} ranks: {row}")
        check(row["baselines"], f"no baseline: {row}")

# A matrix of a diagonal alone, rows that are nearly full, fewer rows than ranks; what was found before is forgotten.
rows_of("transpose", "sort", "--ranks", "2", "--size", "100", "--nonzeros", "1")
rows_of("transpose", "sort", "--ranks", "2", "--size", "30", "--nonzeros", "25", "--seed", "2")
rows_of("--ranks", "3", "--size", "2")
rows = rows_of("permutation", "triangles", "--ranks", "2", "--size", "200", "--repeat", "2", "--seed", "7")
check([row["name"] for row in rows] == ["random permutation, 2 ranks", "triangle count, 2 ranks"], f"{rows}")

for arguments, said in (
    (["--ranks", "0"], "--ranks"),
    (["--ranks", "65"], "--ranks"),
    (["--size", "1"], "--size"),
    (["--size", "1G"], "--size"),
    (["--nonzeros", "0"], "--nonzeros"),
    (["sort", "--size", "10M", "--nonzeros", "1000"], "--nonzeros"),
    (["--link", "4K"], "--link"),
    (["--repeat", "none"], "--repeat"),
    (["quicksort"], "quicksort"),
    (["--device", "cuda:99"], "cuda:99"),
):
    code, out, err = run(*arguments, program=PROGRAM)
    check(code == 2 and err.count("\n") == 1 and said in err and err.startswith("bale: "), f"{arguments}: {code} {out} {err}")
code, out, err = run("--help", program=PROGRAM)
check(code == 0 and "Examples" in out, f"--help: {code} {err}")

finish("bale")
