"""Ctrl-C during any command stops the device's work, keeps what was done, and exits with 130 soon."""

import json
import os
import signal
import subprocess
import tempfile
import time

from cli import CLI, check, finish, run_json

SOON_S = 5
MANY = str(int(20e6 * min(1.0, float(os.environ.get("GROSR_TEST_SCALE", "1")))))
# Commands that would run for minutes, and whether the signal comes after their first row.
LONG = [
    (["bench", "soak", "1000"], False),
    (["bench", "spawn", "26"], False),
    (["bench", "pairs", MANY], True),
    (["bench", "throughput", MANY], True),
    (["bench", "baselines", "900k", "100000"], False),
    (["bench", "allocator", "1000", "10", "--repeats", "1M"], False),
    (["bench", "allocator-stress", "1000"], True),
    (["bench", "latency", "--repeats", "1M"], False),
    (["bench", "submit", "--repeats", "1M"], False),
    (["bench", "tail", "--repeats", "1M"], False),
    (["bench", "priority", "100", "--repeats", "1M"], False),
    (["bench", "pair-of-programs", "28"], False),
    (["bench", "bfs", "--repeats", "1000"], False),
    (["graph", "bfs", "kronecker:17", "--repeat", "1000"], False),
    (["graph", "pagerank", "kronecker:17", "--repeat", "1000"], False),
]


def interrupt(arguments, after_row):
    with tempfile.TemporaryDirectory(prefix="grosr-interrupt-") as folder:
        path = os.path.join(folder, "out.json")
        program = subprocess.Popen([CLI, *arguments, "--device", "host:0", "--json", path], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        before = program.stdout.readline()
        while after_row and before and " min " not in before:
            before = program.stdout.readline()
        # Its title is out before a bench makes its graph: the search is to be interrupted.
        time.sleep(1.5 if arguments[:2] == ["bench", "bfs"] else 0.5)
        began = time.monotonic()
        program.send_signal(signal.SIGINT)
        try:
            out, err = program.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            program.kill()
            out, err = program.communicate()
        took = time.monotonic() - began
        check(program.returncode == 130, f"{arguments}: exit code {program.returncode}: {before}{out}{err}")
        check(took < SOON_S, f"{arguments}: took {took:.1f} s to end")
        check("interrupted: " in out, f"{arguments}: does not say that it was interrupted: {out!r}")
        if check(os.listdir(folder) == ["out.json"], f"{arguments}: {os.listdir(folder)}, not out.json: {err}"):
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
            check(document["interrupted"] is True, f"{arguments}: the document does not say so")
            check(not after_row or document["rows"], f"{arguments}: what was done is missing: {document}")


for arguments, after_row in LONG:
    interrupt(arguments, after_row)

# The last row of this one has threads on the CPU, which run when the row before has just been printed.
SYSCALLS = ["bench", "syscalls", "--repeats", "1", "--device", "host:0"]
code, document, out, err = run_json(*SYSCALLS)
if check(code == 0 and document is not None, f"{SYSCALLS}: exit code {code}: {out} {err}"):
    last_but_one = document["rows"][-2]["name"]
    for turn in range(4):
        program = subprocess.Popen([CLI, *SYSCALLS], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while (line := program.stdout.readline()) and line.strip() != last_but_one:
            pass
        time.sleep(0.03 * turn)
        program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=60)
        check(program.returncode == 130 and err == "", f"last row, turn {turn}: exit code {program.returncode}: {out} {err}")

finish("interrupt")
