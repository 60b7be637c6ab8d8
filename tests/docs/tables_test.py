"""Tables in the pages are those that the records give."""

import pathlib
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[2]
records = "bench/results/h100-2026-11-25"
CHECKS = [
    ["tools/results_table.py", "--check"],
    ["tools/compare_records.py", f"{records}-before", f"{records}-after", "--page", "docs/results.md", "--check"],
]
wrong = sum(subprocess.run([sys.executable, *check], cwd=root, check=False).returncode != 0 for check in CHECKS)
print(f"tables: {len(CHECKS)} checks, {wrong} wrong")
sys.exit(1 if wrong else 0)
