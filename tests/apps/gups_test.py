"""gups: all ways leave the table as it was, messages are sent where there are several ranks, bad input is one line."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from cli import check, finish, run, run_json  # noqa: E402

GUPS = os.path.join(os.environ.get("GROSR_APPS", "build/host/apps"), "gups")
WAYS = ["kernel", "coprocessor", "coprocessor_large", "direct", "messages"]

for ranks in (1, 2, 5):
    code, document, out, err = run_json("--device", "host:0", "--ranks", str(ranks), "--table", "64K", "--updates", "4000",
                                        "--link", "8K", "--buffer", "4K", program=GUPS)
    check(code == 0 and document is not None, f"{ranks} ranks: exit code {code}: {out} {err}")
    row = document["rows"][0] if document else {}
    check(row.get("valid", False) and all(row.get(f"{way}_updates_per_s", 0) > 0 for way in WAYS), f"{row}")
    # All updates but those of a rank's own part take a word, and chunks that are not full some more.
    least = (ranks - 1) / ranks * 0.9
    check(row["words_an_update"] >= least if ranks > 1 else row["words_an_update"] == 0, f"{ranks} ranks: {row}")
    # A buffer has room for 256 updates: the host exchanges it several times, where there is another rank.
    check((row["coprocessor_exchanges"] > 1.9 * row["coprocessor_large_exchanges"]) == (ranks > 1), f"{ranks} ranks: {row}")

code, out, err = run("--device", "host:0", "--updates", "500", "--way", "messages", program=GUPS)
check(code == 0 and "messages" in out and "kernel" not in out, f"one way: {code} {out} {err}")
for arguments, said in (
    (["--ranks", "0"], "--ranks"),
    (["--ranks", "65"], "--ranks"),
    (["--table", "100000"], "--table"),
    (["--link", "4K"], "--link"),
    (["--buffer", "8"], "--buffer"),
    (["--updates", "none"], "--updates"),
    (["--way", "magic"], "magic"),
    (["--mpi", "--device", "host:0", "--way", "kernel"], "--way"),
    (["--device", "cuda:99"], "cuda:99"),
):
    code, out, err = run(*arguments, program=GUPS)
    check(code == 2 and err.count("\n") == 1 and said in err and err.startswith("gups: "), f"{arguments}: {code} {out} {err}")
code, out, err = run("--help", program=GUPS)
check(code == 0 and "Examples" in out, f"--help: {code} {err}")

finish("gups")
