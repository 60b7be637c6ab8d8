"""Where no thread can be started, a command says so in one line and fails; it does not abort."""

import os
import resource

from cli import check, finish, run

SOMEBODY = 61234  # who runs nothing else
# Looking for leaks, LeakSanitizer starts a thread.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"


def without_threads():
    """The limit counts the processes of a user, and is not for root."""
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(SOMEBODY)
        os.setuid(SOMEBODY)


for arguments in (["--version"], ["devices"], ["bench", "latency", "--device", "host:0"],
                  ["graph", "bfs", "kronecker:4", "--device", "host:0"]):
    code, out, err = run(*arguments, preexec_fn=without_threads)
    check(code in (1, 2), f"{arguments}: exit code {code}: {out} {err}")
    check(err.startswith("grosr: ") and err.count("\n") == 1 and "ulimit -u" in err, f"{arguments}: says {err!r}")

finish("no_thread")
