#!/usr/bin/env python3
"""Draws the figures of docs/ from recorded runs, as SVG that is readable in light and in dark.

usage: tools/plot.py [--results FOLDER] [--out FOLDER] [NAME...]

Reads FOLDER/*.json as `grosr bench NAME --json FILE` and the programs below apps/ wrote them (default: where RESULTS
below says that each run is) and writes OUT/NAME.svg (default: docs/figures) for each figure whose runs are there: chain, granularity,
ordering, coalescing, footprint, echo, scaling, channels, regimes, composition, priorities, second-device, gesture. Rows that are not valid are left out. Needs nothing but Python.
"""
import pathlib
import sys

import plot_dataflow
from plotting import (Bars, Panel, Ranks, Trouble, bytes_text, count_text, factor_text, figure, megabytes_text, named, on,
                      points, rate_text, read, read_trace)

LATEST = pathlib.Path("bench/results/h100-2026-11-27")
EARLIER = pathlib.Path("bench/results/h200-2026-11-23")
PROGRAMS = pathlib.Path("bench/results/h100-2026-11-28-programs")
TWO_DEVICES = pathlib.Path("bench/results/h200-2026-11-28-two-devices")
RESULTS = {"chain": LATEST, "channels": LATEST, "forkjoin-sweep": EARLIER, "traces/bfs": EARLIER, "composition": PROGRAMS,
           "policies": TWO_DEVICES, "gesture": PROGRAMS}  # others: BEFORE
BEFORE = pathlib.Path("bench/results/h200-2026-11-22")


def chain(runs):
    document, rows = runs["chain"]
    one = {row["name"].split(" ", 4)[-1]: row for row in named(rows, "one chain of ")}
    ours = [(f"GROSR: {what}", row["hop_us"], "GROSR") for what, row in one.items() if "fork" not in what]
    lane = next(row for what, row in one.items() if what.startswith("lane"))
    others = [(beside["what"], beside["hop_us"], "other ways") for beside in lane["baselines"]]
    return figure(f"From one task to the next that depends on it, in a chain ({on(document)})",
                  [Ranks("", sorted(ours + others, key=lambda bar: bar[1]), value_text=lambda us: f"{us:.3g} us")], 2)


def granularity(runs):
    document, rows = runs["syscalls-sweep"]
    rows = [row for row in rows if "file_bytes" in row]
    callers = {"lanes": "each lane", "blocks": "each block", "the grid": "the whole grid"}
    by = lambda who: [row for row in rows if f" by {who}," in row["name"]]
    least = min(row["lanes_a_block"] for row in rows)
    left = {label: points(by(who), "file_bytes", "median_us", lanes_a_block=least) for who, label in callers.items()}
    sizes = sorted({x for line in left.values() for x, _ in line})
    varied = [row for row in by("blocks") if row["lanes_a_block"] > least]
    size = varied[0]["file_bytes"] if varied else sizes[-1]
    right = {callers["blocks"]: points(by("blocks"), "lanes_a_block", "median_us", file_bytes=size)}
    return figure(f"Reading a file into device memory: pread called by lanes, blocks or the grid ({on(document)})", [
        Panel(f"{count_text(least)} lanes a block, 1 KiB a lane", "size of the file", "time", left, bytes_text,
              x_log=2, x_places=sizes),
        Panel(f"a file of {bytes_text(size)}", "lanes a block", "time", right, y_log=None)], 2)


def ordering(runs):
    document, rows = runs["syscalls-sweep"]
    rows = [row for row in rows if "rounds" in row and row["files"] > 1 and row["taken_at_once"] == 0]
    ways = ["strong, blocking", "strong, started", "relaxed, blocking", "relaxed, started"]
    lines = lambda x, **wanted: {way: points(named(rows, "pwrite, " + way), x, "block_us", **wanted) for way in ways}
    work = sorted({row["places"] for row in rows if row["rounds"] > 1})

    def against_first(all_lines):
        first = dict(all_lines[ways[0]])
        return {way: [(x, y / first[x]) for x, y in line if x in first] for way, line in all_lines.items()}

    panels = [Panel(f"{count_text(n)} blocks of threads at a time", "rounds of work before each write",
                    "time for 8 KiB", lines("rounds", places=n), x_log=4) for n in work]
    relative = {"y_text": factor_text, "x_log": 4, "y_log": None, "bounds": [0, 1]}
    panels.append(Panel(f"{count_text(work[0])} blocks at a time, against the first", "rounds of work before each write",
                        "time, strong and blocking = 1x", against_first(lines("rounds", places=work[0])), **relative))
    panels.append(Panel("1 round, against the first", "blocks of threads at a time", "time, strong and blocking = 1x",
                        against_first(lines("places", rounds=1)), **relative))
    return figure(f"Permuting blocks of 8 KiB and writing each by pwrite ({on(document)})", panels, 2)


