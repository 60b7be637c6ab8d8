"""wordcount counts as Python does, says what it could not read, and stops on Ctrl-C."""

import json
import os
import random
import signal
import subprocess
import tempfile
import time

from apps import app, check, finish, long_path, remove_tree, run, write

PROGRAM = app("wordcount")
WORDS = ["include", "in", "clu", "aa", "aaa", "return", "x", "\xe4\xf6", "a word", "in", "z" * 64]
WINDOW = 65536  # what one call reads


def occurrences(word, text):
    count, at = 0, text.find(word)
    while at >= 0:
        count, at = count + 1, text.find(word, at + 1)
    return count


def expected(words, contents):
    return [sum(occurrences(w.encode("latin-1"), c) for c in contents) for w in words]


def count(*arguments, device="host:0", **options):
    return run("--device", device, *arguments, program=PROGRAM, **options)


def counts_of(out):
    return [int(line.split()[0]) for line in out.splitlines()]


def texts():
    r = random.Random(7)
    alphabet = [b"include", b"in", b"clu", b"a", b"aa", b" ", b"\n", b"return", b"x", b"\xe4\xf6", b"a word", b"\0"]
    some = lambda n: b"".join(r.choice(alphabet) for _ in range(n))  # noqa: E731
    at_edges = bytearray(b"." * (5 * WINDOW))
    for edge in range(WINDOW - 64, 5 * WINDOW - 64, WINDOW - 64):
        for k, word in enumerate((b"include", b"z" * 64)):
            for shift in range(-70 + 35 * k, 70, 71):
                at_edges[edge + shift:edge + shift + len(word)] = word
    for edge in range(WINDOW, 5 * WINDOW, WINDOW):
        at_edges[edge - 3:edge + 4] = b"include"
    return {
        "empty": b"",
        "one": b"x",
        "no newline": b"include\nreturn",
        "sub/plain.c": some(3000),
        "sub/deep/er.h": some(20000),
        "exactly": (b"include " * WINDOW)[:WINDOW],
        "one more": b"." * WINDOW + b"x",
        "large": some(150000),
        "edges": bytes(at_edges),
        "all a": b"a" * 70000,
    }


