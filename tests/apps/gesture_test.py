"""gesture: all ways find the same, stages work as programs, bad input is one line, and nothing is left behind."""

import os
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from apps import app, check, finish, run  # noqa: E402
from cli import run_json  # noqa: E402

GESTURE = app("gesture")
WAYS = ["host", "pipes", "modular", "by-hand", "best-by-hand", "flow"]
ON = ["--device", "host:0"]
SOON_S = 20


def gesture(*arguments, **options):
    return run(*arguments, program=GESTURE, **options)


def measured(*arguments, ways=WAYS, courses=1, **options):
    code, document, out, err = run_json(*arguments, *ON, program=GESTURE, **options)
    rows = document["rows"] if document else []
    check(code == 0 and len(rows) == len(ways) * courses, f"{arguments}: exit code {code}: {out} {err}")
    for row in rows:
        check(row["valid"] and (row["frames_per_s"] > 0 or row["samples"] < 2), f"{arguments}: {row}")
        check(row["p50_us"] <= row["p99_us"] <= row["p999_us"] <= row["max_us"], f"{arguments}: quantiles: {row}")
        check("gpu_percent" not in row and "gpu_memory_bytes" not in row, f"{arguments}: the host backend is no GPU: {row}")
    return rows


def refused(arguments, said, code=2, **options):
    got, out, err = gesture(*arguments, **options)
    check(got == code and err.count("\n") == 1 and said in err and err.startswith("gesture: "), f"{arguments}: {got} {out} {err}")


# Sizes whose rows do not fill warps, all radii, both modes; each row was compared with plain loops.
for size, radius, seed in (("33x17", "1", "1"), ("32x24", "2", "7"), ("16x16", "4", "9")):
    rows = measured("--size", size, "--radius", radius, "--seed", seed, "--frames", "5", "--fps", "0", "--recorded", "5")
    check(len({row["events"] for row in rows}) == 1, f"{size}: not as many events each way: {rows}")
rows = measured("--size", "24x20", "--radius", "3", "--frames", "4", "--fps", "120", "--way", "flow", "--way", "by-hand", ways=["by-hand", "flow"])
check("baselines" in rows[-1] and len(rows[-1]["baselines"]) == 1, f"what flow stands beside: {rows[-1]}")
measured("--size", "24x20", "--seconds", "0.05", "--fps", "0", "--fps", "500", "--in-flight", "1", "--way", "best-by-hand", "--way", "flow",
         ways=["best-by-hand", "flow"], courses=2)

measured("--size", "24x20", "--seconds", "0.05", "--fps", "0", "--fps", "500", "--threads", "0", "--way", "flow", ways=["flow"], courses=2)

with tempfile.TemporaryDirectory(prefix="grosr-gesture-") as folder:
    path = os.path.join(folder, "hands.rec")
    code, out, err = gesture("record", "--size", "32x24", "--seconds", "1", "--rate", "30", "--seed", "3", "-o", path)
    check(code == 0 and out == "" and err == "", f"record: {code} {out} {err}")
    with open(path, "rb") as file:
        recorded = file.read()
    frame_bytes = 2 * 32 * 24 * 2
    check(len(recorded) == 32 + 30 * frame_bytes, f"record: {len(recorded)} bytes")

    # The same bytes by a pipe; other ones by another seed.
    drawn = subprocess.run([GESTURE, "record", "--size", "32x24", "--seed", "3"], capture_output=True, timeout=SOON_S)
    check(drawn.stdout == recorded, "record to standard output differs from the file")
    drawn = subprocess.run([GESTURE, "record", "--size", "32x24", "--seed", "4"], capture_output=True, timeout=SOON_S)
    check(len(drawn.stdout) == len(recorded) and drawn.stdout != recorded, "another seed draws the same")
    measured("--from", path, "--fps", "0", "--frames", "40", "--way", "flow", "--way", "host", ways=["host", "flow"])
    piped = subprocess.run([GESTURE, "--from", "-", "--fps", "0", "--frames", "3", "--way", "by-hand", *ON], input=recorded,
                           capture_output=True, timeout=SOON_S)
    check(piped.returncode == 0 and b"by-hand, unconstrained" in piped.stdout, f"--from -: {piped}")

    # Stages that a shell connects.
    line = "$G capture $F --fps 0 --frames 30 | $G transform $ON | $G filter $ON --radius 2 | $G detect $ON"
    shell = subprocess.run(["bash", "-c", "set -o pipefail; " + line.replace("$G", GESTURE).replace("$F", path).replace("$ON", " ".join(ON))],
                           capture_output=True, text=True, timeout=SOON_S)
    events = shell.stdout.splitlines()
    check(shell.returncode == 0 and shell.stderr == "", f"pipes of a shell: {shell}")
    check(len(events) > 30 and all(e.startswith("frame ") and e.endswith(" mm") for e in events), f"events: {events[:5]}")
    check(sum(" enters " in e for e in events) >= 2 and any(" pushes " in e for e in events) and any(" releases " in e for e in events),
          f"two hands that push: {events}")

    def broken(content, said):
        name = os.path.join(folder, "broken.rec")
        with open(name, "wb") as file:
            file.write(content)
        refused(["--from", name, *ON], said)

    def header(cameras=2, width=32, height=24, frames=30, rate=30):
        return recorded[:8] + struct.pack("<6I", cameras, width, height, frames, rate, 0)

    body = recorded[32:]
    check(header() == recorded[:32], "the header is not what this test takes it for")
    broken(b"", "within the header")
    broken(recorded[:20], "within the header")
    broken(b"PNG" + recorded[3:], "no recording")
    broken(recorded[:-1], "frame 30 of 30")
    broken(recorded[: 32 + 2 * frame_bytes + 7], "frame 3 of 30")
    broken(recorded + b"x", "more bytes")
    broken(header(width=31) + body, "more bytes")
    broken(header(frames=31) + body, "frame 31 of 31")
    broken(header(cameras=3) + body, "3 cameras")
    broken(header(width=3) + body, "3x24")
    broken(header(rate=0) + body, "0 a second")
    broken(header(width=2048, height=2048, frames=4_000_000_000) + body, "4 GiB")
    refused(["--from", os.path.join(folder, "none.rec"), *ON], "none.rec")
    refused(["--from", path, "--seed", "3", *ON], "--seed")
    refused(["record", "-o", os.path.join(folder, "no", "where.rec"), "--size", "16x16"], "where.rec", code=1)
    os.remove(os.path.join(folder, "broken.rec"))
    check(os.listdir(folder) == ["hands.rec"], f"left behind: {os.listdir(folder)}")

