"""How the tests of the command-line program run it. GROSR_CLI is its path."""

import json
import os
import subprocess
import sys
import tempfile

CLI = os.environ.get("GROSR_CLI", "build/grosr")
LIMIT_S = 120  # far more than any call needs, sanitizers included

failures = 0


def run(*arguments, program=CLI, **options):
    """Runs the program; returns (exit code, stdout, stderr)."""
    done = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace", timeout=LIMIT_S, **options)
    return done.returncode, done.stdout, done.stderr


def run_json(*arguments, **options):
    """Runs with --json FILE added; returns (exit code, the document or None, stdout, stderr)."""
    with tempfile.TemporaryDirectory(prefix="grosr-json-") as folder:
        if "preexec_fn" in options:  # runs as somebody else
            os.chmod(folder, 0o777)
        path = os.path.join(folder, "out.json")
        code, out, err = run(*arguments, "--json", path, **options)
        document = None
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
        left = [name for name in os.listdir(folder) if name != "out.json"]
        check(not left, f"{arguments} left {left} behind")
        return code, document, out, err


def check(good, otherwise):
    """Notes a failure; the test goes on."""
    global failures
    if not good:
        failures += 1
        print(f"FAILED: {otherwise}", flush=True)
    return good


def finish(what):
    print(f"{what}: {failures} failures")
    sys.exit(1 if failures else 0)
