"""grosr graph: every format, generator and algorithm, results as Python has them, what cannot be done in one line."""

import gzip
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from cli import CLI, check, finish, run, run_json  # noqa: E402

FOLDER = tempfile.TemporaryDirectory(prefix="grosr-graph-")


def path(name):
    return os.path.join(FOLDER.name, name)


def write(name, text):
    opened = gzip.open if name.endswith(".gz") else open
    with opened(path(name), "wt", encoding="utf-8") as file:
        file.write(text)
    return path(name)


def lines_of(name):
    with open(path(name), encoding="utf-8") as file:
        return file.read().splitlines()


class Graph:
    """What a file says: edges between vertices that count from `first`."""

    def __init__(self, vertices, edges, directed=True, first=0, weighted=False):
        self.vertices, self.directed, self.first, self.weighted = vertices, directed, first, weighted
        self.given = edges
        self.to = {v: set() for v in range(first, first + vertices)}
        for a, b in edges:
            if a != b:
                self.to[a].add(b)
                if not directed:
                    self.to[b].add(a)

    def undirected(self):
        return Graph(self.vertices, self.given, False, self.first, self.weighted)

    def edges(self):
        return sum(map(len, self.to.values())) // (1 if self.directed else 2)

    def first_source(self):
        return next((v for v in self.to if self.to[v]), self.first)

    def distances(self, source):
        distance, level = {source: 0}, [source]
        while level:
            after = []
            for v in level:
                for w in self.to[v]:
                    if w not in distance:
                        distance[w] = distance[v] + 1
                        after.append(w)
            level = after
        return distance

    def without_edges(self):
        entered = set().union(*self.to.values()) if self.to else set()
        return sum(not self.to[v] and v not in entered for v in self.to)


def bfs(name, graph, *options, source=None):
    """Runs it with --check, --output and --json; compares all of them."""
    what = f"bfs {os.path.basename(name)} {options} from {source}"
    arguments = [*options] if source is None else [*options, "--source", str(source)]
    code, document, out, err = run_json("graph", "bfs", name, "--check", "--device", "host:0",
                                        "--output", path("out.txt"), *arguments)
    if not check(code == 0 and err == "" and document["rows"], f"{what}: exit code {code}: {out}{err}"):
        return {}
    start = graph.first_source() if source is None else source
    distance = graph.distances(start)
    wanted = sum(len(graph.to[v]) for v in distance) // (1 if graph.directed else 2)
    row, result = document["rows"][0], document["result"]
    got = {**result, "searched": row["searched_edges"]}
    expected = {"vertices": graph.vertices, "edges": graph.edges(), "directed": graph.directed, "source": start,
                "reached": len(distance), "levels": max(distance.values()), "checked": True, "searched": wanted}
    for key, value in expected.items():
        check(got[key] == value, f"{what}: {key} is {got[key]}, not {value}")
    check(row["valid"] and row["median_us"] > 0 and row["repeats"] >= 1, f"{what}: {row}")
    check(abs(row["edges_per_s"] * row["median_us"] - wanted * 1e6) <= 1e-6 * wanted * 1e6, f"{what}: {row}")
    check(row["graph_bytes"] > 0 and row["search_bytes"] > 0 and row["load_s"] > 0, f"{what}: {row}")
    check(("load_gb_per_s" in row) == os.path.exists(name), f"{what}: {row}")
    lines = [line.split(" ") for line in lines_of("out.txt")]
    check([line[0] for line in lines] == [str(v) for v in graph.to], f"{what}: vertices of --output")
    for v, d, parent in lines:
        v = int(v)
        if v not in distance:
            check((d, parent) == ("-", "-"), f"{what}: vertex {v} was not reached, but: {d} {parent}")
            continue
        check(int(d) == distance[v], f"{what}: distance of {v} is {d}, not {distance[v]}")
        p = int(parent)
        good = p == v if v == start else v in graph.to.get(p, ()) and distance.get(p) == distance[v] - 1
        check(good, f"{what}: parent of {v} is {parent}")
    return document


