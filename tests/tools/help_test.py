"""Help teaches with examples, --version says what was built, devices lists what there is."""

import json
import os
import tempfile

from cli import check, finish, run

for arguments in (["--help"], ["devices", "--help"], ["bench", "--help"], ["tour", "--help"]):
    code, out, err = run(*arguments)
    check(code == 0 and err == "", f"{arguments}: exit code {code}, stderr {err!r}")
    check("Example" in out and "  grosr " in out, f"{arguments}: no examples in {out!r}")

code, out, err = run()
check(code == 2 and err.splitlines()[-1].startswith("grosr: no command"), f"no command: {code} {err!r}")

code, out, err = run("--version")
check(code == 0, f"--version: exit code {code}")
for word in ("grosr ", "commit ", "backends: host", "compiler: "):
    check(word in out, f"--version does not say {word!r}: {out!r}")
check("cuda" not in out or "nvcc" in out, f"--version names no nvcc: {out!r}")

code, out, err = run("bench", "--list")
check(code == 0 and "baselines" in out and "(exp-b-plus)" in out and "pair-child" not in out, f"bench --list: {code} {out!r}")

code, out, err = run("devices")
check(code == 0 and "host:0" in out, f"devices: {code} {out!r} {err!r}")
check("cuda:0" in out or "no GPU here: " in out, f"devices does not say why there is no GPU: {out!r}")

code, out, err = run("devices", "--json")
document = json.loads(out)
names = [d["name"] for d in document["devices"]]
check(code == 0 and "host:0" in names, f"devices --json: {code} {names}")
check(all(d["sms"] > 0 and d["memory_bytes"] > 0 for d in document["devices"]), f"devices --json: {out!r}")
check(bool(document["cuda_status"]) == ("cuda:0" not in names), "cuda_status does not fit the list")

with tempfile.TemporaryDirectory(prefix="grosr-help-") as folder:
    path = os.path.join(folder, "devices.json")
    code, out, err = run("devices", "--json", path)
    with open(path, encoding="utf-8") as file:
        check(code == 0 and json.load(file)["devices"] and "host:0" in out, f"devices --json FILE: {code} {out!r}")

finish("help")
