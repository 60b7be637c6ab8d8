"""tools/plot.py draws valid SVG of recorded runs, and says in one line what is wrong with others."""

import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

from cli import check, finish

PLOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "plot.py")
HEAD = {"device_description": "a <device>", "date": "2026-01-01T00:00:00Z", "limits": {}}
SVG = "{http://www.w3.org/2000/svg}"


def row(name, **values):
    return {"name": name, "valid": True, **values}


def sweep():
    rows = [row(f"pread of {size} by {who}, 64 lanes a block", file_bytes=size, lanes_a_block=64, median_us=size / rate)
            for size in (65536, 1 << 20) for who, rate in (("lanes", 10), ("blocks", 50), ("the grid", 5))]
    rows.append(row("pread of x by blocks, 128 lanes a block", file_bytes=1 << 20, lanes_a_block=128, median_us=77))
    ways = ("strong, blocking", "strong, started", "relaxed, blocking", "relaxed, started")
    rows += [row(f"pwrite, {way}, {rounds} rounds, {places}", rounds=rounds, places=places, taken_at_once=0, files=3,
                 block_us=1.5 + i) for i, way in enumerate(ways) for rounds in (1, 4) for places in (16, 264)]
    rows += [row(f"getppid, {callers}, {batch}, {window}", batch=batch, window_us=window, threads=4, callers=callers,
                 calls_per_s=1e6 * batch) for callers in (16, 2112) for batch, window in ((1, 0), (8, 0), (8, 50))]
    return rows


def refine():
    return [row(f"{way} madvise, step {i}", step=i, at_s=i / 10, step_us=1000 + i, rss_bytes=i << 20,
                refined_bytes=i << 20) for way in ("with", "without") for i in range(20)]


def echo():
    return [row(f"{who}, {size} B, 4 threads", bytes=size, threads=4, packets_per_s=1e5, gb_per_s=size / 1e4)
            for who in ("CPU, recvfrom and sendto", "kernel, warps") for size in (64, 4096)]


def forkjoin_sweep():
    rows = [row(f"fib(34) on {n} of 132 multiprocessors", multiprocessors=n, calls_per_s=1e6 * n,
                workers_without_work_percent=n / 10, lanes_with_a_task_percent=99) for n in (1, 2, 132)]
    return rows + [row("fib(34) in 96 MiB of task memory", limit_mib=96, calls_per_s=1e9)]


def channels():
    rows = [row(f"fib(27) through a channel of {n}", places=n, calls_per_s=1e6 * n) for n in (64, 1024)]
    return rows + [row(f"elements of 4 bytes to {n} channels, {how}", channels=n, elements_per_s=1e9 / n)
                   for n in (1, 60) for how in ("direct", "indirect")]


def composition():
    works = [f"{kind}, tree of 6 levels, side {side}" for kind in ("gemm", "madd") for side in (64, 128)]
    rows = [row(work, **{way + "_us": 20 + 7 * i for i, way in enumerate(("modular", "by-hand", "best-by-hand", "flow"))})
            for work in works + ["bitonic, 65536 elements", "group-by, 65536 records, 256 groups"]]
    return rows + [row("pca, 10 iterations, side 8", flow_us=7)]  # nothing to set against


def policies():
    rows = [row(f"{policy}: four graphs of 36 nodes, priorities 1, 2", slope_percent=3.5,
                **{f"priority_{n}_{key}": 30 * n for n in (1, 2) for key in ("graphs_per_s", "percent")})
            for policy in ("fifo", "priority")]
    return rows + [row(f"{policy}: depth 6, breadth {breadth}, on host:0 and host:1", speedup_x=1.5 + breadth / 99,
                       moves_percent=moves) for policy, moves in (("fifo", 45.5), ("data_aware", 0)) for breadth in (4, 10)]


def gesture():
    return [row(f"{way}, {course}", frames_per_s=30.01, p50_us=us, p99_us=2 * us, user_percent=us / 9, system_percent=0)
            for way, us in (("host", 9000), ("flow", 300)) for course in ("real time at 30 fps", "unconstrained")]


def trace():
    tracks = [{"ph": "M", "tid": i, "name": "thread_name", "args": {"name": name}} for i, name in enumerate(("one", "all"))]
    parts = [{"ph": "X", "tid": i % 2, "name": f"step {i % 3}", "ts": 10 * i, "dur": 9.5} for i in range(7)]
    return {"otherData": {"graph": "a <graph>", "device": "a <device>"}, "traceEvents": tracks + parts}


def plot(*arguments, cwd=None):
    done = subprocess.run([sys.executable, PLOT, *arguments], capture_output=True, text=True, timeout=60, cwd=cwd)
    return done.returncode, done.stdout, done.stderr


def write(folder, name, document):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(document if isinstance(document, str) else json.dumps(document))


def refused(named, *arguments):
    code, out, err = plot(*arguments)
    check(code == 1 and err.count("\n") == 1 and err.startswith("plot: "), f"{arguments}: {code} {err!r}")
    check(named in err and out == "", f"{arguments}: does not say {named!r}: {err!r} {out!r}")


