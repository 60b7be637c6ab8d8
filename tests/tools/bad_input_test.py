"""Whatever cannot be done is said in one line on stderr, with exit code 2, before any work starts."""

import os
import tempfile

from cli import check, finish, run

with tempfile.TemporaryDirectory(prefix="grosr-bad-") as folder:
    file = os.path.join(folder, "file")
    kept = os.path.join(folder, "kept.json")
    for path in (file, kept):
        with open(path, "w", encoding="utf-8") as out:
            out.write("{}\n")

    # (arguments, what the line must name)
    CASES = [
        (["frobnicate"], "frobnicate"),
        (["--frobnicate"], "--frobnicate"),
        (["devices", "extra"], "extra"),
        (["bench"], "there are limits, latency"),
        (["bench", "nosuch"], "nosuch"),
        (["bench", "limits", "7"], "\"7\""),
        (["bench", "throughput", "many"], "\"many\""),
        (["bench", "throughput", "0"], "\"0\""),
        (["bench", "throughput", "-5"], "-5"),
        (["bench", "throughput", "1.5"], "\"1.5\""),
        (["bench", "throughput", "99999999999999999999"], "whole number"),
        (["bench", "throughput", "20G"], "\"20G\""),
        (["bench", "throughput", "10kk"], "\"10kk\""),
        (["bench", "throughput", "10", "10", "10"], "too many"),
        (["bench", "spawn", "31"], "DEPTH"),
        (["bench", "allocator", "64", "10", "64", "3"], "MODE"),
        (["bench", "latency", "--repeats", "0"], "--repeats"),
        (["bench", "latency", "--repeats", "x"], "--repeats"),
        (["bench", "latency", "--repeats", ""], "--repeats"),
        (["bench", "latency", "--repeats"], "--repeats"),
        (["bench", "latency", "--device"], "--device"),
        (["bench", "latency", "--device", "cuda:99"], "cuda:99"),
        (["bench", "latency", "--device", "host:99"], "host:99"),
        (["bench", "latency", "--device", "toaster"], "toaster"),
        (["bench", "latency", "--device", ""], "host:0"),
        (["bench", "latency", "--json", os.path.join(folder, "none", "x.json")], "--json"),
        (["bench", "latency", "--json", folder], "folder"),
        (["bench", "latency", "--json", os.path.join(file, "x.json")], "--json"),
        (["bench", "latency", "--device", "host:99", "--json", kept], "host:99"),
        (["tour", os.path.join(folder, "none")], "there is none"),
        (["tour", file], "no folder"),
        (["tour", ""], "folder"),
        (["tour", folder, folder], "not expected"),
        (["tour", folder, "--device", "cuda:99"], "cuda:99"),
        (["tour", folder, "--json", folder], "folder"),
        (["devices", "--json", os.path.join(folder, "none", "x.json")], "--json"),
    ]
    for arguments, named in CASES:
        code, out, err = run(*arguments)
        check(code == 2, f"{arguments}: exit code {code}, not 2")
        check(err.count("\n") == 1 and err.startswith("grosr: "), f"{arguments}: not one line: {err!r}")
        check(named in err, f"{arguments}: does not say {named!r}: {err!r}")
        check(out == "", f"{arguments}: work had begun: {out!r}")

    with open(kept, encoding="utf-8") as unchanged:
        check(unchanged.read() == "{}\n", "a run that never started changed the file of an earlier one")
    check(sorted(os.listdir(folder)) == ["file", "kept.json"], f"left behind: {os.listdir(folder)}")

finish(f"bad input, {len(CASES)} cases")
