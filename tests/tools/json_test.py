"""Every bench runs on host:0, finds its own results right, and writes the document it promises."""

import json
import os

from cli import CLI, check, finish, run, run_json

# By bench: arguments that make it short, and how many rows it has at least.
SHORT = {
    "limits": (["--repeats", "30"], 14),
    "latency": (["--repeats", "10"], 6),
    "pairs": (["100", "--repeats", "3"], 3),
    "throughput": (["200", "3"], 3),
    "submit": (["500", "--repeats", "2"], 7),
    "baselines": (["200", "3"], 5),
    "bfs": (["--repeats", "2"], 3),
    "allocator": (["--repeats", "1"], 35),
    "allocator-stress": (["1"], 5),
    "spawn": (["6", "--repeats", "2"], 3),
    "chain": (["50", "--repeats", "1"], 4),
    "tail": (["100", "--repeats", "2"], 6),
    "await": (["64", "--repeats", "1"], 3),
    "streams": (["--repeats", "1"], 4),
    "syscalls": (["--repeats", "1"], 9),
    "syscalls-sweep": (["--repeats", "1"], 30),
    "forkjoin": (["--repeats", "1"], 10),
    "forkjoin-sweep": (["--repeats", "1"], 12),
    "channels": (["--repeats", "1"], 13),
    "dataflow": (["5", "--repeats", "2"], 4),
    "policies": (["6", "--repeats", "1"], 17),
    "messages": (["20", "--repeats", "1"], 30),
    "priority": (["20", "--repeats", "10"], 4),
    "soak": (["1"], 1),
    "pair-of-programs": (["6"], 1),
}
TICKS_US = 40_000
FIELDS = ["bench", "commit", "device", "device_description", "compiler", "build_type", "build_flags", "driver", "host", "date", "limits",
          "rows", "wall_seconds", "cpu_seconds"]


def check_document(name, document, rows):
    check(all(field in document for field in FIELDS), f"{name}: fields are {list(document)}")
    check(document["bench"] == name and document["device"] == "host:0", f"{name}: {document}")
    check(len(document["rows"]) >= rows, f"{name}: {len(document['rows'])} rows, not {rows}")
    host = document["host"]
    check(all(host[k] for k in ("cpu", "processors", "system", "kernel")), f"{name}: host is {host}")
    check(0 < document["cpu_seconds"] <= document["wall_seconds"] * (host["processors"] + 1), f"{name}: CPU of {document}")
    check("interrupted" not in document and "error" not in document, f"{name}: ended early")
    for row in document["rows"]:
        check(row["valid"] is True, f"{name}: {row}")
        # Linux adds up what threads on other processors used once a tick: of shorter rows it says nothing.
        short = row.get("repeats", 0) * row.get("max_us", TICKS_US) < TICKS_US
        check(0 <= row["cpu_cores"] and (short or row["cpu_cores"] <= host["processors"] + 1), f"{name}: CPU of {row}")
        if "samples" in row or ("repeats" in row and "median_us" in row):
            check(row["min_us"] <= row["mean_us"] * 1.000001 and row["mean_us"] <= row["max_us"] * 1.000001 and
                  row["stddev_us"] <= row["max_us"] - row["min_us"] + 1e-6, f"{name}: mean and deviation of {row}")
        numbers = {k: v for k, v in row.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}
        # By how much one is slower than another, or more for a priority, may be less than nothing.
        check(numbers and all(v >= 0 or k in ("median_percent", "slope_percent") for k, v in numbers.items()), f"{name}: values of {row}")
        for key in ("limits", "baselines"):
            check(all(c["what"] and c["ratio"] > 0 for c in row.get(key, [])), f"{name}: {key} of {row}")
        for target in row.get("targets", []):
            check(target["key"] in row and "met" not in target, f"{name}: targets of {row}")


listed = [line.split()[0] for line in run("bench", "--list")[1].splitlines() if line[2:3] != " "]
check(sorted(listed) == sorted(SHORT), f"this test knows {sorted(SHORT)}, the program has {sorted(listed)}")

for name, (arguments, rows) in SHORT.items():
    code, document, out, err = run_json("bench", name, *arguments, "--device", "host:0")
    if check(code == 0 and document is not None, f"{name}: exit code {code}: {out} {err}"):
        check_document(name, document, rows)
        for row in document["rows"]:
            check(row["name"] in out, f"{name}: the text does not name {row['name']!r}")

code, out, err = run("bench", "spawn", "3", "--repeats", "1", "--device", "host:0", "--json", "-")
check(code == 0 and json.loads(out)["bench"] == "spawn" and "16-byte" in err, "--json - mixes text and document")

code, document, out, err = run_json("bench", "chain", "--quick", "--device", "host:0")
check(code == 0 and document["quick"] is True, f"--quick: exit code {code}: {out} {err}")

# The names of the report that some benches repeat.
code, document, out, err = run_json("bench", "exp-b", "200", "3", "--device", "host:0")
check(code == 0 and document["bench"] == "throughput", f"exp-b: exit code {code}: {document} {err}")

# The fuzzer has the same command line.
FUZZ = os.path.join(os.path.dirname(CLI), "grosr-fuzz")
code, document, out, err = run_json("syscalls", "1", "1", "--device", "host:0", program=FUZZ)
if check(code == 0 and document is not None, f"grosr-fuzz: exit code {code}: {out} {err}"):
    check_document("syscalls", document, 1)

finish("json")
