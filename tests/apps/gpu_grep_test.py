"""gpu-grep prints what GNU grep prints, in the order of paths, and ends with the same exit code."""

import os
import random
import signal
import subprocess
import tempfile
import time

from apps import app, check, finish, long_path, remove_tree, run, write

PROGRAM = app("gpu-grep")
SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
WINDOW = 65536  # what one call reads
C = dict(os.environ, LC_ALL="C")


def bytes_of(program, arguments, folder):
    done = subprocess.run([*program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=120,
                          env=C, cwd=folder)
    return done.returncode, done.stdout, done.stderr


def compare(folder, arguments):
    """Against GNU grep, whose order of files is the directory's."""
    code, out, err = bytes_of([PROGRAM, "--device", "host:0"], arguments, folder)
    grep_code, grep_out, grep_err = bytes_of(["grep"], arguments, folder)
    same = sorted(out.splitlines(True)) == sorted(grep_out.splitlines(True)) and code == grep_code
    if not check(same, f"{arguments}: exit code {code}, grep's {grep_code}: {err[:200]} {grep_err[:200]}"):
        ours, grep = set(out.splitlines()), set(grep_out.splitlines())
        short = lambda lines: [line[:80] for line in list(lines)[:3]]  # noqa: E731
        print("  only here:", short(ours - grep), "only grep:", short(grep - ours))
    said = sorted(err.replace(b"gpu-grep", b"grep").splitlines())
    check(said == sorted(grep_err.splitlines()), f"{arguments}: {err[:300]} {grep_err[:300]}")
    return out


def grep(*arguments, **options):
    return run("--device", "host:0", *arguments, program=PROGRAM, **options)


# The project's own sources.
PARTS = ["include", "src", "docs", "CMakeLists.txt"]
for arguments in [
    ["-rn", "-F", "pread"], ["-rn", "-E", "pread|pwrite"], ["-rc", "-E", "sys::[a-z_]+\\("],
    ["-rl", "-E", "^#pragma once$"], ["-rni", "-F", "todo"], ["-rnw", "-F", "at"],
    ["-rnw", "-E", "a.?b|x+y*|in"], ["-rn", "-E", "^$"], ["-rnE", "[[:upper:]]{4,}"], ["-rnE", "[^ -~]"],
    ["-rnE", "(foo|ba[rz])?qux|^ *//.*\\.$"], ["-rnw", "-E", "^int|void$"],
    ["-rn", "-F", "-e", "a[0]", "-e", "->b", "-e", "::"], ["-rnE", "x*"], ["-rnE", "\\w+_\\w+\\s*="],
    ["-rn", "--include", "*.hpp", "-F", "atomic"], ["-rnE", "a{2,3}|b{0}c{1,}d"], ["-rF", "nothing has th\\is"],
]:
    compare(SOURCES, [*arguments, *PARTS])


def odd_files(folder):
    r = random.Random(5)
    write(os.path.join(folder, "empty"), "")
    write(os.path.join(folder, "newlines"), "\n\n\n")
    write(os.path.join(folder, "no end"), "first\nneedle at the end")
    write(os.path.join(folder, "binary"), b"needle\0\nneedle\n")
    write(os.path.join(folder, "binary without"), b"\0hay\n")
    write(os.path.join(folder, "latin"), b"n\xe4dle\nneedle \xff\xfe\n")
    write(os.path.join(folder, "[brackets]"), "needle\n[n]\n")
    line = lambda n: b"." * n + r.choice([b"needle", b"hay"])  # noqa: E731
    write(os.path.join(folder, "lines"), b"\n".join(line(r.randrange(200)) for _ in range(6000)))
    write(os.path.join(folder, "many"), b"needle\n" * 120000)
    # Lines that begin, end, and have what is searched for at every place around a window's edges.
    edges = bytearray((b"x" * 40 + b"\n") * (4 * WINDOW // 41))
    for edge in (WINDOW, WINDOW - 4097, 2 * (WINDOW - 4097), 2 * WINDOW - 4097, 3 * (WINDOW - 4097)):
        for shift in range(-250, 250, 13):
            edges[edge + shift:edge + shift + 7] = b"needle\n" if shift % 2 else b"\nneedle"
    write(os.path.join(folder, "edges"), bytes(edges))
    write(os.path.join(folder, "long lines"), b"\n".join(b"y" * n + b"needle" + b"z" * n + b"end" for n in
                                                         (10, 3000, 5000, 40000, 70000, 200000, 20)) + b"\n")
    write(os.path.join(folder, "exact"), (b"a" * 63 + b"\n") * (WINDOW // 64))
    write(os.path.join(folder, "sub", "x.c"), "int needle;\nint needles;\nNEEDLE\n")


with tempfile.TemporaryDirectory(prefix="grosr-grep-") as folder:
    odd_files(folder)
    for arguments in [
        ["-rn", "needle", "."], ["-rc", "needle", "."], ["-rl", "needle", "."], ["-rnw", "needle", "."],
        ["-rni", "-F", "Needle", "."], ["-rnE", "^needle|needle$", "."], ["-rnE", "zend$", "."], ["-rnE", "^y+n", "."],
        ["-n", "needle", "edges"], ["-c", "needle", "many"], ["needle", "no end", "newlines"], ["-h", "needle", "sub/x.c", "no end"],
        ["-Hn", "needle", "sub/x.c"], ["-c", "^", "newlines", "empty", "no end", "exact"], ["-rn", "-F", "[n]", "."],
        ["-n", "-F", "needle", "[brackets]"], ["-nE", "[n]", "[brackets]"], ["-c", "a", "exact"],
        ["-rn", "--include=*.c", "needle", "."], ["-rnE", "-e", "hay$", "-e", "(needle){1,2}", "."],
        ["-rn", "-e", "zz\nend", "."], ["needle", "missing", "no end"], ["nothing", "no end"],
        ["-rn", "needle"], ["-rlE", "n\xe4dle".encode("latin-1"), "."],
    ]:
        compare(folder, arguments)

    code, out, err = grep("-l", "-F", "needle", folder)
    names = out.splitlines()
    check(names == sorted(names) and len(names) > 5, f"the order of paths: {names}")

    os.mkfifo(os.path.join(folder, "pipe"))
    os.symlink("no end", os.path.join(folder, "link"))
    long_name, deep = long_path(folder, 4000)
    os.write(deep, b"deep needle\n")
    os.close(deep)
    code, out, err = grep("-h", "-F", "deep needle", folder)
    check(code == 0 and out == "deep needle\n" and err == "", f"a pipe, a link, a long path: {code}: {out}{err}")

    secret = os.path.join(folder, "secret")
    write(secret, "needle")
    os.chmod(secret, 0)
    if not os.access(secret, os.R_OK):
        code, out, err = grep("-F", "at the end", folder)
        check(code == 2 and "at the end" in out, f"no permission: {code}: {out}{err}")
        check(err == f"gpu-grep: {secret}: Permission denied\n", f"no permission: {err}")
    os.chmod(secret, 0o600)

    for pattern, said in [("a(b", "without a )"), ("a)b", "without a ("), ("[a", "without a ]"), ("*a", "repeats nothing"),
                          ("a{2", "write \\{"), ("\\1", "is not there"), ("a\\", "ends in a backslash"),
                          ("[[:nope:]]", "begins no class"), ("[b-a]", "turn it around"), ("a{300}", "more than 255"),
                          ("(a|b)*a(a|b){18}", "states"), ("(" * 300, "nests too deeply"), ("((a{200}){200}){200}", "places")]:
        code, out, err = grep(pattern, folder)
        check(code == 2 and out == "" and said in err and err.count("\n") == 1, f"{pattern[:40]!r}: {code}: {out}{err[:300]}")
    code, out, err = grep()
    check(code == 2 and "no pattern" in err, f"no arguments: {code}: {out}{err}")

    # Nowhere to write to: 2, also for who cannot say so.
    text = os.path.join(folder, "text")
    write(text, "some text\n")
    with open("/dev/full", "wb") as full:
        for arguments, out, err in [(["some", text], full, subprocess.PIPE), (["some", folder + "/no"], subprocess.PIPE, full)]:
            done = subprocess.run([PROGRAM, "--device", "host:0", *arguments], stdout=out, stderr=err, text=True, timeout=60)
            check(done.returncode == 2, f"/dev/full: {arguments}: {done.returncode}: {done.stderr}")

    # Ctrl-C.
    big = os.path.join(folder, "big")
    write(os.path.join(big, "0"), b"some text to go through \n" * 200000)
    for i in range(1, 400):
        os.link(os.path.join(big, "0"), os.path.join(big, str(i)))
    program = subprocess.Popen([PROGRAM, "--device", "host:0", "-c", "s.*x.*z", big], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    began = time.monotonic()
    program.send_signal(signal.SIGINT)
    out, err = program.communicate(timeout=60)
    took = time.monotonic() - began
    check(program.returncode == 130 and took < 5, f"Ctrl-C: {program.returncode} after {took:.1f} s: {out}{err}")
    for name in os.listdir(folder):
        if name.startswith("dd"):
            remove_tree(os.path.join(folder, name))

finish("gpu-grep")
