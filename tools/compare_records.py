#!/usr/bin/env python3
"""Compares records of two commits, made in turns on one machine.

usage: tools/compare_records.py BEFORE AFTER [--page FILE [--check]]

BEFORE and AFTER are folders with BENCH.TURN.json, as `grosr bench BENCH --json FILE` writes them: the same benches,
each at least twice. Prints a table in Markdown: by bench how rates and times changed, and each figure that became
worse by more than 3% and by more than BEFORE differs from itself. With --page the table replaces what stands between
the two comparison markers of FILE; with --check too, nothing is changed and the exit status is 1 when it is another.
"""
import json
import math
import pathlib
import sys

BEGIN, END = "<!-- comparison: begin -->", "<!-- comparison: end -->"
ALLOWED = 0.03
TIMES = ("p50_us", "p99_us", "median_us")


def figures(folder):
    """{bench: {(row, key): [value of each turn]}}, the commit and the device."""
    found, commits, devices = {}, set(), set()
    for file in sorted(pathlib.Path(folder).glob("*.json")):
        document = json.loads(file.read_text())
        commits.add(document["commit"])
        devices.add(document["device_description"])
        bench = found.setdefault(file.name.split(".")[0], {})
        for row in document["rows"]:
            if not row["valid"]:
                sys.exit(f"compare_records: {file} has a row that is not valid: {row['name']}; record it again")
            for key, value in row.items():
                if (key.endswith("_per_s") or key in TIMES) and isinstance(value, (int, float)) and value > 0:
                    bench.setdefault((row["name"], key), []).append(value)
    if not found:
        sys.exit(f"compare_records: no records in {folder}; write some with `grosr bench NAME --json {folder}/NAME.1.json`")
    if len(commits) != 1 or len(devices) != 1:
        sys.exit(f"compare_records: {folder} mixes commits {sorted(commits)} or devices {sorted(devices)}; one of each")
    return found, commits.pop(), devices.pop()


def change(key, before, after):
    """How many times better the best turn became, and how far the turns before lie apart."""
    if key in TIMES:
        return min(before) / min(after), 1 - min(before) / max(before)
    return max(after) / max(before), 1 - min(before) / max(before)


def table(before_folder, after_folder):
    before, commit_before, device = figures(before_folder)
    after, commit_after, device_after = figures(after_folder)
    if device != device_after:
        sys.exit(f"compare_records: {before_folder} is of {device}, {after_folder} of {device_after}; use one device")
    lines = [f"{device}; {commit_before} in `{before_folder}/`, {commit_after} in `{after_folder}/`, in turns; of each the best turn.",
             "", "| bench | figures | geometric mean | least | greatest |", "|---|---|---|---|---|"]
    worse = []
    for bench in sorted(before):
        ratios = []
        for (row, key), values in before[bench].items():
            others = after.get(bench, {}).get((row, key), [])
            if len(values) < 2 or len(others) < 2:
                continue
            ratio, apart = change(key, values, others)
            ratios.append(ratio)
            if ratio < 1 - max(ALLOWED, apart):
                worse.append((ratio, apart, bench, row, key))
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            lines.append(f"| `{bench}` | {len(ratios)} | {mean:.3f} | {min(ratios):.3f} | {max(ratios):.3f} |")
    lines += ["", f"Worse by more than {ALLOWED:.0%} and by more than the turns before differ:", "",
              "| bench | row | figure | times as good | turns before differ by |", "|---|---|---|---|---|"]
    lines += [f"| `{bench}` | {row} | `{key}` | {ratio:.3f} | {apart:.1%} |" for ratio, apart, bench, row, key in sorted(worse)]
    return "\n".join(lines if worse else lines[:-5] + ["", "Nothing is worse by more than that."])


def main(arguments):
    check = "--check" in arguments
    arguments = [a for a in arguments if a != "--check"]
    page = None
    if "--page" in arguments and arguments[-1] != "--page":
        at = arguments.index("--page")
        page = pathlib.Path(arguments[at + 1])
        del arguments[at:at + 2]
    if len(arguments) != 2 or any(a.startswith("-") for a in arguments) or (check and page is None):
        sys.exit("compare_records: usage: tools/compare_records.py BEFORE AFTER [--page FILE [--check]]")
    text = table(*arguments)
    if page is None:
        print(text)
        return 0
    whole = page.read_text()
    if BEGIN not in whole or END not in whole:
        sys.exit(f"compare_records: {page} has no lines {BEGIN} and {END}; add them where the table goes")
    head, rest = whole.split(BEGIN, 1)
    made = head + BEGIN + "\n" + text + "\n" + END + rest.split(END, 1)[1]
    if check:
        if made != whole:
            print(f"compare_records: the table in {page} is not the one of these records; run it without --check")
        return int(made != whole)
    page.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
