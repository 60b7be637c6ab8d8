"""The tour counts words as `wc -w` would, and says what it left out."""

import os
import random
import shutil
import socket
import tempfile

from cli import CLI, check, finish, run, run_json

CHUNK = 64 * 1024
NOBODY = 65534


def made_files():
    """Names and contents that sit on the borders of chunks, loads and batches."""
    pick = random.Random(7)
    word = lambda: bytes(pick.choice(b"abcdefghijklmnop\x80\xff") for _ in range(pick.randint(1, 12)))
    text = lambda size: b" ".join(word() for _ in range(size // 4))[:size]
    return {
        "empty": b"",
        "one": b"word",
        "spaces": b" \t\n\v\f\r" * 100,
        "no-spaces": b"x" * (3 * CHUNK + 17),
        "chunk": text(CHUNK),
        "chunk-and-one": text(CHUNK) + b"y",
        "border-word": b"a" * (CHUNK - 2) + b" bb" + b" c",
        "border-space": b"a" * (CHUNK - 1) + b" " + b"b" * 10,
        "lines/of/text": text(300_000).replace(b"a ", b"a\n"),
        "late-zero": b"word " * 2000 + b"\0 \0",
        "odd \n name": b"two words",
        "larger-than-a-batch": (b"0123456 " * 3 + b"word") * 350_000,
        "many/" + "x" * 100: text(5000),
        **{f"many/{i}": text(i) for i in range(1, 200)},
    }


def write_all(folder, files):
    for name, content in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as out:
            out.write(content)


def words_row(document):
    return next(row for row in document["rows"] if row["name"] == "words")


def tour(folder, **options):
    code, document, out, err = run_json("tour", folder, "--device", "host:0", **options)
    check(code == 0 and document is not None, f"tour {folder}: exit code {code}: {out} {err}")
    check(all(row["valid"] for row in document["rows"]), f"tour: {document['rows']}")
    check(all(f"  {row['name']} " in out for row in document["rows"]), f"tour: a part has no line: {out}")
    calls = document["system_calls"]["calls"]
    check(calls and all(sum(c["latency_log2_ns"].values()) == c["calls"] for c in calls), f"tour: {calls}")
    return words_row(document)


with tempfile.TemporaryDirectory(prefix="grosr-tour-") as folder:
    files = made_files()
    write_all(folder, files)
    row = tour(folder)
    check(row["files"] == len(files), f"{row['files']} files, not {len(files)}")
    check(row["bytes"] == sum(map(len, files.values())), f"{row['bytes']} bytes")
    expected = sum(len(content.split()) for content in files.values())
    check(row["words"] == expected, f"{row['words']} words, not {expected}")
    check("notes" not in row, f"nothing was left out, but {row.get('notes')}")

with tempfile.TemporaryDirectory(prefix="grosr-tour-") as folder:
    write_all(folder, {"text": b"three little words", "a/binary": b"\x7fELF\0\0 words", "b/zero": b"x" * 8000 + b"\0"})
    os.symlink(".", os.path.join(folder, "loop"))
    os.symlink("..", os.path.join(folder, "a", "up"))
    os.symlink("text", os.path.join(folder, "again"))
    os.symlink("nowhere", os.path.join(folder, "broken"))
    os.mkfifo(os.path.join(folder, "pipe"))
    socket.socket(socket.AF_UNIX).bind(os.path.join(folder, "socket"))
    row = tour(folder)
    check(row["files"] == 1 and row["words"] == 3, f"{row}")
    check("left out: 2 binary, 4 links, 2 special" in row.get("notes", []), f"left out: {row.get('notes')}")

with tempfile.TemporaryDirectory(prefix="grosr-tour-") as folder:
    row = tour(folder)
    check(row["files"] == 0 and row["words"] == 0 and "no text under" in row["notes"][0], f"empty folder: {row}")

with tempfile.TemporaryDirectory(prefix="grosr-tour-") as folder:
    work, program = os.path.join(folder, "work"), os.path.join(folder, "grosr")
    write_all(work, {"good": b"two words", "secret": b"not for you", "closed/text": b"nor this"})
    shutil.copy(CLI, program)
    options = {"program": program, "preexec_fn": lambda: os.setuid(NOBODY)} if os.geteuid() == 0 else {}
    os.chmod(folder, 0o755)
    os.chmod(os.path.join(work, "secret"), 0)
    os.chmod(os.path.join(work, "closed"), 0)
    row = tour(work, **options)
    check(row["files"] == 1 and row["words"] == 2, f"unreadable: {row}")
    check("left out: 2 unreadable" in row.get("notes", []), f"unreadable: {row.get('notes')}")
    code, out, err = run("tour", os.path.join(work, "closed"), "--device", "host:0", **options)
    check(code == 2 and err.count("\n") == 1 and "cannot be read" in err, f"unreadable folder: {code} {err!r}")
    os.chmod(os.path.join(work, "closed"), 0o755)

finish("tour")
