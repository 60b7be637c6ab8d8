"""How the tests of apps run a server. GROSR_APPS is the folder of the programs."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

APPS = os.environ.get("GROSR_APPS", "build/host/apps")
LIMIT_S = 60  # far more than any call needs, sanitizers included

failures = 0


def program(name):
    return os.path.join(APPS, name)


def run(name, *arguments):
    """Runs the program; returns (exit code, stdout, stderr)."""
    done = subprocess.run([program(name), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace", timeout=LIMIT_S)
    return done.returncode, done.stdout, done.stderr


class Server:
    """A server on a free port of the host backend."""

    def __init__(self, name, *arguments):
        self.process = subprocess.Popen(
            [program(name), "serve", "--device", "host:0", "--port", "0", *arguments], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.first = self.process.stdout.readline()
        found = re.search(r"127\.0\.0\.1:(\d+)", self.first)
        if not found:
            self.process.kill()
            raise RuntimeError(f"{name} does not say where it answers: {self.first!r} {self.process.stderr.read()!r}")
        self.port = int(found.group(1))

    def end(self, send=signal.SIGINT):
        """Ends it; returns (exit code, what it said last, seconds it took)."""
        began = time.monotonic()
        if send:
            self.process.send_signal(send)
        try:
            out, err = self.process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
        check(err == "", f"the server complains: {err!r}")
        return self.process.returncode, out, time.monotonic() - began


@contextmanager
def server(name, *arguments):
    s = Server(name, *arguments)
    try:
        yield s
    finally:
        if s.process.poll() is None:
            s.process.kill()
            s.process.communicate()


def check(good, otherwise):
    """Notes a failure; the test goes on."""
    global failures
    if not good:
        failures += 1
        print(f"FAILED: {otherwise}", flush=True)
    return good


def check_bad_input(name, cases):
    """Each case, (arguments, words): one line on stderr with these words, and exit code 2."""
    for arguments, words in cases:
        code, out, err = run(name, *arguments)
        check(code == 2 and out == "", f"{name} {arguments}: exit code {code}, {out!r}")
        check(err.count("\n") == 1 and err.startswith(f"{name}: "), f"{name} {arguments}: not one line: {err!r}")
        for word in words:
            check(word in err, f"{name} {arguments}: does not say {word!r}: {err!r}")


def check_help(name, commands):
    for arguments in [["--help"], *[[c, "--help"] for c in commands]]:
        code, out, err = run(name, *arguments)
        check(code == 0 and err == "", f"{name} {arguments}: exit code {code}, stderr {err!r}")
        check("Example" in out and f"{name} " in out, f"{name} {arguments}: no examples in {out!r}")
    code, _, err = run(name)
    check(code == 2 and err.splitlines()[-1].startswith(f"{name}: no command"), f"{name}: {code} {err!r}")


def finish(what):
    print(f"{what}: {failures} failures")
    sys.exit(1 if failures else 0)