def coalescing(runs):
    document, rows = runs["syscalls-sweep"]
    rows = [row for row in rows if "window_us" in row]
    kinds = list(dict.fromkeys(row["name"].split(",")[0] for row in rows))
    many = max(row["callers"] for row in rows)
    panels = []
    for threads in sorted({row["threads"] for row in rows}):
        lines = {}
        for kind in kinds:
            mine = points(named(rows, kind + ","), "batch", "calls_per_s", threads=threads, callers=many, window_us=0)
            alone = dict(mine).get(1)
            if alone:
                lines[kind] = [(x, y / alone) for x, y in mine if x > 0]
        panels.append(Panel(f"{count_text(threads)} service thread{'s' if threads > 1 else ''}, {count_text(many)} callers",
                            "calls taken at once, at most", "calls a second, batch 1 = 1x", lines,
                            y_text=factor_text, y_log=None, bounds=[0, 1]))
    few = [row for row in rows if row["callers"] < many]
    lines = {}
    for kind in kinds:
        mine = points(named(few, kind + ","), "window_us", "calls_per_s", batch=8)
        alone = dict(mine).get(0)
        if alone:
            lines[kind] = [(x, y / alone) for x, y in mine]
    if few:
        panels.append(Panel(f"waiting for more: {count_text(few[0]['callers'])} callers, batch 8", "window in us",
                            "calls a second, no window = 1x", lines, y_text=factor_text, x_log=None, y_log=None,
                            bounds=[0, 1]))
    return figure(f"Taking several calls at once ({on(document)})", panels, 2)


def footprint(runs):
    document, rows = runs["refine"]
    lines = {label: points(named(rows, begin), "at_s", key) for label, begin, key in
             [("with madvise", "with madvise, step", "rss_bytes"),
              ("without madvise", "without madvise, step", "rss_bytes"),
              ("what the mesh needs", "with madvise, step", "refined_bytes")]}
    times = {label: points(named(rows, label + ", step"), "step", "step_us")
             for label in ("with madvise", "without madvise")}
    return figure(f"Memory of a mesh that is refined and coarsened by the GPU ({on(document)})", [
        Panel("host memory that the program has", "seconds since the begin", "resident memory", lines,
              y_text=megabytes_text, x_log=None, y_log=None),
        Panel("time of a step", "step", "time", times, x_log=None, y_log=None)], 2)


def echo(runs):
    document, rows = runs["echo"]
    rows = [row for row in rows if "gb_per_s" in row and "bytes" in row]
    sizes = sorted({row["bytes"] for row in rows})
    panels = []
    for threads in sorted({row["threads"] for row in rows}):
        lines = {}
        for row in rows:
            if row["threads"] == threads:
                label = row["name"].split(f", {row['bytes']} B")[0]
                lines.setdefault(label, []).append((row["bytes"], row["gb_per_s"] * 1e9))
        panels.append(Panel(f"{count_text(threads)} service thread{'s' if threads > 1 else ''}", "bytes of a datagram",
                            "bytes a second", lines, bytes_text, rate_text, x_places=sizes))
    return figure(f"Echo of datagrams: bytes a second ({on(document)})", panels, min(2, len(panels)))