def info(name, *options):
    code, document, out, err = run_json("graph", "info", name, *options)
    if not check(code == 0 and err == "", f"info {name} {options}: exit code {code}: {out}{err}"):
        return {}
    for word in ("edges", "loaded in"):
        check(word in out, f"info {name}: does not say {word!r}: {out!r}")
    return document


def some_edges(vertices, count, first):
    """With loops and duplicates; the last two vertices have none."""
    draw = random.Random(vertices * 1000 + count)
    edges = [(draw.randrange(first, first + vertices - 2), draw.randrange(first, first + vertices - 2))
             for _ in range(count)]
    return edges + [edges[0], (first + 3, first + 3)]


def matrix_market(edges, vertices, kind, symmetry, value):
    return (f"%%MatrixMarket matrix coordinate {kind} {symmetry}\n% one\n{vertices} {vertices} {len(edges)}\n" +
            "".join(f"{a} {b}{value}\n" for a, b in edges))


def formats():
    n = 90
    from_1, from_0 = some_edges(n, 160, 1), some_edges(n, 160, 0)
    lower = sorted({(max(a, b), min(a, b)) for a, b in from_1})
    dimacs = f"c roads\np sp {n} {len(from_1)}\n" + "".join(f"a {a} {b} 7\n" for a, b in from_1)
    listed = 1 + max(max(e) for e in from_0)
    cases = [
        ("general.mtx", matrix_market(from_1, n, "pattern", "general", ""), Graph(n, from_1, True, 1)),
        ("real.mtx.gz", matrix_market(from_1, n, "real", "general", " 0.5"), Graph(n, from_1, True, 1, True)),
        ("symmetric.mtx", matrix_market(lower, n, "pattern", "symmetric", ""), Graph(n, lower, False, 1)),
        ("roads.gr", dimacs, Graph(n, from_1, True, 1, True)),
        ("roads.gr.gz", dimacs, Graph(n, from_1, True, 1, True)),
        ("list.txt", "# from to\n" + "".join(f"{a}\t{b}\n" for a, b in from_0), Graph(listed, from_0)),
        ("list.csv", "".join(f"{a},{b},2.5\n" for a, b in from_0), Graph(listed, from_0, weighted=True)),
    ]
    for name, text, graph in cases:
        file = write(name, text)
        bfs(file, graph)
        bfs(file, graph, source=graph.first + graph.vertices - 1)
        if graph.directed:
            bfs(file, graph.undirected(), "--undirected", "--threads", "1", source=graph.first + 5)
        got = info(file)
        expected = {"vertices": graph.vertices, "edges": graph.edges(), "directed": graph.directed,
                    "weighted": graph.weighted, "first_vertex": graph.first,
                    "greatest_degree": max(map(len, graph.to.values())),
                    "vertices_without_edges": graph.without_edges(),
                    "dropped_loops": sum(a == b for a, b in graph.given), "file_bytes": os.path.getsize(file)}
        for key, value in expected.items():
            check(got.get(key) == value, f"info {name}: {key} is {got.get(key)}, not {value}")
        check(got.get("graph", "").startswith(name) or name in got.get("graph", ""), f"info {name}: {got}")
        kept = [(a, b) for a, b in graph.given if a != b]
        if graph.directed:
            check(got.get("dropped_duplicates") == len(kept) - graph.edges(), f"info {name}: {got}")
        converted = path(name + ".csr")
        code, out, err = run("graph", "convert", file, converted)
        check(code == 0 and err == "" and "written" in out, f"convert {name}: {code} {out}{err}")
        bfs(converted, graph)
        again = info(converted)
        check(all(again.get(k) == got.get(k) for k in ("vertices", "edges", "directed", "weighted", "first_vertex")),
              f"convert {name}: {again}, not {got}")
    check(info(path("list.txt"), "--undirected").get("directed") is False, "info --undirected is directed")


