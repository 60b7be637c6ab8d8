"""kmeans: all ways find the centroids that one thread finds, messages are sent where there are several ranks, bad input is one line."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from apps import app, check, finish, run  # noqa: E402
from cli import run_json  # noqa: E402

PROGRAM = app("kmeans")
WAYS = ["kernel", "coprocessor", "coprocessor_large", "direct", "messages"]


def row_of(*arguments):
    """The row of a run, which is right."""
    code, document, out, err = run_json("--device", "host:0", "--link", "8K", *arguments, program=PROGRAM)
    if not check(code == 0 and document is not None, f"{arguments}: exit code {code}: {out} {err}"):
        return {}
    row = document["rows"][0]
    check(row["valid"] and all(row[f"{way}_updates_per_s"] > 0 for way in WAYS), f"{arguments}: {row}")
    return row


for ranks in (1, 2, 5):
    row = row_of("--ranks", str(ranks), "--points", "700", "--iterations", "2", "--clusters", "10")
    # All updates but those of a rank's own clusters take a word, and centroids and chunks that are not full some more.
    least = (ranks - 1) / ranks * 0.9
    check(row["words_an_update"] >= least if ranks > 1 else row["words_an_update"] == 0, f"{ranks} ranks: {row}")
# A buffer of the coprocessor has room for few points: the host exchanges buffers several times, and larger ones less often.
row = row_of("--ranks", "3", "--points", "400", "--iterations", "2", "--buffer", "1K", "--dimensions", "5")
check(row["coprocessor_exchanges"] > 5 * row["coprocessor_large_exchanges"] / 2 >= 2.5, f"{row}")
row_of("--ranks", "4", "--points", "60", "--iterations", "2", "--buffer", "80")
# Ranks without points, ranks without clusters, clusters without points, one cluster, one dimension.
row_of("--ranks", "7", "--points", "5", "--clusters", "5", "--dimensions", "1")
row_of("--ranks", "3", "--points", "90", "--clusters", "40", "--dimensions", "9", "--repeat", "2", "--seed", "7")
row_of("--ranks", "4", "--points", "100", "--clusters", "1", "--per-task", "7")

code, out, err = run("--device", "host:0", "--points", "100", "--way", "messages", program=PROGRAM)
check(code == 0 and "messages" in out and "kernel" not in out, f"one way: {code} {out} {err}")
for arguments, said in (
    (["--ranks", "0"], "--ranks"),
    (["--ranks", "65"], "--ranks"),
    (["--link", "4K"], "--link"),
    (["--points", "7"], "--points"),
    (["--clusters", "0"], "--clusters"),
    (["--dimensions", "2000"], "--dimensions"),
    (["--iterations", "none"], "--iterations"),
    (["--dimensions", "4", "--buffer", "79"], "--buffer"),
    (["--buffer", "1G"], "--buffer"),
    (["--way", "magic"], "magic"),
    (["--device", "cuda:99"], "cuda:99"),
):
    code, out, err = run(*arguments, program=PROGRAM)
    check(code == 2 and err.count("\n") == 1 and said in err and err.startswith("kmeans: "), f"{arguments}: {code} {out} {err}")
code, out, err = run("--help", program=PROGRAM)
check(code == 0 and "Examples" in out, f"--help: {code} {err}")

finish("kmeans")