def scaling(runs):
    document, rows = runs["forkjoin-sweep"]
    rows = [row for row in rows if "multiprocessors" in row]
    programs = list(dict.fromkeys(row["name"].split(" on ")[0] for row in rows))
    mine = {p: named(rows, p + " on ") for p in programs}

    def rate(row):
        return next(v for k, v in row.items() if k.endswith("_per_s"))

    sped_up = {p: [(row["multiprocessors"], rate(row) / rate(mine[p][0])) for row in mine[p]] for p in programs}
    places = sorted({row["multiprocessors"] for row in rows})
    share = lambda key: {p: points(mine[p], "multiprocessors", key) for p in programs if key in mine[p][0]}
    percent = {"y_text": lambda v: f"{v:.0f}%", "x_log": 2, "y_log": None, "bounds": [0, 100]}
    return figure(f"Programs of forks and joins on more multiprocessors ({on(document)})", [
        Panel("how much faster than on one", "multiprocessors", "rate, on one = 1x", sped_up, y_text=factor_text,
              x_log=2, y_log=2),
        Panel("of the workers' time in a run", "multiprocessors", "without work", share("workers_without_work_percent"),
              **percent),
        Panel("of the lanes of warps that run", "multiprocessors", "with a task", share("lanes_with_a_task_percent"),
              **percent)], 3)


def channels(runs):
    document, rows = runs["channels"]
    width = {"through a channel": points([row for row in rows if "through a channel of" in row["name"]], "places",
                                         "calls_per_s")}
    routed = [row for row in rows if "channels" in row]
    ways = {way: points(named(routed, "", ", " + way), "channels", "elements_per_s") for way in ("direct", "indirect")}
    return figure(f"Channels ({on(document)})", [
        Panel("a recursion through one channel", "places in the channel", "calls a second", width, y_text=rate_text,
              x_log=2, y_log=None, bounds=[0, 1]),
        Panel("elements of 4 bytes to many channels", "channels", "elements a second", ways, y_text=rate_text,
              x_log=2, y_log=None, bounds=[0, 1])], 2)


def regimes(runs):
    document, parts = runs["traces/bfs"]
    names = {e["tid"]: e["args"]["name"] for e in document["traceEvents"] if e["name"] == "thread_name"}
    tracks = {name: [(e["ts"], e["ts"] + e["dur"], e["name"]) for e in parts if e["tid"] == tid]
              for tid, name in names.items()}
    what = document["otherData"]
    return figure(f"A breadth-first search: {what['graph']} ({what['device']})",
                  [Bars("who works, and at what", tracks)], 2)


FIGURES = {"chain": (chain, "chain"), "granularity": (granularity, "syscalls-sweep"), "ordering": (ordering, "syscalls-sweep"),
           "coalescing": (coalescing, "syscalls-sweep"), "footprint": (footprint, "refine"), "echo": (echo, "echo"),
           "scaling": (scaling, "forkjoin-sweep"), "channels": (channels, "channels"), "regimes": (regimes, "traces/bfs"),
           **plot_dataflow.FIGURES}


def main(arguments):
    results, out, wanted = None, pathlib.Path("docs/figures"), []
    while arguments:
        a = arguments.pop(0)
        if a in ("-h", "--help"):
            print(__doc__)
            return
        if a in ("--results", "--out"):
            if not arguments:
                raise Trouble(f"{a} needs a folder")
            folder = pathlib.Path(arguments.pop(0))
            results, out = (folder, out) if a == "--results" else (results, folder)
        elif a in FIGURES:
            wanted.append(a)
        else:
            raise Trouble(f"{a} was not understood; there are the figures {', '.join(FIGURES)}; see --help")
    if results and not results.is_dir():
        raise Trouble(f"{results}: there is no such folder of recorded runs")
    drawn = 0
    for name, (draw, run) in FIGURES.items():
        path = (results or RESULTS.get(run, BEFORE)) / f"{run}.json"
        if (wanted and name not in wanted) or not (wanted or path.exists()):
            continue
        try:
            document = draw({run: (read_trace if run.startswith("traces/") else read)(path)})
        except (KeyError, IndexError, ValueError, TypeError, AttributeError) as e:
            raise Trouble(f"{path}: the figure {name} cannot be drawn from it ({type(e).__name__}: {e})") from None
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{name}.svg").write_text(document, encoding="utf-8")
        print(out / f"{name}.svg")
        drawn += 1
    if not drawn:
        raise Trouble(f"{results or BEFORE.parent}: there is no recorded run of {', '.join(sorted({r for _, r in FIGURES.values()}))}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (Trouble, OSError) as trouble:
        sys.exit(f"plot: {trouble}")