def generators():
    chain = Graph(60, [(v, v + 1) for v in range(59)], False)
    bfs("chain:60", chain)
    bfs("chain:60", chain, "--repeat", "2", source=17)
    grid = [(9 * y + x, 9 * y + x + 1) for y in range(7) for x in range(8)]
    grid += [(9 * y + x, 9 * y + x + 9) for y in range(6) for x in range(9)]
    bfs("grid:7x9", Graph(63, grid, False), source=40)
    for name, vertices in (("kronecker:7,seed=5", 128), ("random:150,degree=4", 150), ("grid:9x9,removed=0.4", 81)):
        code, document, out, err = run_json("graph", "bfs", name, "--check", "--repeat", "3", "--device", "host:0")
        if check(code == 0 and not err, f"bfs {name}: {code} {out}{err}"):
            result, row = document["result"], document["rows"][0]
            check(result["vertices"] == vertices and 1 < result["reached"] <= vertices, f"bfs {name}: {result}")
            check(row["repeats"] == 3 and "load_gb_per_s" not in row, f"bfs {name}: {row}")
            check(document["bench"] == "graph bfs" and document["device"] == "host:0", f"bfs {name}: {document}")
            check("checked" in out and "edges/s" in out and "kronecker" not in err, f"bfs {name}: {out}")
    code, out, err = run("graph", "bfs", "chain:5", "--device", "host:0", "--json", "-")
    check(code == 0 and json.loads(out)["result"]["checked"] is False, f"--json -: {code} {out}{err}")
    code, out, err = run("graph", "info", "chain:5", "--json", "-")
    check(code == 0 and json.loads(out)["edges"] == 4 and "file_bytes" not in out, f"info --json -: {code} {out}{err}")


def weights():
    code, out, err = run("graph", "convert", "grid:5x6", path("weighted.csr"), "--random-weights", "7")
    check(code == 0 and not err, f"convert --random-weights: {code} {out}{err}")
    check(info(path("weighted.csr")).get("weighted") is True, "convert --random-weights gave none")
    bfs(path("weighted.csr"), Graph(30, [(6 * y + x, 6 * y + x + 1) for y in range(5) for x in range(5)] +
                                    [(6 * y + x, 6 * y + x + 6) for y in range(4) for x in range(6)], False))
    write("directed.txt", "0 1\n2 1\n1 1\n")
    code, out, err = run("graph", "convert", path("directed.txt"), path("both.csr"), "--undirected")
    check(code == 0 and not err and "1 loops" in out, f"convert --undirected: {code} {out}{err}")
    bfs(path("both.csr"), Graph(3, [(0, 1), (2, 1)], False))
    # The number of the first vertex stays.
    write("one.mtx", "%%MatrixMarket matrix coordinate pattern general\n4 4 1\n3 4\n")
    run("graph", "convert", path("one.mtx"), path("one.csr"))
    bfs(path("one.csr"), Graph(4, [(3, 4)], True, 1))
    bfs(path("one.csr"), Graph(4, [(3, 4)], True, 1), source=4)
    bfs("chain:1", Graph(1, [], False))


def outcome(algorithm, name, *options):
    """Runs it with --check, --output and --json; the result, its row and the lines."""
    what = f"{algorithm} {os.path.basename(name)} {options}"
    code, document, out, err = run_json("graph", algorithm, name, "--check", "--device", "host:0",
                                        "--output", path("out.txt"), *options)
    if not check(code == 0 and err == "" and document["rows"], f"{what}: exit code {code}: {out}{err}"):
        return {}, {}, []
    check(document["rows"][0]["valid"] and "checked" in out, f"{what}: {document['rows']}")
    return document["result"], document["rows"][0], [line.split(" ") for line in lines_of("out.txt")]


