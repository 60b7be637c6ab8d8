#!/usr/bin/env python3
"""Makes the tables of results in docs/ from recorded runs.

usage: tools/results_table.py [--check]

Reads the folders below bench/results that PAGES names, as `grosr bench NAME --json FILE` wrote them, and
replaces what stands between the two result markers of each page. With --check it changes nothing and
exits 1 when a table is not the one that the files give.
"""
import json
import pathlib
import re
import sys

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
ORDER = ["latency", "pairs", "throughput", "submit", "baselines", "bfs", "allocator", "allocator-stress", "spawn", "chain", "tail", "await", "streams",
         "priority", "pair-of-programs", "soak", "forkjoin", "forkjoin-sweep", "channels", "dataflow",
         "policies", "messages", "composition", "prk", "gesture", "cryptfs", "cryptfs-competing", "gups", "kmeans",
         "distributed-graph", "genome"]
RESULTS = pathlib.Path("bench/results")
# Benches are named for what they measure; records before that have the names of a report.
NAMES = {"exp-a": "pairs", "exp-b": "throughput", "exp-b-plus": "baselines", "exp-c": "bfs", "exp-d": "allocator",
         "exp-d-stress": "allocator-stress"}
OLDER = ("soak", "tour")  # what was not recorded again
DATAFLOW, PROGRAMS, TWO_DEVICES = "h100-2026-11-28-dataflow", "h100-2026-11-28-programs", "h200-2026-11-28-two-devices"
MESSAGES, TASKS = "h200-2026-11-29-messages", "h200-2026-11-29-tasks"
# Columns of tables that have a line for each row, and a figure in each column: heading and key.
COLUMNS = {"gesture": [("frames", "frames_per_s"), ("input", "input_gb_per_s"), ("mean", "mean_us"), ("sigma", "stddev_us"),
                       ("p50", "p50_us"), ("p99", "p99_us"), ("p99.9", "p999_us"), ("max", "max_us"),
                       ("user", "user_percent"), ("system", "system_percent"), ("GPU busy", "gpu_percent"),
                       ("GPU memory", "gpu_memory_bytes"), ("threads", "threads"), ("ws-delta", "ws_delta_bytes"),
                       ("late", "late_frames"), ("dropped", "dropped_frames")],
           "gups": [("a kernel", "kernel_updates_per_s"), ("direct", "direct_updates_per_s"),
                    ("messages", "messages_updates_per_s"), ("coprocessor", "coprocessor_updates_per_s"),
                    ("buffers 8 times as large", "coprocessor_large_updates_per_s"), ("words an update", "words_an_update"),
                    ("deferred", "deferred"), ("links of a rank", "rank_memory_bytes")],
           "cryptfs-competing": [(f"{what}, {name}", f"{what}_{by}_gb_per_s") for what in ("write", "read")
                                 for name, by in (("OpenSSL", "openssl"), ("GPU", "device"), ("`auto`", "auto"))] +
                                [("kernel", "kernel_ms"), ("kernels alone", "alone_kernels_per_s")] +
                                [(f"beside {name}", f"beside_{by}_kernels_per_s")
                                 for name, by in (("OpenSSL", "openssl"), ("GPU", "device"), ("`auto`", "auto"))]}


# Page: folder and benches of each table, and whether rows without a target are in it; or which columns it has.
PAGES = {"docs/results.md": [("h100-2026-11-27", lambda bench: True, False),
                             ("h100-2026-11-21", lambda bench: bench in OLDER, False)],
         "docs/internals/memory.md": [("h100-2026-11-27", lambda bench: bench == "allocator", False),
                                      ("h100-2026-11-21", lambda bench: bench == "allocator-stress", False)],
         "docs/internals/system-calls.md": [("h200-2026-11-22", lambda bench: bench.startswith("syscalls"), False)],
         "docs/internals/fork-join.md": [("h100-2026-11-27", lambda bench: bench == "forkjoin", False)],
         "docs/internals/channels.md": [("h100-2026-11-27", lambda bench: bench == "channels", True)],
         "docs/apps/composition.md": [(PROGRAMS, lambda bench: bench == "composition", True)],
         "docs/apps/prk.md": [(PROGRAMS, lambda bench: bench == "prk", True)],
         "docs/apps/gesture.md": [(PROGRAMS, lambda bench: bench == "gesture", COLUMNS["gesture"])],
         "docs/apps/cryptfs.md": [(PROGRAMS, lambda bench: bench == "cryptfs", True),
                                  (PROGRAMS, lambda bench: bench == "cryptfs-competing", COLUMNS["cryptfs-competing"])],
         "docs/apps/gups.md": [(MESSAGES, lambda bench: bench == "gups", COLUMNS["gups"])],
         "docs/apps/kmeans.md": [(MESSAGES, lambda bench: bench == "kmeans", COLUMNS["gups"])],
         "docs/apps/distributed-graph.md": [(TASKS, lambda bench: bench == "distributed-graph", True)],
         "docs/apps/genome.md": [(TASKS, lambda bench: bench == "genome", True)],
         "docs/internals/dataflow.md": [(DATAFLOW, lambda bench: bench == "dataflow", True),
                                        (TWO_DEVICES, lambda bench: bench == "policies", True)],
         "docs/internals/graphs.md": [("h100-2026-11-27", lambda bench: bench == "bfs", True)]}


