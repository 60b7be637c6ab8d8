"""tools/results_table.py makes tables of a line for each target, and of a line for each row with chosen columns."""

import json
import pathlib
import sys
import tempfile

from cli import check, finish

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import results_table  # noqa: E402

HEAD = {"device_description": "a device", "date": "2026-01-01T00:00:00Z", "driver": "1", "compiler": "c", "commit": "abc"}


def row(name, **values):
    return {"name": name, "valid": True, **values}


def lines(rows, shown, bench="policies"):
    with tempfile.TemporaryDirectory(prefix="grosr-table-") as name:
        folder = pathlib.Path(name)
        (folder / "run.json").write_text(json.dumps({**HEAD, "bench": bench, "rows": rows}))
        made = results_table.table(folder, lambda which: which == bench, shown).split("\n")
    check(made[0].startswith("Recorded on a device (2026-01-01, driver 1, c, commit abc)"), made[0])
    return made[2:]


shares = row("priority: four", priority_1_percent=25.0, priority_3_percent=75.0, priority_1_graphs_per_s=7.0, r2_percent=99.5,
             targets=[{"key": "r2_percent", "at_least": 98}])
second = row("data_aware: two", speedup_x=1.834, moves_percent=0.5, targets=[{"key": "speedup_x", "at_least": 1.9}],
             baselines=[{"what": "one device", "median_us": 2000.0, "ratio": 2}])
got = lines([shares, second, row("fifo: two", speedup_x=0.9, moves_percent=45.25)], True)
expected = ["| bench | measured | reached | target | beside it, same run |", "|---|---|---|---|---|",
            "| `policies` | priority: four | priority 1: 25.00 %; priority 3: 75.00 % |  |  |",
            "| `policies` | priority: four | shares on a line (r2) 99.50 % | at least 98.00 %: met |  |",
            "| `policies` | data_aware: two | inputs from the other device 0.50 % |  | one device: 2,000 us |",
            "| `policies` | data_aware: two | 1.83 times as fast | at least 1.9 times as fast: missed |  |",
            "| `policies` | fifo: two | 0.9 times as fast; inputs from the other device 45.25 % |  |  |"]
check(got == expected, "\n".join(got))
check(results_table.amount("gb_per_s", 1424.02) == "1,424 GB/s", "thousands of GB/s")
got = lines([shares, row("no target", p50_us=1.0)], False)
check(len(got) == 3, "a row without a target is shown")

columns = [("frames", "frames_per_s"), ("GPU busy", "gpu_percent"), ("threads", "threads"), ("dropped", "dropped_frames")]
got = lines([row("flow, unconstrained", frames_per_s=1250.0, gpu_percent=None, threads=7, dropped_frames=1234.0),
             {**row("host, unconstrained", frames_per_s=99.9, threads=17.0, dropped_frames=0.0), "valid": False}],
            columns, "gesture")
expected = ["| measured | frames | GPU busy | threads | dropped |", "|---|---|---|---|---|",
            "| flow, unconstrained | 1.25 k/s | ? | 7 | 1,234 |", "| host, unconstrained (invalid) | 99.9 /s |  | 17 | 0 |"]
check(got == expected, "\n".join(got))

finish("results table")