def shortest_paths():
    draw = random.Random(4)
    edges = [(draw.randrange(1, 60), draw.randrange(1, 60), draw.randrange(0, 50)) for _ in range(200)]
    file = write("weighted.gr", f"p sp 62 {len(edges)}\n" + "".join(f"a {a} {b} {w}\n" for a, b, w in edges))
    distance, waiting = {edges[0][0]: 0}, [edges[0][0]]
    while waiting:  # Bellman and Ford; whole numbers, so that sums are exact
        v = waiting.pop()
        for a, b, w in edges:
            if a == v and distance[v] + w < distance.get(b, 10**9):
                distance[b] = distance[v] + w
                waiting.append(b)
    result, row, lines = outcome("sssp", file, "--source", str(edges[0][0]))
    check(result.get("reached") == len(distance) and result.get("farthest") == max(distance.values()), f"sssp: {result}")
    check([(v, d) for v, d, _ in lines] == [(str(v), str(distance.get(v, "-"))) for v in range(1, 63)], "sssp: --output")
    check(row.get("waves", 0) >= 1 and row["search_bytes"] > 0, f"sssp: {row}")
    outcome("sssp", "grid:8x8", "--random-weights", "3")
    result, _, _ = outcome("sssp", "chain:30")
    check(result.get("farthest") == 29, f"sssp of a chain: {result}")


def components():
    file = write("parts.txt", "0 1\n2 1\n4 3\n6 7\n7 8\n8 6\n")
    result, row, lines = outcome("cc", file)
    check((result.get("components"), result.get("largest")) == (4, 3), f"cc: {result}")
    check(lines == [[str(v), str(c)] for v, c in enumerate([0, 0, 0, 3, 3, 5, 6, 6, 6])], f"cc: {lines}")
    check(row.get("largest_vertices") == 3, f"cc: {row}")
    outcome("cc", "random:200,degree=2")


def ranks():
    file = write("ring.mtx", "%%MatrixMarket matrix coordinate pattern general\n4 4 4\n1 2\n2 3\n3 4\n4 1\n")
    result, _, lines = outcome("pagerank", file)
    check(all(abs(float(r) - 0.25) < 1e-3 for _, r in lines) and lines[0][0] == "1", f"pagerank of a ring: {lines}")
    check(abs(result.get("damping", 0) - 0.85) < 1e-6 and result.get("rounds", 0) > 1, f"pagerank: {result}")
    result, _, lines = outcome("pagerank", "random:60,degree=4", "--tolerance", "1e-3", "--damping", "0.5")
    check(abs(sum(float(r) for _, r in lines) - 1) < 1e-3, f"pagerank: {lines}")


def empty():
    empties = {"empty.mtx": "%%MatrixMarket matrix coordinate pattern general\n0 0 0\n",
               "empty.gr": "p sp 0 0\n"}
    for name, text in empties.items():
        file = write(name, text)
        check(info(file).get("vertices") == 0, f"info {name}")
        code, out, err = run("graph", "convert", file, path("empty.csr"))
        check(code == 0 and not err, f"convert {name}: {code} {out}{err}")
        got = info(path("empty.csr"))
        check((got.get("vertices"), got.get("edges"), got.get("greatest_degree")) == (0, 0, 0), f"empty.csr: {got}")
        for graph in (file, path("empty.csr")):
            refused(["bfs", graph], "has no vertices")


def refused(arguments, *named):
    device = ["--device", "host:0"] if arguments[:1] in (["bfs"], ["sssp"], ["cc"], ["pagerank"]) and "--device" not in arguments else []
    code, out, err = run("graph", *arguments, *device)
    check(code == 2, f"{arguments}: exit code {code}, not 2: {out}{err}")
    check(err.count("\n") == 1 and err.startswith("grosr: "), f"{arguments}: not one line: {err!r}")
    check(all(n in err for n in named), f"{arguments}: does not say {named}: {err!r}")
    check(out == "", f"{arguments}: work had begun: {out!r}")


def small_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))


