"""What docs/guide/tasks.md shows is in programs that the tests run, line by line."""

import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parents[2]
text = (root / "docs/guide/tasks.md").read_text()
programs = {p.name: p.read_text() for p in (root / "examples").glob("*.cpp")}
blocks = re.findall(r"^```cpp\n(.*?)^```", text, re.S | re.M)
missing = [b for b in blocks if not any(b in program for program in programs.values())]
for block in missing:
    print(f"docs/guide/tasks.md shows what no program of examples/ has:\n{block}")
if len(blocks) < 6:
    sys.exit(f"docs/guide/tasks.md shows {len(blocks)} pieces of code: this test looks for fenced blocks of cpp")
sys.exit(1 if missing else 0)
