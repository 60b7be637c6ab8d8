"""distributed-graph: results are right on any number of ranks, edges between ranks are messages, bad input is one line."""

import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from apps import app, check, finish, run, write  # noqa: E402
from cli import run_json  # noqa: E402

PROGRAM = app("distributed-graph")
ALL = ["PageRank", "shortest paths from one vertex", "colouring"]


def rows_of(ranks, *arguments, expected=ALL):
    """The rows, all of them right, by the names of algorithms."""
    code, document, out, err = run_json("--device", "host:0", "--ranks", str(ranks), "--link", "8K", "--tolerance", "0.1",
                                        *arguments, program=PROGRAM)
    what = f"{ranks} ranks, {arguments}"
    if not check(code == 0 and document is not None, f"{what}: exit code {code}: {out} {err}"):
        return {}
    rows = {row["name"].rsplit(",", 1)[0]: row for row in document["rows"]}
    check(list(rows) == expected, f"{what}: {list(rows)}")
    for name, row in rows.items():
        check(row["valid"] and row["edges_per_s"] > 0 and row["rounds"] > 0, f"{what}: {row}")
        check((row["edge_words"] > 0) == (ranks > 1), f"{what}: {name}: {row['edge_words']} words an edge")
    return rows


# All algorithms; among the vertices are some with more edges than a lane goes along, and some with none.
for ranks in (1, 2, 4):
    rows = rows_of(ranks, "--graph", "kronecker:7")
    check(rows["colouring"]["colours"] > 5, f"{rows}")
with tempfile.TemporaryDirectory() as folder:
    # Directed: a vertex without edges out, one that is not reached, and fewer vertices than ranks.
    small = os.path.join(folder, "small.mtx")
    write(small, "%%MatrixMarket matrix coordinate real general\n"
                 "6 6 6\n1 2 1\n2 3 1\n3 4 0.5\n1 4 4\n6 1 1\n4 5 1\n")
    rows = rows_of(8, "--graph", small)
    check(rows["shortest paths from one vertex"]["reached_vertices"] == 5 and rows["colouring"]["colours"] == 2, f"{rows}")
    # A vertex with more edges than one warp goes along.
    star = os.path.join(folder, "star.txt")
    write(star, "".join(f"0 {i}\n" for i in range(1, 1500)))
    rows = rows_of(2, "--graph", star, "--algorithm", "sssp", "--algorithm", "colouring", "--undirected", expected=ALL[1:])
    check(rows["colouring"]["colours"] == 2, f"{rows}")
    empty = os.path.join(folder, "empty.mtx")
    write(empty, "%%MatrixMarket matrix coordinate pattern general\n0 0 0\n")
    code, out, err = run("--graph", empty, program=PROGRAM)
    check(code == 2 and err.count("\n") == 1 and "no vertices" in err, f"empty: {code} {err}")

# Paths go on in steps: what waits is taken up again, and does not matter for the result.
steps = [rows_of(3, "--graph", "grid:12x13", "--algorithm", "sssp", "--delta", delta, expected=ALL[1:2])[ALL[1]]["rounds"]
         for delta in ("0.4", "1000")]
check(steps[0] > 20 and steps[1] >= 3, f"rounds: {steps}")
rows_of(8, "--graph", "chain:20", "--algorithm", "sssp", "--delta", "1000", expected=ALL[1:2])
rows_of(64, "--graph", "chain:70", "--algorithm", "colouring", expected=ALL[2:])

for arguments, said in (
    (["--ranks", "0"], "--ranks"),
    (["--ranks", "65"], "--ranks"),
    (["--link", "4K"], "--link"),
    (["--algorithm", "magic"], "magic"),
    (["--delta", "nan"], "--delta"),
    (["--tolerance", "0"], "--tolerance"),
    (["--source", "1M"], "--source"),
    (["--random-weights", "some"], "--random-weights"),
    (["--graph", "grid:4"], "grid:4"),
    (["--graph", "there-is-none.mtx"], "there-is-none.mtx"),
    (["--device", "cuda:99"], "cuda:99"),
):
    code, out, err = run(*arguments, program=PROGRAM)
    check(code == 2 and err.count("\n") == 1 and said in err and err.startswith("distributed-graph: "),
          f"{arguments}: {code} {out} {err}")
code, out, err = run("--help", program=PROGRAM)
check(code == 0 and "Examples" in out, f"--help: {code} {err}")

finish("distributed-graph")