for arguments, said in (
    (["--size", "320"], "--size"),
    (["--size", "15x24"], "--size"),
    (["--size", "32x24x2"], "--size"),
    (["--radius", "5"], "--radius"),
    (["--fps", "-1"], "--fps"),
    (["--fps", "nan"], "--fps"),
    (["--frames", "0"], "--frames"),
    (["--in-flight", "13"], "--in-flight"),
    (["--threads", "many"], "--threads"),
    (["--recorded", "100000", "--size", "2048x2048"], "4 GiB"),
    (["--way", "magic"], "magic"),
    (["--device", "cuda:99"], "cuda:99"),
    (["--json", "/nowhere/out.json"], "--json"),
    (["dance"], "dance"),
):
    refused(arguments, said)
for stage in ("transform", "filter", "detect"):
    refused([stage, *ON], "ended before anything came", code=3)
    other = subprocess.run([GESTURE, stage, *ON], input=b"no stream at all" * 4, capture_output=True, timeout=SOON_S)
    check(other.returncode == 2 and other.stderr.count(b"\n") == 1 and b"no stream of" in other.stderr, f"{stage}: {other}")
code, out, err = gesture("--help")
check(code == 0 and "Examples" in out and "capture" in out, f"--help: {code} {err}")


# ---- processes that end in the midst ----

def children_of(process):
    """By stage: the processes that it has started."""
    found = {}
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
            if parent == process.pid:
                with open(f"/proc/{name}/cmdline", encoding="utf-8", errors="replace") as file:
                    words = file.read().split("\0")
                if len(words) > 1:
                    found[words[1]] = int(name)
        except (OSError, ValueError, IndexError):
            continue  # it has ended
    return found


def start(*arguments):
    return subprocess.Popen([GESTURE, *arguments, "--size", "32x24", *ON], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def end_of(process, what):
    began = time.monotonic()
    try:
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        err += "(it hung)"
    check(time.monotonic() - began < SOON_S, f"{what}: took {time.monotonic() - began:.1f} s to end")
    return process.returncode, out, err


def gone(pids):
    return not any(os.path.exists(f"/proc/{pid}/fd") and open(f"/proc/{pid}/cmdline", "rb").read() for pid in pids)


for stage in ("capture", "transform", "filter", "detect"):
    program = start("--way", "pipes", "--fps", "100", "--seconds", "1000")
    stages, until = {}, time.monotonic() + SOON_S
    while len(stages) < 4 and time.monotonic() < until:
        stages = children_of(program)
        time.sleep(0.02)
    time.sleep(0.3)
    if check(stage in stages, f"stages of pipes: {stages}"):
        os.kill(stages[stage], signal.SIGKILL)
    code, out, err = end_of(program, f"{stage} killed")
    check(code == 1 and err.count("\n") == 1 and f"stage {stage} was ended by signal 9" in err, f"{stage} killed: {code} {out} {err}")
    check(gone(stages.values()), f"{stage} killed: {stages} are there still")

for way in ("pipes", "flow", "best-by-hand", "host"):
    for fps in ("0", "5"):
        program = start("--way", way, "--fps", fps, "--seconds", "1000")
        program.stdout.readline()
        time.sleep(0.5)
        stages = children_of(program)
        program.send_signal(signal.SIGINT)
        code, out, err = end_of(program, f"{way} at {fps} fps interrupted")
        check(code == 130 and "interrupted" in out and err == "", f"{way} at {fps} fps interrupted: {code} {out} {err}")
        check(gone(stages.values()), f"{way} interrupted: {stages} are there still")

finish("gesture")
