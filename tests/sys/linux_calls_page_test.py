"""docs/linux-calls.md is the page of src/sys/linux_calls.def, and a stale page is noticed."""
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools/system_calls_table.py"


def check(*page):
    """Returns (exit code, what it said) of a check of the page, else of the one in docs/."""
    done = subprocess.run([sys.executable, SCRIPT, "--check", *page], capture_output=True,
                          text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


code, said = check()
if code != 0:
    sys.exit(f"FAILED: {said}")

with tempfile.TemporaryDirectory(prefix="grosr-page-") as folder:
    stale = pathlib.Path(folder) / "stale.md"
    text = (ROOT / "docs/linux-calls.md").read_text()
    for content in (text.replace("useful", "useless", 1), text + "\n", ""):
        stale.write_text(content)
        code, said = check(stale)
        lines = said.splitlines()
        if code != 1 or len(lines) != 1 or "run tools/system_calls_table.py" not in lines[0]:
            sys.exit(f"FAILED: a stale page: exit code {code}, {said!r}")
    stale.unlink()
    code, said = check(stale)
    if code != 1 or len(said.splitlines()) != 1:
        sys.exit(f"FAILED: no page: exit code {code}, {said!r}")
print("the page of system calls: good")
