"""The C++ in README.md and docs/guide is in programs that the tests run, line by line."""

import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parents[2]
programs = {p.name: p.read_text() for p in (root / "examples").glob("*.cpp")}
pages = [root / "README.md", *sorted((root / "docs/guide").glob("*.md"))]
looked_at, wrong = 0, 0
for page in pages:
    for block in re.findall(r"^```cpp\n(.*?)^```", page.read_text(), re.S | re.M):
        looked_at += 1
        if not any(block in program for program in programs.values()):
            print(f"{page.relative_to(root)} shows what no program of examples/ has:\n{block}")
            wrong += 1
if looked_at < 12:
    sys.exit(f"the pages show {looked_at} pieces of code: this test looks for fenced blocks of cpp")
sys.exit(1 if wrong else 0)