# What a key names, where its unit does not say it.
QUANTITY = {"p50_us": "p50", "p99_us": "p99", "memory_bytes": "task memory", "cpu_percent": "CPU", "faster_percent": "faster by",
            "both_s": "both done after", "host_growth_bytes": "host memory grew by",
            "task_memory_bytes": "task memory", "cold_allocations_per_s": "cold",
            "frees_per_s": "frees", "mean_us": "mean", "stddev_us": "standard deviation", "p999_us": "p99.9", "node_us": "a node",
            "moves_percent": "inputs from the other device", "r2_percent": "shares on a line (r2)", "over_device_malloc_x": "the device's malloc",
            "level_us": "a level", "flow_us": "a round", "flow_iterations_per_s": "iterations", "hop_us": "a hop", "all_ms": "all ended after", "device_bytes": "device memory",
            "over_bound_x": "over the bound:", "over_waits_x": "over launches that are waited for:",
            "over_ahead_x": "over launches ahead:", "over_launches_x": "over the best of launches:",
            "over_cooperative_x": "over the cooperative kernel:", "over_best_x": "over the best other:",
            "of_best_x": "of the best other:",
            "of_64_B_share": "with 64 B", "of_1_KB_share": "with 1 KB",
            "of_64_KB_share": "with 64 KB", "of_half_share": "half of it at once",
            "wrong_stamps": "wrong stamps", "live_blocks": "blocks left",
            "success_share": "successful", "got_back_share": "got back", "usable_share": "usable"}


def amount(key, value):
    if value is None:
        return "?"
    if key == "speedup_x":
        return f"{value:,.0f} times faster" if value >= 10 else f"{value:.3g} times as fast"
    if key.endswith("_x"):
        return f"{value:,.0f} times" if value >= 100 else f"{value:.3g} times"
    if key.endswith("_share"):
        return f"{value:.2%}"
    if key.endswith("_bytes") and 0 < abs(value) < 2**20:
        return f"{value / 2**10:,.1f} KiB"
    if key.endswith("_bytes"):
        return f"{value / 2**20:,.1f} MiB"
    if key.endswith("_s") and not key.endswith("_per_s"):
        return f"{value:,.2f} s"
    for suffix, unit in (("_us", "us"), ("_ns", "ns"), ("_ms", "ms"), ("_percent", "%")):
        if key.endswith(suffix):
            return f"{value:,.2f} {unit}" if value < 100 else f"{value:,.0f} {unit}"
    if key.endswith("gb_per_s"):
        return f"{value:.3g} GB/s" if value < 1000 else f"{value:,.0f} GB/s"
    if key.endswith("_per_s"):
        for scale, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if abs(value) >= scale:
                return f"{value / scale:.3g} {prefix}/s"
        return f"{value:.3g} /s"
    return f"{value:,.3g}" if isinstance(value, float) and value != int(value) else f"{value:,.0f}"


def quantity(key, value):
    """An amount and, where its unit does not say it, what it is of."""
    of = re.fullmatch(r"priority_(\d+)_percent", key)
    what = f"priority {of.group(1)}:" if of else QUANTITY.get(key, "")
    return f"{what} {amount(key, value)}".lstrip()


def bound(target):
    if "at_least" in target:
        return "at least " + amount(target["key"], target["at_least"])
    return "at most " + amount(target["key"], target["at_most"])


def met(row, target):
    value = row.get(target["key"])
    if value is None:
        return "?"
    good = value >= target["at_least"] if "at_least" in target else value <= target["at_most"]
    return "met" if good else "missed"