with tempfile.TemporaryDirectory(prefix="grosr-words-") as folder:
    tree, words = os.path.join(folder, "tree"), os.path.join(folder, "words")
    contents = texts()
    for name, text in contents.items():
        write(os.path.join(tree, name), text)
    with open(words, "w", encoding="latin-1") as file:
        file.write("\n".join(WORDS) + "\n")
    want = expected(WORDS, contents.values())
    code, out, err = count("--words", words, tree)
    check(code == 0 and err == "", f"exit code {code}: {err}")
    check(counts_of(out) == want, f"counted {counts_of(out)}, not {want}")

    both = os.path.join(tree, "sub"), os.path.join(tree, "one")
    want = expected(WORDS, [contents[n] for n in ("sub/plain.c", "sub/deep/er.h", "one")])
    code, out, err = count("--words", words, *both)
    check(code == 0 and counts_of(out) == want, f"two trees: {code}: {counts_of(out)}, not {want}: {err}")

    want = expected(WORDS, contents.values())
    for by in ("openmp", "vectorscan"):
        code, out, err = count("--words", words, "--by", by, tree)
        if code == 2 and "was built without" in err:
            check(err.count("\n") == 1, f"--by {by}: {err}")
            continue
        check(code == 0 and counts_of(out) == want, f"{by}: {code}: {counts_of(out)}, not {want}: {err}")

    path = os.path.join(folder, "out.json")
    code, out, err = count("--words", words, "--compare", "--repeats", "2", "--json", path, tree)
    check(code == 0, f"--compare: {code}: {out}{err}")
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    check(document["bench"] == "wordcount" and document["rows"][0]["valid"], f"--compare: {document}")
    check(document["rows"][0]["occurrences"] == sum(want), f"--compare: {document['rows'][0]}")

    empty = os.path.join(folder, "nothing")
    os.mkdir(empty)
    code, out, err = count("--words", words, empty)
    check(code == 0 and counts_of(out) == [0] * len(WORDS), f"no files: {code}: {out}{err}")

    # What is no file, what may not be read, what goes away, what lies deep.
    odd = os.path.join(folder, "odd")
    write(os.path.join(odd, "good"), "include")
    os.mkfifo(os.path.join(odd, "pipe"))
    os.symlink("good", os.path.join(odd, "link"))
    long_name, deep = long_path(odd, 4000)
    os.write(deep, b"return return")
    os.close(deep)
    code, out, err = count("--words", words, odd)
    want = expected(WORDS, [b"include", b"return return"])
    check(code == 0 and counts_of(out) == want, f"odd files: {code}: {counts_of(out)}, not {want}: {err}")

    secret = os.path.join(odd, "secret")
    write(secret, "include")
    os.chmod(secret, 0)
    if not os.access(secret, os.R_OK):
        code, out, err = count("--words", words, odd)
        check(code == 1 and counts_of(out) == want, f"no permission: {code}: {out}{err}")
        check(err.count("\n") == 1 and secret in err and "Permission denied" in err, f"no permission: {err}")
    os.unlink(secret)

    # Files that go while it lists and reads: no crash, and a line for each that it had listed.
    many = os.path.join(folder, "many")
    for i in range(3000):
        write(os.path.join(many, f"{i:04}"), "x")
    program = subprocess.Popen([PROGRAM, "--device", "host:0", "--words", words, many], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               errors="replace")
    for i in reversed(range(3000)):
        os.unlink(os.path.join(many, f"{i:04}"))
    out, err = program.communicate(timeout=60)
    x = counts_of(out)[WORDS.index("x")] if out else -1
    missing = err.count("No such file or directory; it is left out\n")
    check(program.returncode == (1 if missing else 0), f"vanishing: {program.returncode}: {err[:300]}")
    check(x >= 0 and x + missing <= 3000 and err.count("\n") == missing, f"vanishing: {x} read, {err[:300]}")

    # Nothing to do: one line each, exit code 2.
    bad = os.path.join(folder, "bad")
    write(bad, "y" * 65 + "\n")
    write(os.path.join(folder, "none"), "\n\n")
    write(os.path.join(folder, "lots"), "w\n" * 65)
    for arguments, said in [
        (("--words", bad, tree), "65 bytes"),
        (("--json", os.path.join(folder, "new"), tree), "--compare"),
        (("--words", os.path.join(folder, "none"), tree), "has no word"),
        (("--words", os.path.join(folder, "lots"), tree), "more than 64 words"),
        (("--words", folder + "/missing", tree), "cannot be read"),
        (("--by", "magic", tree), "use gpu, openmp or vectorscan"),
        (("--threads", "9999", tree), "--threads"),
        ((os.path.join(folder, "missing"),), "No such file"),
        ((), "TREE"),
    ]:
        code, out, err = count(*arguments)
        check(code == 2 and out == "" and said in err and err.count("\n") == 1, f"{arguments}: {code}: {out}{err}")

    # Ctrl-C.
    big = os.path.join(folder, "big")
    write(os.path.join(big, "0"), b"some text to go through \n" * 40000)
    for i in range(1, 100):
        os.link(os.path.join(big, "0"), os.path.join(big, str(i)))
    program = subprocess.Popen([PROGRAM, "--device", "host:0", "--compare", "--repeats", "10000", big],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               errors="replace")
    time.sleep(1.5)
    began = time.monotonic()
    program.send_signal(signal.SIGINT)
    out, err = program.communicate(timeout=60)
    took = time.monotonic() - began
    check(program.returncode == 130 and took < 5, f"Ctrl-C: {program.returncode} after {took:.1f} s: {out}{err}")
    remove_tree(odd)

finish("wordcount")
