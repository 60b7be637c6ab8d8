"""Every link in the pages leads to a file that is there, and to a heading that is there."""

import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parents[2]


def anchor(heading):
    """As GitHub makes it."""
    text = re.sub(r"[`*]", "", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(page):
    return {anchor(h) for h in re.findall(r"^#+ (.*)$", page.read_text(), re.M)}


pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]
looked_at, wrong = 0, 0
for page in pages:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if link.startswith(("http:", "https:")):
            continue
        looked_at += 1
        path, _, heading = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            print(f"{page.relative_to(root)}: {link} leads to no file")
            wrong += 1
        elif heading and target.suffix == ".md" and heading not in anchors(target):
            print(f"{page.relative_to(root)}: {link} leads to no heading")
            wrong += 1
if looked_at < 50:
    sys.exit(f"the pages have {looked_at} links: this test looks for [text](target)")
sys.exit(1 if wrong else 0)
