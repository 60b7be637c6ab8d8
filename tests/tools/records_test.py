"""Records without means, deviations and machine, made before they had them, are read beside those that have them."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from cli import check, finish

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench/results"
TURNS = "h100-2026-11-25"
HEAD = {"build_flags": "-O3", "host": {"cpu": "a processor", "processors": 16, "system": "Linux", "kernel": "Linux 6.1"},
        "wall_seconds": 2.5, "cpu_seconds": 1.25}


def run(script, *arguments, cwd):
    done = subprocess.run([sys.executable, str(ROOT / "tools" / script), *map(str, arguments)],
                          capture_output=True, text=True, timeout=120, cwd=cwd)
    check(done.returncode == 0, f"{script} {arguments}: exit code {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def renew(folder):
    """Adds to all records below what newer ones have and they have not."""
    for file in folder.rglob("*.json"):
        document = json.loads(file.read_text())
        if not isinstance(document, dict) or "rows" not in document:
            continue
        for row in document["rows"]:
            for key, value in {"mean_us": 3.5, "stddev_us": 0.25, "cpu_cores": 0.5}.items():
                row.setdefault(key, value)
        file.write_text(json.dumps({**HEAD, **document}))


with tempfile.TemporaryDirectory(prefix="grosr-records-") as name:
    folder = pathlib.Path(name)
    shutil.copytree(RESULTS, folder / "bench/results")
    shutil.copytree(ROOT / "docs", folder / "docs")
    before, after = f"bench/results/{TURNS}-before", f"bench/results/{TURNS}-after"
    figures = {}
    for which in ("old", "mixed", "new"):
        if which == "mixed":
            renew(folder / after)
        if which == "new":
            renew(folder / "bench/results")
        figures[which] = run("compare_records.py", before, after, cwd=folder)
        run("results_table.py", "--check", cwd=folder)
        out = folder / which
        run("plot.py", "--results", "bench/results/h200-2026-11-23", "--out", out, cwd=folder)
        figures[which] += "".join((out / f).read_text() for f in sorted(os.listdir(out)))
    check(figures["mixed"] == figures["old"] == figures["new"], "newer fields change tables or figures")

finish("records")
