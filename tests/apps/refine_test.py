"""refine: what it computes is right, host memory follows the mesh where madvise is called, and only there."""

import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from cli import check, finish, run, run_json  # noqa: E402

REFINE = os.path.join(os.environ.get("GROSR_APPS", "build/host/apps"), "refine")
STEPS = 16
with open(REFINE, "rb") as program:
    SANITIZED = re.search(b"__[at]san_init", program.read()) is not None
SLACK = 1 << 20  # what the program takes for itself meanwhile


def steps_of(document, name):
    return [row for row in document["rows"] if row["name"].startswith(name + ", step ")]


def check_footprint(document):
    given, kept = steps_of(document, "with madvise"), steps_of(document, "without madvise")
    check(len(given) == len(kept) == STEPS, f"{len(given)} and {len(kept)} steps, not {STEPS}")
    check(all(row["valid"] for row in document["rows"]), "a row is not valid")
    most = max(row["refined_bytes"] for row in given)
    ever = sum(row["given_back_blocks"] for row in document["rows"] if "given_back_blocks" in row) * 65536
    check(0 < most < ever, f"at most {most} bytes are refined at once, {ever} at some time")
    if SANITIZED:
        return  # they have memory of their own for all that is touched
    for row in given:
        check(abs(row["rss_bytes"] - row["refined_bytes"]) < SLACK, f"memory does not follow the mesh: {row}")
    for before, row in zip(kept, kept[1:]):
        check(row["rss_bytes"] > before["rss_bytes"] - SLACK, f"memory went without madvise: {row}")
    check(abs(kept[-1]["rss_bytes"] - ever) < SLACK, f"{kept[-1]['rss_bytes']} bytes are left, not {ever}")


def refused(arguments, *named, code=2, **options):
    got, _, err = run(*arguments, "--device", "host:0", program=REFINE, **options)
    check(got == code, f"{arguments}: exit code {got}, not {code}: {err}")
    check(err.count("\n") == 1 and err.startswith("refine: "), f"{arguments}: not one line: {err!r}")
    check(all(n in err for n in named), f"{arguments}: does not say {named}: {err!r}")


def interrupted():
    program = subprocess.Popen([REFINE, "--steps", "10000", "--device", "host:0"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    time.sleep(1.5)
    check(program.poll() is None, "10,000 steps took no time")
    began = time.monotonic()
    program.send_signal(signal.SIGINT)
    try:
        program.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        program.kill()
        program.communicate()
    check(program.returncode == 130, f"Ctrl-C: exit code {program.returncode}")
    check(time.monotonic() - began < 5, "Ctrl-C: took too long")


def little_memory():
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


code, document, out, err = run_json("--side", "5", "--steps", str(STEPS), "--device", "host:0", program=REFINE)
if check(code == 0 and document is not None, f"exit code {code}: {out} {err}"):
    check_footprint(document)
refused(["extra"], "extra")
refused(["--side", "1"], "--side")
refused(["--side", "65"], "--side")
refused(["--steps", "x"], "--steps")
refused(["--threads", "0"], "--threads")
refused(["--json", os.path.join(tempfile.gettempdir(), "none", "x.json")], "--json")
if not SANITIZED:
    refused(["--side", "64", "--steps", "2"], "--side", "Cannot allocate memory", code=1, preexec_fn=little_memory)
interrupted()

finish("refine")
