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


code, document, out, err = run_json("--device", "host:0", "--side", "5", "--rounds", "3", program=COMPOSITION)
check(code == 0 and document is not None, f"all works: exit code {code}: {out} {err}")
rows = document["rows"] if document else []
check(len(rows) == 6, f"{len(rows)} works, not 3 in 2 shapes")
for row in rows:
    check(row["valid"] and all(row[f"{way}_us"] > 0 for way in WAYS), f"{row}")
    inputs, outputs = (64, 1) if "tree" in row["name"] else (66, 6)
    check(row["copied_bytes"] == (inputs + outputs) * 100, f"the graph copies {row['copied_bytes']} bytes: {row['name']}")

code, out, err = composition("madd", "--shape", "tree", "--side", "3", "--rounds", "1", "--way", "by-hand", "--way", "flow")
check(code == 0 and "madd, tree" in out and "modular" not in out, f"two ways: {code} {out} {err}")
for arguments, said in (
    (["--side", "0"], "--side"),
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
