#!/usr/bin/env python3
"""Makes docs/linux-calls.md, the table of Linux's system calls, from src/sys/linux_calls.def.

usage: tools/system_calls_table.py [--check] [PAGE]

Writes PAGE (default: docs/linux-calls.md). With --check it changes nothing and exits 1 when the
page is not the one that the list gives.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIST = ROOT / "src/sys/linux_calls.def"
CALL = re.compile(r'GROSR_LINUX_CALL\((\w+), (\w+), (\w+), (\w+), "([^"]*)",\s*"([^"]*)"\)')

CLASSES = {"useful": ("useful", "can be made for a GPU thread, and makes sense there"),
           "raw": ("useful, raw", "the same, with the policy `raw` alone: the server cannot check it"),
           "not_today": ("not today", "needs a thread that the kernel knows, or a signal to it"),
           "not_useful": ("not useful", "makes no sense on a GPU, or nowhere any more")}
GROUPS = {"files": "Files", "network": "Network", "memory": "Memory", "time": "Time",
          "identity": "Identity: who, where and how much", "process": "Process",
          "system": "System", "other": "Other"}
# What options.policy has to say for a call that is useful.
POLICIES = {"network": "`network`", "process": "`process`"}
REFUSED = {"not_today": "refused: `-ENOTRECOVERABLE`", "not_useful": "refused: `-EOPNOTSUPP`"}
WAITING = {"never": "no", "disk": "for the disk", "peer": "for a peer",
           "other": "for something else"}

HEAD = """# Linux's system calls on a GPU

The tables say what each system call of Linux (x86-64) means to GPU code, and the worst that it may wait for.
`tools/system_calls_table.py` makes this page from `src/sys/linux_calls.def`, the server's own list.

The policy that a call needs is a member of `options.policy`: *any* is the default one, which lets kernels use descriptors that they
have; `folders` says where paths lead; `raw` lets all calls through that are not refused, and checks none. A call that the policy does not let
through is `-EPERM`. Some arguments are refused though the call is not: [calls.md](calls.md#everything-else) says which.
"""


def calls():
    text = "\n".join(line for line in LIST.read_text().splitlines() if not line.startswith("//"))
    found = CALL.findall(text)
    if len(found) != text.count("GROSR_LINUX_CALL("):
        sys.exit(f"system_calls_table: {text.count('GROSR_LINUX_CALL(')} calls are in {LIST}, but "
                 f"{len(found)} can be read; write the others like those")
    for name, useful, group, waiting, _, _ in found:
        if useful not in CLASSES or group not in GROUPS or waiting not in WAITING:
            sys.exit(f"system_calls_table: {name} in {LIST} has a word that is not known among "
                     f"{useful}, {group}, {waiting}; correct it, or add it to this script")
    return found


def policy(useful, group, arguments):
    if useful in REFUSED:
        return REFUSED[useful]
    if useful == "raw":
        return "`raw`"
    kinds = arguments.split()
    needed = "`folders`" if any(k[0] == "p" for k in kinds) else POLICIES.get(group, "any")
    return needed + ("; `raw` for pointers that are not null" if any(k[0] == "r" for k in kinds) else "")


def page():
    found = calls()
    lines = [HEAD, "| class | what it says | calls | share |", "|---|---|---|---|"]
    for key, (name, meaning) in CLASSES.items():
        count = sum(useful == key for _, useful, *_ in found)
        lines.append(f"| {name} | {meaning} | {count} | {count / len(found):.0%} |")
    for key, title in GROUPS.items():
        lines += ["", f"## {title}", "", "| call | class | policy | may wait | note |", "|---|---|---|---|---|"]
        for name, useful, group, waiting, arguments, note in found:
            if group == key:
                lines.append(f"| `{name}` | {CLASSES[useful][0]} | {policy(useful, group, arguments)} | {WAITING[waiting]} | {note} |")
    return "\n".join(lines) + "\n"


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    if any(a in ("-h", "--help") for a in arguments):
        print(__doc__)
        return
    file = pathlib.Path(arguments[0]) if arguments else ROOT / "docs/linux-calls.md"
    new = page()
    if "--check" not in sys.argv:
        file.write_text(new)
    elif not file.exists() or file.read_text() != new:
        sys.exit(f"system_calls_table: {file} is not the page of src/sys/linux_calls.def; run "
                 f"tools/system_calls_table.py")


main()