def bad_input():
    good = write("good.gr", "p sp 4 2\na 1 2 1\na 2 3 1\n")
    kept = write("kept.txt", "kept\n")
    write("negative.gr", "p sp 2 1\na 1 2 -1\n")
    before = set(os.listdir(FOLDER.name))
    none = path(os.path.join("none", "x"))
    for arguments, *named in (
            ([], "bfs, sssp, cc, pagerank, convert"), (["frob"], "frob"), (["bfs"], "GRAPH"), (["info"], "GRAPH"), (["convert"], "GRAPH"),
            (["convert", good], "OUT"), (["bfs", good, "more"], "more"), (["bfs", good, "--deep"], "--deep"),
            (["bfs", path("none")], "none"), (["info", path("none")], "none"), (["bfs", FOLDER.name], FOLDER.name),
            (["bfs", "chain:x"], "chain"), (["info", "grid:3"], "grid"), (["convert", "chain:x", none], "none"),
            (["bfs", good, "--source", "0"], "--source is 0", "1 to 4"), (["bfs", good, "--source", "5"], "1 to 4"),
            (["bfs", "chain:9", "--source", "9"], "0 to 8"), (["bfs", good, "--source", "-1"], "-1"),
            (["bfs", good, "--source", "x"], '"x"'), (["bfs", good, "--source", "5G"], "5G"),
            (["bfs", good, "--source", "x", "--output", kept], '"x"'),
            (["bfs", good, "--source", "9", "--output", kept], "1 to 4"),
            (["bfs", good, "--source", "9", "--output", path("new.txt")], "1 to 4"),
            (["bfs", good, "--output", none], "--output", "none"), (["bfs", good, "--output", ""], "--output"),
            (["bfs", good, "--output", FOLDER.name], "--output", "directory"), (["bfs", good, "--output", "-"], "-"),
            (["bfs", good, "--output", good], "good.gr", "another"), (["bfs", good, "--json", none], "--json"),
            (["bfs", good, "--trace", none], "--trace", "none"),
            (["bfs", good, "--trace", good], "good.gr", "another"), (["bfs", good, "--json", good], "good.gr", "another"),
            (["bfs", good, "--trace", "-"], "--trace -", "path"),
            (["bfs", good, "--trace", path("x"), "--json", path("x")], "--trace", "--json", "another"),
            (["bfs", good, "--trace", path("x"), "--output", path("x")], "--trace", "--output", "another"),
            (["bfs", good, "--repeat", "0"], "--repeat"), (["bfs", good, "--threads", "0"], "--threads"),
            (["bfs", good, "--threads", "x"], "--threads"), (["bfs", good, "--device", "mars"], "mars"),
            (["bfs", good, "--random-weights", "1"], "--random-weights"), (["info", good, "--source", "1"], "--source"),
            (["sssp", good, "--source", "0"], "1 to 4"), (["cc", good, "--source", "1"], "--source"),
            (["pagerank", good, "--damping", "1"], "--damping", '"1"'), (["pagerank", good, "--damping", "nan"], "nan"),
            (["pagerank", good, "--tolerance", "1e-9"], "1e-9"), (["pagerank", good, "--tolerance", "x"], '"x"'),
            (["sssp", path("negative.gr")], "negative.gr:2:"),
            (["info", good, "--json", none], "--json"), (["info", good, "--json", good], "good.gr", "another"),
            (["convert", good, good], "good.gr", "another"),
            (["convert", good, none], "none"), (["convert", good, FOLDER.name], "directory"),
            (["convert", good, kept, "--random-weights", "0"], "--random-weights"),
            (["convert", path("none"), kept], "none"), (["convert", path("none"), path("new.csr")], "none"),
            (["convert", good, "/dev/full"], "/dev/full")):
        refused(arguments, *named)
    check(lines_of("kept.txt") == ["kept"], "what was refused changed the file of an earlier run")
    check(set(os.listdir(FOLDER.name)) == before, f"left behind: {set(os.listdir(FOLDER.name)) - before}")
    check(lines_of("good.gr")[0] == "p sp 4 2", "the input was written to")
    # The disk is full: the search was done, its results are lost.
    code, document, out, err = run_json("graph", "bfs", good, "--output", "/dev/full", "--device", "host:0")
    check(code == 1 and err.count("\n") == 1 and "/dev/full" in err, f"--output /dev/full: {code} {out}{err}")
    check(document["rows"] and "/dev/full" in document["error"], f"--output /dev/full: {document}")
    # A disk without room for all of it: what stood there stays.
    for arguments, expected in ((["convert", "grid:100x100"], 2),
                                (["bfs", "grid:100x100", "--device", "host:0", "--output"], 1)):
        for name in ("earlier.txt", "not-yet.txt"):
            if name == "earlier.txt":
                write(name, "earlier\n")
            before = set(os.listdir(FOLDER.name))
            code, out, err = run("graph", *arguments, path(name), preexec_fn=small_files)
            check(code == expected and err.count("\n") == 1 and "File too large" in err, f"{arguments}: {code} {out}{err}")
            check(set(os.listdir(FOLDER.name)) == before, f"{arguments} {name}: left {set(os.listdir(FOLDER.name)) ^ before}")
            if os.path.exists(path(name)):
                check(lines_of(name) == ["earlier"], f"{arguments}: changed what stood there")
    # A longer file of an earlier run is replaced as a whole.
    write("long.txt", "old\n" * 1000)
    code, out, err = run("graph", "bfs", good, "--output", path("long.txt"), "--device", "host:0")
    check(lines_of("long.txt") == ["1 0 1", "2 1 1", "3 2 2", "4 - -"], f"--output: {lines_of('long.txt')[:9]}")


