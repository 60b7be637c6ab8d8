"""permute: what it writes can be put back, what cannot be written is said in one line, Ctrl-C ends it."""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from cli import check, finish, run  # noqa: E402

PERMUTE = os.path.join(os.environ.get("GROSR_APPS", "build/host/apps"), "permute")


def permute(*arguments, **options):
    return run(*arguments, "--device", "host:0", program=PERMUTE, **options)


def content(path):
    with open(path, "rb") as file:
        return file.read()


def refused(arguments, code, *named, **options):
    got, out, err = permute(*arguments, **options)
    check(got == code, f"{arguments}: exit code {got}, not {code}: {err}")
    check(err.count("\n") == 1 and err.startswith("permute: "), f"{arguments}: not one line: {err!r}")
    check(all(n in err for n in named), f"{arguments}: does not say {named}: {err!r}")
    check("verified" not in out, f"{arguments}: says that it is done: {out!r}")


def round_trip(folder, ways):
    plain, hidden, back = (os.path.join(folder, name) for name in ("plain", "hidden", "back"))
    with open(plain, "wb") as file:
        file.write(os.urandom(12 * 4096))
    key = ["--key", "77", "--rounds", "3", "--block", "4K"]
    code, out, err = permute("--from", plain, *key, *ways, hidden)
    check(code == 0 and "verified" in out, f"{ways}: {out} {err}")
    was, now = content(plain), content(hidden)
    check(now != was, f"{ways}: nothing was permuted")
    for at in range(0, len(was), 4096):
        words = [sorted(data[at + i:at + i + 4] for i in range(0, 4096, 4)) for data in (was, now)]
        check(words[0] == words[1], f"{ways}: block at {at} holds other words")
    code, out, err = permute("--from", hidden, *key, *ways, "--undo", back)
    check(code == 0 and content(back) == was, f"{ways}: not put back: {out} {err}")
    wrong = permute("--from", hidden, "--key", "78", "--rounds", "3", "--block", "4K", "--undo", back)
    check(wrong[0] == 0 and content(back) != was, f"{ways}: another key puts it back as well")


def interrupted(folder):
    out = os.path.join(folder, "long")
    program = subprocess.Popen([PERMUTE, "--bytes", "1G", "--rounds", "500", out, "--device", "host:0"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1)
    check(program.poll() is None and os.path.exists(out), "the long one did not begin")
    began = time.monotonic()
    program.send_signal(signal.SIGINT)
    try:
        program.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        program.kill()
        program.communicate()
    check(program.returncode == 130, f"Ctrl-C: exit code {program.returncode}")
    check(time.monotonic() - began < 5, "Ctrl-C: took too long")
    check(not os.path.exists(out), "Ctrl-C: left half a file behind")


def small_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


with tempfile.TemporaryDirectory(prefix="grosr-permute-") as folder:
    for ways in (["--mode", "strong"], ["--mode", "strong", "--started"], [], ["--started"]):
        round_trip(folder, ways)
    plain, new = os.path.join(folder, "plain"), os.path.join(folder, "new")
    for ways in ([], ["--started"]):
        refused(["--bytes", "64K", "/dev/full", *ways], 1, "/dev/full")
        refused(["--bytes", "256K", new, *ways], 1, new, preexec_fn=small_files)
        check(not os.path.exists(new), "a file that is not complete was left behind")
    refused(["--bytes", "64K", "/dev/full"], 1, "No space left")
    refused(["--bytes", "256K", new], 1, "limit", preexec_fn=small_files)
    odd = os.path.join(folder, "odd")
    with open(odd, "wb") as file:
        file.write(b"12345")
    refused([], 2, "OUT")
    pipe = os.path.join(folder, "pipe")
    os.mkfifo(pipe)
    refused(["--from", pipe, new], 2, "no regular file")
    if float(os.environ.get("GROSR_TEST_SCALE", "1")) >= 1:  # so many that one block is a launch
        code, out, err = permute("--bytes", "16K", "--block", "16K", "--rounds", "4096", os.path.join(folder, "many"))
        check(code == 0, f"4096 rounds: {code}: {out}{err}")
    refused(["--from", os.path.join(folder, "none"), new], 2, "none", "No such file")
    refused(["--from", odd, new], 2, "5 bytes", "--block")
    refused(["--from", folder, new], 2, folder)
    refused(["--from", plain, plain], 2, "name another")
    check(len(content(plain)) == 12 * 4096, "a refused file was changed")
    refused(["--undo", new], 2, "--from")
    refused(["--block", "3000", new], 2, "power of two")
    refused(["--block", "32K", new], 2, "--block")
    refused(["--block", "1M", new], 2, '"1M"', "from 512 to 16384")
    refused(["--bytes", "x", new], 2, "--bytes")
    refused(["--bytes", "12KB", new], 2, "12KB")
    refused(["--rounds", "0", new], 2, "--rounds")
    refused(["--mode", "weak", new], 2, "weak")
    refused([os.path.join(folder, "none", "new")], 2, "No such file")
    check(not os.path.exists(new), "what was refused left a file behind")
    interrupted(folder)

finish("permute")