def side(entry):
    for key, value in entry.items():
        if key not in ("what", "ratio") and isinstance(value, (int, float)):
            return f"{entry['what']}: {amount(key, value)}"
    return entry.get("what", "")


def main_figures(row):
    """What a row without targets is about."""
    shares = [key for key in row if re.fullmatch(r"priority_\d+_percent", key)]
    if shares:
        return shares
    for alike in (("flow_iterations_per_s",), tuple(key for key in row if key.endswith("_per_s")), ("speedup_x",),
                  ("p50_us",), ("node_us",), ("median_us", "flow_us")):
        found = [key for key in row if key in alike][:1]
        if found:
            return found + [key for key in row if found == ["speedup_x"] and key == "moves_percent"]
    return []


def heading(folder, run):
    return [f"Recorded on {run['device_description']} ({run['date'][:10]}, driver {run['driver']}, "
            f"{run['compiler']}, commit {run['commit']}); files in `{folder.as_posix()}/`.", ""]


def wide_table(documents, columns):
    """A line for each row, with all that `columns` names; empty where a row has no such figure."""
    lines = ["| measured | " + " | ".join(name for name, _ in columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for document in documents:
        for row in document["rows"]:
            cells = [amount(key, row[key]) if key in row else "" for _, key in columns]
            lines.append(f"| {row['name']}{'' if row['valid'] else ' (invalid)'} | {' | '.join(cells)} |")
    return lines


def long_table(documents, all_rows):
    """A line for each target, and where `all_rows` says so for rows without one; what is beside it is there once a row."""
    lines = ["| bench | measured | reached | target | beside it, same run |", "|---|---|---|---|---|"]
    for document in documents:
        for row in document["rows"]:
            targets = row.get("targets") or []
            known = {t["key"] for t in targets}
            main = [key for key in main_figures(row) if key not in known] if all_rows else []
            said = [("; ".join(quantity(key, row[key]) for key in main), "")] if main else []
            said += [(quantity(t["key"], row.get(t["key"])), f"{bound(t)}: {met(row, t)}") for t in targets]
            beside = "; ".join(dict.fromkeys(side(b) for b in row.get("baselines", []) +
                                             row.get("limits", []) if isinstance(b, dict)))
            for reached, asked in said:
                if not row["valid"]:
                    reached = "invalid"
                lines.append(f"| `{document['bench']}` | {row['name']} | {reached} | {asked} | {beside} |")
                beside = ""  # once a row
    return lines


def table(folder, belongs, shown):
    documents = {}
    runs = [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]
    for run in sorted(runs, key=lambda run: run["date"]):
        run["bench"] = NAMES.get(run["bench"], run["bench"])
        if not belongs(run["bench"]):
            continue
        document = documents.setdefault(run["bench"], run)
        rows = {row["name"]: row for row in document["rows"] + run["rows"]}  # of a row, the newest
        document["rows"] = list(rows.values())
    if not documents:
        sys.exit(f"results_table: no recorded runs in {folder}; record them with "
                 f"`grosr bench NAME --json {folder}/NAME.json`")
    names = [n for n in ORDER if n in documents] + sorted(set(documents) - set(ORDER) - {"limits"})
    in_order = [documents[name] for name in names]
    lines = wide_table(in_order, shown) if isinstance(shown, list) else long_table(in_order, shown)
    return "\n".join(heading(folder, documents[min(documents)]) + lines)


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    if any(a in ("-h", "--help") for a in arguments):
        print(__doc__)
        return
    if arguments:
        sys.exit(f"results_table: {arguments[0]} was not understood; see --help")
    for name, tables in PAGES.items():
        page = pathlib.Path(name)
        text = page.read_text()
        if BEGIN not in text or END not in text:
            sys.exit(f"results_table: {name} has no markers {BEGIN} and {END}")
        head, rest = text.split(BEGIN)
        tail = rest.split(END)[1]
        made = "\n\n".join(table(RESULTS / folder, *what) for folder, *what in tables)
        new = f"{head}{BEGIN}\n{made}\n{END}{tail}"
        if "--check" not in sys.argv:
            page.write_text(new)
        elif new != text:
            sys.exit(f"results_table: the table in {name} is not the one of "
                     f"{' and '.join(f'{RESULTS}/{folder}' for folder, *_ in tables)}; run tools/results_table.py")


if __name__ == "__main__":
    main()
