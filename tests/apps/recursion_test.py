"""fib, queens and uts: their results are those known, in little memory too; bad input is one line, exit code 2."""

import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from cli import check, finish, run, run_json  # noqa: E402

APPS = os.environ.get("GROSR_APPS", "build/host/apps")
FULL = float(os.environ.get("GROSR_TEST_SCALE", "1")) >= 1
QUEENS = [None, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200]


def call(name, *arguments):
    return run(*arguments, "--device", "host:0", program=os.path.join(APPS, name))


def result(name, *arguments):
    """Runs it; the result in its document, or an empty one."""
    code, document, out, err = run_json(*arguments, "--device", "host:0", program=os.path.join(APPS, name))
    check(code == 0 and not err, f"{name} {arguments}: exit code {code}: {out}{err}")
    if not document or not document["rows"]:
        return {}
    row = document["rows"][0]
    check(row["valid"] and row["tasks"] >= 0, f"{name} {arguments}: {row}")
    return {**document["result"], "baselines": row.get("baselines", []), "row": row}


def refused(code, arguments, *named):
    name, *rest = arguments
    got, out, err = call(name, *rest)
    check(got == code, f"{arguments}: exit code {got}, not {code}: {err}")
    check(err.count("\n") == 1 and err.startswith(f"{name}: "), f"{arguments}: not one line: {err!r}")
    check(all(n in err for n in named), f"{arguments}: does not say {named}: {err!r}")


def fibonacci():
    a, b = 0, 1
    for n in range(16):
        if n < 4 or n > 12:
            got = result("fib", str(n))
            check(got.get("fib") == a, f"fib {n}: {got}")
            check(len(got.get("baselines", [])) == 1, f"fib {n}: was not compared with the CPU")
        a, b = b, a + b
    for memory in ("9M", "16M"):
        got = result("fib", "20", "--memory", memory, "--repeat", "2", "--no-check")
        check(got.get("fib") == 6765 and not got["baselines"], f"fib 20 in {memory}: {got}")
        check(got["row"]["memory_bytes"] <= int(memory[:-1]) << 20, f"fib 20: took more than {memory}")


def queens():
    for n in range(1, 11 if FULL else 9):
        for base in sorted({0, 3, n - 1, n, 12}):
            got = result("queens", str(n), "--base", str(base))
            check(got.get("solutions") == QUEENS[n], f"{n} queens, base {base}: {got}")
    got = result("queens", "12", "--base", "6", "--memory", "9M")
    check(got.get("solutions") == QUEENS[12], f"12 queens: {got}")


def trees():
    # Each is compared with the CPU, whose numbers and formulas are its own.
    for tree in ("-d 0", "-d 1 -r 5", "-d 6 -r 19", "-d 4 -b 12 -r 3", "-d 2 -b 1000 -r 1", "-d 20 -b 0.9 -r 2",
                 "-t 0 -b 0", "-t 0 -b 300 -q 0.12 -m 8 -r 42", "-t 0 -b 1 -q 0.999 -m 1 -r 2",
                 "-t 0 -b 5 -q 0.009 -m 100", "-t 0 -b 65535 -q 0 -m 1"):
        got = result("uts", *tree.split(), "--check")
        check(got.get("nodes", 0) >= 1, f"uts {tree}: {got}")
    if FULL:
        for name, nodes, leaves, depth in (("T1", 4130071, 3305118, 10), ("T3", 4112897, 3599034, 1572)):
            got = result("uts", name, "--no-check", "--memory", "12M")
            check((got.get("nodes"), got.get("leaves"), got.get("depth")) == (nodes, leaves, depth),
                  f"uts {name}: {got}")


def bad_input():
    for name, size in (("fib", "5"), ("queens", "5"), ("uts", "T1")):
        for wrong, *named in (("--device mars", "mars"), ("--memory 3", "--memory", '"3"'),
                              ("--memory 1M", "memory_limit"), ("--memory 12KB", "12KB"), ("--repeat 0", "--repeat"),
                              ("--json /nowhere/x", "/nowhere/x"), ("--check --no-check", "--check"), ("more", "more"),
                              ("--deep", "--deep")):
            got = [name, size, *wrong.split()]
            code, out, err = run(*got[1:], *([] if "--device" in got else ["--device", "host:0"]),
                                 program=os.path.join(APPS, name))
            check(code == 2 and err.count("\n") == 1 and all(n in err for n in named), f"{got}: {code}: {out}{err!r}")
        code, out, err = call(name, "--help")
        check(code == 0 and "Examples:" in out, f"{name} --help: {code}: {out}{err}")
    for arguments, *named in (("fib", "N"), ("fib x", '"x"'), ("fib 61", "from 0 to 60"), ("fib -1", "-1"),
                              ("queens 0", "from 1 to 23"), ("queens 24", "from 1 to 23"),
                              ("queens 8 --base 13", "--base", "from 0 to 12"), ("uts", "T1XL"), ("uts T9", "T9"),
                              ("uts T1 -r 4", "one or the other"), ("uts -t 7", '"7"'), ("uts -a 2", '"2"'),
                              ("uts -t 0 -d 3", "-d"), ("uts -q 0.1", "-t 0"), ("uts -t 0 -q 0.5 -m 4", "below 1"),
                              ("uts -b -3", "-b"), ("uts -b nan", "-b"), ("uts -b x", "-b"), ("uts -d 65536", "-d"),
                              ("uts -r -1", "-r"), ("uts -t 0 -b 3.5 -q 0.1", "whole"), ("uts -t 0 -q 2", "-q"),
                              ("uts -t 0 -q 0 -m 101", "-m")):
        refused(2, arguments.split(), *named)


def interrupted():
    for arguments in (["fib", "45"], ["queens", "19", "--base", "3"], ["uts", "T1XXL"]):
        program = subprocess.Popen([os.path.join(APPS, arguments[0]), *arguments[1:], "--device", "host:0"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(1)
        check(program.poll() is None, f"{arguments}: ended at once")
        began = time.monotonic()
        program.send_signal(signal.SIGINT)
        try:
            program.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            program.kill()
            program.communicate()
        check(program.returncode == 130, f"{arguments}, Ctrl-C: exit code {program.returncode}")
        check(time.monotonic() - began < 5, f"{arguments}, Ctrl-C: took too long")


fibonacci()
queens()
trees()
bad_input()
interrupted()
finish("recursion")