def traces():
    """--trace: every part of the search is on one of the tracks, one after the other, up to the last level."""
    for graph, names in (("chain:50", {"wave of one block"}), ("kronecker:10", {"from below"})):
        code, out, err = run("graph", "bfs", graph, "--trace", path("trace.json"), "--device", "host:0")
        check(code == 0, f"--trace: {code} {out}{err}")
        with open(path("trace.json"), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        parts = [e for e in events if e["ph"] == "X"]
        tracks = {e["tid"] for e in events if e["name"] == "thread_name"}
        check(names <= {e["name"] for e in parts}, f"--trace {graph}: {parts}")
        check(all(e["tid"] in tracks and e["dur"] >= 0 for e in parts), f"--trace {graph}: tracks of {parts}")
        check(all(a["ts"] + a["dur"] <= b["ts"] + 0.002 for a, b in zip(parts, parts[1:])),
              f"--trace {graph}: parts overlap: {parts}")
        check({e["name"] for e in events if e["ph"] == "C"} == {"blocks called", "level"}, f"--trace {graph}: counters")
    check(max(e["args"]["level"] for e in parts) > 1, f"--trace: levels of {parts}")


def help_texts():
    for arguments in ([], ["bfs"], ["sssp"], ["cc"], ["pagerank"], ["convert"], ["info"]):
        code, out, err = run("graph", *arguments, "--help")
        check(code == 0 and err == "" and "Examples:" in out and "  grosr graph " in out,
              f"graph {arguments} --help: {code} {out!r}{err!r}")


def interrupted():
    program = subprocess.Popen([CLI, "graph", "bfs", "chain:200000", "--device", "host:0", "--output",
                                path("cut.txt")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    time.sleep(1)
    check(program.poll() is None, "bfs chain:200000: ended at once")
    began = time.monotonic()
    program.send_signal(signal.SIGINT)
    try:
        program.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        program.kill()
        program.communicate()
    check(program.returncode == 130, f"Ctrl-C: exit code {program.returncode}")
    check(time.monotonic() - began < 5, "Ctrl-C: took too long")
    check(not os.path.exists(path("cut.txt")), "Ctrl-C: left an output without results")


formats()
generators()
weights()
shortest_paths()
components()
ranks()
empty()
bad_input()
traces()
help_texts()
interrupted()
FOLDER.cleanup()
finish("graph")
