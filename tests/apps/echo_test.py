"""The echo server: what is sent comes back, whatever its size; it ends when told to."""

import json
import os
import re
import socket
import tempfile
import time

from served import Server, check, check_bad_input, check_help, finish, run, server


def client(port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(("127.0.0.1", port))
    s.settimeout(10)
    return s


def counted(text):
    """What the server says at its end: (datagrams, bytes, sum, dropped, failed)."""
    found = re.search(r"answered (\d+) datagrams of (\d+) bytes in all, whose values sum up to (\d+); "
                      r"dropped (\d+) .*; (\d+) calls failed", text)
    return tuple(map(int, found.groups())) if found else text


def echoes_every_size(by):
    with server("echo", "--by", by, "--bytes", "5000") as s, client(s.port) as c:
        sent = []
        for size in (0, 1, 2, 3, 15, 16, 17, 255, 256, 257, 1000, 1472, 4096, 4097, 4999, 5000):
            text = os.urandom(size)
            c.send(text)
            check(c.recv(70000) == text, f"by {by}: {size} bytes did not come back as they were sent")
            sent.append(text)
        c.send(bytes(5001))  # is dropped
        c.send(b"after")
        check(c.recv(70000) == b"after", f"by {by}: one that was too long was answered, or the next one was not")
        sent.append(b"after")
        code, out, took = s.end()
        check(code == 130 and took < 3, f"Ctrl-C: exit code {code} after {took:.1f} s")
        expected = (len(sent), sum(map(len, sent)), sum(map(sum, sent)), 1, 0)
        check(counted(out) == expected, f"by {by}: the kernel saw {counted(out)}, not {expected}")


def serves_many_at_once():
    with server("echo", "--threads", "2", "--blocks", "6") as s:
        clients = [client(s.port) for _ in range(16)]
        for round_number in range(4):
            for i, c in enumerate(clients):
                c.send(b"%d of %d" % (round_number, i))
            for i, c in enumerate(clients):
                check(c.recv(100) == b"%d of %d" % (round_number, i), f"client {i} got another one's datagram")
        for c in clients:
            c.close()
        s.end()


def drives_and_counts():
    with server("echo") as s:
        code, out, err = run("echo", "drive", "--port", str(s.port), "--seconds", "0.3", "--bytes", "100",
                             "--clients", "1", "--sockets", "2")
        check(code == 0 and " 0 wrong" in out, f"drive: exit code {code}: {out!r} {err!r}")
        s.end()
    code, out, err = run("echo", "drive", "--port", str(s.port), "--seconds", "0.2")
    check(code == 1 and err.count("\n") == 1, f"drive without a server: exit code {code}: {out!r} {err!r}")


def ends_by_itself():
    began = time.monotonic()
    s = Server("echo", "--seconds", "0.5")
    code, out, _ = s.end(send=None)
    check(code == 0 and time.monotonic() - began < 5, f"--seconds: exit code {code}")
    check(counted(out) == (0, 0, 0, 0, 0), f"--seconds: {out!r}")


def refuses():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = str(taken.getsockname()[1])
        for threads in ("1", "3"):
            check_bad_input("echo", [(["serve", "--device", "host:0", "--port", port, "--threads", threads],
                                      [port, "in use", "--port"])])
    check_bad_input("echo", [
        (["serve", "--device", "host:0", "--address", "nowhere"], ["--address", "nowhere"]),
        (["serve", "--device", "host:0", "--address", "192.0.2.1"], ["192.0.2.1", "--address"]),
        (["serve", "--device", "host:0", "--port", "70000"], ["--port", "70000"]),
        (["serve", "--device", "host:0", "--bytes", "65508"], ["--bytes"]),
        (["serve", "--device", "host:0", "--by", "lane"], ["lane"]),
        (["serve", "--device", "nowhere"], ["nowhere"]),
        (["drive", "--bytes", "15"], ["--bytes"]),
        (["drive", "--lost-after", "0"], ["--lost-after"]),
        (["drive", "--seconds", "nan"], ["--seconds", "nan"]),
        (["compare", "--device", "host:0", "--threads", "0"], ["--threads"]),
    ])


def compares():
    with tempfile.TemporaryDirectory(prefix="grosr-echo-") as folder:
        path = os.path.join(folder, "echo.json")
        code, out, err = run("echo", "compare", "--device", "host:0", "--bytes", "64", "--threads", "1", "--clients",
                             "1", "--repeats", "1", "--seconds", "0.5", "--lost-after", "10000", "--json", path)
        check(code == 0, f"compare: exit code {code}: {out} {err}")
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)["rows"]
        check(len(rows) == 5 and all(r["valid"] and r["packets_per_s"] > 0 and r["bytes"] == 64 for r in rows),
              f"compare: {rows}")


check_help("echo", ["serve", "drive", "compare"])
echoes_every_size("warp")
echoes_every_size("block")
serves_many_at_once()
drives_and_counts()
ends_by_itself()
refuses()
compares()
finish("echo")