with tempfile.TemporaryDirectory(prefix="grosr-plot-") as folder:
    for name, rows in (("syscalls-sweep", sweep()), ("refine", refine()), ("echo", echo()),
                       ("forkjoin-sweep", forkjoin_sweep()), ("channels", channels()), ("composition", composition()),
                       ("policies", policies()), ("gesture", gesture())):
        write(folder, name + ".json", {**HEAD, "bench": name, "rows": rows})
    os.mkdir(os.path.join(folder, "traces"))
    write(folder, "traces/bfs.json", trace())
    out = os.path.join(folder, "figures")
    code, told, err = plot("--results", folder, "--out", out)
    check(code == 0 and err == "", f"exit code {code}: {err}")
    lines = {"granularity": 4, "ordering": 16, "coalescing": 2, "footprint": 5, "echo": 2, "scaling": 3, "channels": 3,
             "regimes": 0, "composition": 0, "priorities": 4, "second-device": 4, "gesture": 0}
    check(sorted(os.listdir(out)) == sorted(name + ".svg" for name in lines), f"figures are {os.listdir(out)}")
    for name, drawn in lines.items():
        root = ET.parse(os.path.join(out, name + ".svg")).getroot()
        width, height = float(root.get("width")), float(root.get("height"))
        check(root.tag == SVG + "svg", f"{name}: {root.tag}")
        texts = [t.text for t in root.iter(SVG + "text")]
        check(any("a <device>" in t for t in texts), f"{name}: does not name the device")
        paths = [p.get("d") for p in root.iter(SVG + "path") if p.get("class").startswith("l") and "L" in p.get("d")]
        check(len(paths) == drawn, f"{name}: {len(paths)} lines, not {drawn}")
        for path in paths:
            at = [float(n) for n in path.replace("M", "").replace("L", "").split()]
            check(all(0 <= x <= width for x in at[::2]) and all(0 <= y <= height for y in at[1::2]),
                  f"{name}: a line leaves the picture: {path}")
    root = ET.parse(os.path.join(out, "regimes.svg")).getroot()
    bars = [(float(r.get("x")), float(r.get("width"))) for r in root.iter(SVG + "rect") if r.get("class") != "b"]
    check(len(bars) == 7 and all(x >= 0 and x + w <= float(root.get("width")) for x, w in bars), f"regimes: {bars}")
    for name, shapes, drawn in (("composition", ("path", "circle"), 18 + 3), ("gesture", ("rect",), 8)):  # 3: the legend
        root = ET.parse(os.path.join(out, name + ".svg")).getroot()
        marks = [m for shape in shapes for m in root.iter(SVG + shape) if m.get("class").startswith("f")]
        at = [float(m.get("x") or m.get("cx") or m.get("d")[1:].split()[0]) for m in marks]
        check(len(marks) == drawn, f"{name}: {len(marks)} marks, not {drawn}")
        check(all(0 <= x <= float(root.get("width")) for x in at), f"{name}: a mark leaves the picture: {at}")
    code, told, err = plot("--results", folder, "--out", os.path.join(folder, "one"), "echo")
    check(code == 0 and os.listdir(os.path.join(folder, "one")) == ["echo.svg"], f"one figure: {code} {err}")

    bad = os.path.join(folder, "bad")
    os.mkdir(bad)
    refused("no recorded run", "--results", bad)
    refused("no such folder", "--results", os.path.join(folder, "none"))
    refused("nosuch", "nosuch")
    refused("--out needs", "--out")
    for text in ("", "{", "[]", '{"rows": 7}', '{"rows": [{"name": "x"}]}'):
        write(bad, "echo.json", text)
        refused("echo.json", "--results", bad, "--out", bad)
    write(bad, "echo.json", {**HEAD, "rows": [row("x", bytes=1, gb_per_s=1)]})  # no threads
    refused("echo.json", "--results", bad, "--out", bad)
    write(bad, "echo.json", {**HEAD, "rows": [{**r, "valid": False} for r in echo()]})
    refused("no valid rows", "--results", bad, "--out", bad)
    for name, rows in (("composition", [row("a, b", flow_us=1)]), ("gesture", [row("a way")]), ("policies", [])):
        write(bad, name + ".json", {**HEAD, "rows": rows})
        refused(name + ".json" if name == "gesture" else "no valid rows", "--results", bad, "--out", bad,
                {"policies": "second-device"}.get(name, name))
    os.mkdir(os.path.join(bad, "traces"))
    for text in ("{", '{"traceEvents": [{}]}', json.dumps({**trace(), "otherData": {}})):
        write(bad, "traces/bfs.json", text)
        refused("bfs.json", "--results", bad, "--out", bad, "regimes")
    check(not [name for name in os.listdir(bad) if name.endswith(".svg")], "a figure was drawn of a bad run")

finish("plot")
