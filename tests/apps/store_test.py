"""The key-value server: memcached's answers, however requests are cut up; nothing is lost with a peer that goes."""

import json
import os
import re
import resource
import signal
import socket
import struct
import tempfile
import time

from apps import app
from served import Server, check, check_bad_input, check_help, finish, run, server


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def say(self, text):
        self.socket.sendall(text)

    def hear(self, count):
        """The next `count` bytes; fewer where the connection ends."""
        text = b""
        while len(text) < count:
            more = self.socket.recv(count - len(text))
            if not more:
                break
            text += more
        return text

    def expect(self, request, answer, what=""):
        self.say(request)
        got = self.hear(len(answer))
        check(got == answer, f"{what or request[:60]!r}: {got[:200]!r}, not {answer[:200]!r}")

    def ends(self):
        return self.hear(1) == b""

    def close(self):
        self.socket.close()

    def reset(self):
        """Goes without a word: the server's next call finds a connection that was reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


def counted(text):
    found = re.search(r"(\d+) connections; (\d+) gets, of which (\d+) found a value; (\d+) sets, (\d+) deletes, "
                      r"(\d+) requests refused; (\d+) keys", text)
    keys = ("connections", "gets", "hits", "sets", "deletes", "refused", "keys")
    return dict(zip(keys, map(int, found.groups()))) if found else {"text": text}


def timers_of(port):
    """The kinds of timers that Linux has for the connections of a server; 02 is that of SO_KEEPALIVE."""
    with open("/proc/net/tcp", encoding="ascii") as file:
        lines = [line.split() for line in file]
    return [line[5][:2] for line in lines if line[1].endswith(f":{port:04X}") and line[3] == "01"]


def keeps_values(c):
    c.expect(b"get a\r\n", b"END\r\n")
    c.expect(b"set a 0 0 3\r\nabc\r\n", b"STORED\r\n")
    c.expect(b"get a\r\n", b"VALUE a 0 3\r\nabc\r\nEND\r\n")
    c.expect(b"set a 4294967295 0 5\r\nlater\r\n", b"STORED\r\n")
    c.expect(b"get a\r\n", b"VALUE a 4294967295 5\r\nlater\r\nEND\r\n")
    c.expect(b"set empty 0 0 0\r\n\r\n", b"STORED\r\n")
    c.expect(b"get empty a none\r\n", b"VALUE empty 0 0\r\n\r\nVALUE a 4294967295 5\r\nlater\r\nEND\r\n")
    c.expect(b"delete a\r\n", b"DELETED\r\n")
    c.expect(b"delete a\r\n", b"NOT_FOUND\r\n")
    c.expect(b"get a\r\n", b"END\r\n")
    tricky = b"\r\nget a\r\n\0\xff\r\n"
    c.expect(b"set t 1 0 %d\r\n%b\r\n" % (len(tricky), tricky), b"STORED\r\n")
    c.expect(b"get t\r\n", b"VALUE t 1 %d\r\n%b\r\nEND\r\n" % (len(tricky), tricky))
    key = b"k" * 250
    for size in (1, 31, 32, 33, 1024, 8192):
        value = os.urandom(size)
        c.expect(b"set %b 9 0 %d\r\n%b\r\n" % (key, size, value), b"STORED\r\n", f"a value of {size} bytes")
        c.expect(b"get %b\r\n" % key, b"VALUE %b 9 %d\r\n%b\r\nEND\r\n" % (key, size, value), f"{size} bytes")
    c.expect(b"set n 0 0 2 noreply\r\nhi\r\ndelete none noreply\r\nget n\n", b"VALUE n 0 2\r\nhi\r\nEND\r\n")


def refuses_garbage(c):
    bad_line, unknown = b"CLIENT_ERROR bad command line format\r\n", b"ERROR\r\n"
    for line in (b"bogus", b"", b"GET a", b"getx a", b"\0\1\2"):
        c.expect(line + b"\r\n", unknown)
    for line in (b"get", b"get " + b"k" * 251, b"set", b"set a", b"set a 0 0", b"set a x 0 1", b"set a 0 0 -1",
                 b"set a 0 0 99999999999", b"set a 4294967296 0 1", b"set a 0 0 1 what", b"delete", b"delete a b",
                 b"get a " + b"k" * 251):
        c.expect(line + b"\r\n", bad_line)
    c.expect(b"set big 0 0 8193\r\n" + b"x" * 8193 + b"\r\n", b"SERVER_ERROR object too large for cache\r\n")
    c.expect(b"set big 0 0 100000\r\n" + b"get a\r\n" * 14286, b"SERVER_ERROR object too large for cache\r\n")
    c.expect(b"set old 0 60 2\r\nhi\r\n", b"SERVER_ERROR values do not expire here: give 0\r\n")
    c.expect(b"set short 0 0 2\r\nlonger than that\r\nget short\r\n", b"CLIENT_ERROR bad data chunk\r\nEND\r\n")
    c.expect(b"x" * 5000 + b"\r\nget none\r\n", b"CLIENT_ERROR line too long\r\nEND\r\n")


def takes_what_is_split(c):
    text = b"set split 3 0 10\r\n0123456789\r\nget split\r\n"
    answer = b"STORED\r\nVALUE split 3 10\r\n0123456789\r\nEND\r\n"
    for cut in range(1, len(text), 5):
        c.say(text[:cut])
        time.sleep(0.002)
        c.expect(text[cut:], answer, f"cut after {cut} bytes")
    for i in range(len(text)):
        c.say(text[i:i + 1])
    c.expect(b"", answer, "byte by byte")


def takes_what_is_pipelined(c):
    value = os.urandom(3000)
    requests = b"".join(b"set p%d 0 0 3000\r\n%b\r\nget p%d none\r\n" % (i, value, i) for i in range(40))
    answers = b"".join(b"STORED\r\nVALUE p%d 0 3000\r\n%b\r\nEND\r\n" % (i, value) for i in range(40))
    c.expect(requests, answers, "40 pairs of requests at once")
    keys = b" ".join(b"p%d" % i for i in range(40))
    answers = b"".join(b"VALUE p%d 0 3000\r\n%b\r\n" % (i, value) for i in range(40))
    c.expect(b"get %b\r\nget none\r\n" % keys, answers + b"END\r\nEND\r\n", "40 keys of one get")


def survives_peers_that_go(port):
    for text in (b"", b"se", b"set gone 0 0 100\r\n", b"set gone 0 0 100\r\nhalf", b"get a", b"get a\r\n" * 500):
        for way in (Client.close, Client.reset):
            c = Client(port)
            c.say(text)
            way(c)
    c = Client(port)
    c.expect(b"get gone\r\nquit\r\nget gone\r\n", b"END\r\n")
    check(c.ends(), "quit does not end the connection")
    c.close()


def more_connections_than_workers():
    """None of them holds a worker, whether it says nothing or half a request."""
    with server("store", "--workers", "4", "--connections", "100") as s:
        clients = [Client(s.port) for _ in range(100)]
        for i, c in enumerate(clients):
            c.say(b"set k%d 0 0 5\r\nva" % i if i % 2 else b"")
        for i, c in reversed(list(enumerate(clients))):
            c.expect(b"lue\r\n" if i % 2 else b"set k%d 0 0 5\r\nvalue\r\n" % i, b"STORED\r\n", f"client {i} of 100")
        for i, c in enumerate(clients):
            c.expect(b"get k%d\r\n" % (99 - i), b"VALUE k%d 0 5\r\nvalue\r\nEND\r\n" % (99 - i), f"client {i}, again")
        end = time.monotonic() + 10
        while timers_of(s.port) != ["02"] * 100 and time.monotonic() < end:
            time.sleep(0.05)  # what was sent is still to be acknowledged
        check(timers_of(s.port) == ["02"] * 100, f"SO_KEEPALIVE, in /proc/net/tcp: {timers_of(s.port)}")
        code, out, took = s.end()
        check(code == 130 and took < 5, f"Ctrl-C with 100 connections: exit code {code} after {took:.1f} s")
        check(counted(out) == {"connections": 100, "gets": 100, "hits": 100, "sets": 100, "deletes": 0, "refused": 0,
                               "keys": 100}, f"{out!r}")


def peers_that_do_not_read():
    with server("store", "--workers", "4") as s:
        value, asked = os.urandom(8192), 1000  # more than sockets hold
        c = Client(s.port)
        c.expect(b"set a 0 0 8192\r\n%b\r\n" % value, b"STORED\r\n")
        deaf = [Client(s.port) for _ in range(8)]
        for d in deaf:
            d.say(b"get a\r\n" * asked)
        time.sleep(0.5)
        answer = b"VALUE a 0 8192\r\n%b\r\nEND\r\n" % value
        c.expect(b"get a\r\n", answer, "beside peers that do not read")
        for d in deaf[:2]:
            check(d.hear(len(answer) * asked) == answer * asked, "who reads late gets other bytes")
        code, out, took = s.end()
        check(code == 130 and took < 5, f"Ctrl-C with answers under way: exit code {code} after {took:.1f} s")


def runs_out_of_descriptors():
    with server("store", "--idle", "0.3") as s:
        clients = [Client(s.port)]
        clients[0].expect(b"get a\r\n", b"END\r\n")
        used = max(map(int, os.listdir(f"/proc/{s.process.pid}/fd")))
        _, most = resource.prlimit(s.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(s.process.pid, resource.RLIMIT_NOFILE, (used + 2, most))
        clients += [Client(s.port) for _ in range(3)]
        for c in clients[1:]:
            c.expect(b"get a\r\nquit\r\n", b"END\r\n", "when descriptors are few")
            check(c.ends(), "quit does not end the connection")
        late = [Client(s.port) for _ in range(2)]
        for c in late:
            c.expect(b"get a\r\n", b"END\r\n", "while idle ones have all descriptors")
        s.end()


def more_clients_than_connections():
    with server("store", "--connections", "2") as s:
        first, second, third = Client(s.port), Client(s.port), Client(s.port)
        first.expect(b"set a 0 0 1\r\n1\r\n", b"STORED\r\n")
        second.expect(b"get a\r\n", b"VALUE a 0 1\r\n1\r\nEND\r\n")
        third.say(b"get a\r\n")
        third.socket.settimeout(0.3)
        try:
            check(False, f"a third connection is answered where two are served: {third.hear(1)!r}")
        except TimeoutError:
            pass
        third.socket.settimeout(10)
        first.close()
        third.expect(b"", b"VALUE a 0 1\r\n1\r\nEND\r\n", "who waited in the backlog")
        code, out, took = s.end()
        check(code == 130 and took < 3, f"Ctrl-C with connections open: exit code {code} after {took:.1f} s")
        check(counted(out).get("gets") == 2, f"{out!r}")


def slow_ones_make_way():
    with server("store", "--connections", "2", "--idle", "0.3") as s:
        alone = Client(s.port)
        alone.expect(b"set a 0 0 3\r\nabc\r\n", b"STORED\r\n")
        time.sleep(1)  # idle, but nobody waits
        alone.expect(b"get a\r\n", b"VALUE a 0 3\r\nabc\r\nEND\r\n")
        alone.close()
        slow = [Client(s.port) for _ in range(4)]  # two of them wait as well
        slow[0].say(b"set a 0 0 100\r\nhalf of")
        drips = slow[1]
        quick = Client(s.port)
        quick.say(b"get a\r\n")
        quick.socket.settimeout(0.1)
        got, answer = b"", b"VALUE a 0 3\r\nabc\r\nEND\r\n"
        end = time.monotonic() + 10
        while len(got) < len(answer) and time.monotonic() < end:
            try:
                drips.say(b"x")  # never silent, and never done
            except OSError:
                pass  # it made way
            try:
                got += quick.socket.recv(100)
            except TimeoutError:
                pass
        check(got == answer, f"behind slow connections: {got!r}")
        check(slow[0].ends(), "half a request kept its place")
        for c in slow + [quick]:
            c.close()


def runs_out_of_memory():
    stored, no_memory = b"STORED\r\n", b"SERVER_ERROR out of memory storing object\r\n"
    with server("store", "--memory", "65536") as s:
        c = Client(s.port)
        value = b"v" * 8000
        kept = 0
        for i in range(20):
            c.say(b"set k%d 0 0 8000\r\n%b\r\n" % (i, value))
            first = c.hear(len(stored))
            if first != stored:
                check(first + c.hear(len(no_memory) - len(first)) == no_memory, f"no memory: {first!r}")
                break
            kept += 1
        check(0 < kept < 9, f"{kept} values of 8000 bytes in 65536")
        c.expect(b"delete k0\r\n", b"DELETED\r\n")
        c.expect(b"set again 0 0 8000\r\n%b\r\n" % value, stored)
        c.expect(b"set again 0 0 8000\r\n%b\r\n" % value, no_memory, "the old value keeps its memory meanwhile")
        c.expect(b"get again k1\r\n", b"VALUE k1 0 8000\r\n%b\r\nEND\r\n" % value, "and is gone then")
        c.close()
        s.end()


def writers_and_readers():
    """Clients that set and delete one key while others get it: each value is whole."""
    with server("store", "--connections", "6") as s:
        clients = [Client(s.port) for _ in range(6)]
        values = [bytes([65 + i]) * (200 + 100 * i) for i in range(3)]
        for _ in range(15):
            for c, v in zip(clients, values):
                c.say(b"set shared 0 0 %d\r\n%b\r\n" % (len(v), v))
            for c in clients[3:]:
                c.say(b"get shared\r\n")
            for c in clients[:3]:
                c.expect(b"", b"STORED\r\n", "set of a shared key")
            for c in clients[3:]:
                line = c.hear(5)
                if line == b"END\r\n":
                    continue
                size = c.hear(len(b" shared 0 200\r\n"))
                value = c.hear(int(size.split()[2]) + 2 + 5)
                check(value[:-7] in values and value[-7:] == b"\r\nEND\r\n", f"a value that nobody set: {value!r}")
        code, out, _ = s.end()
        check(counted(out).get("keys") == 1, f"one key was set: {out!r}")


def drives_and_compares():
    with server("store") as s:
        code, out, err = run("store", "drive", "--port", str(s.port), "--seconds", "0.3", "--keys", "50", "--clients",
                             "1", "--pipeline", "4")
        check(code == 0 and " 0 misses" in out, f"drive: exit code {code}: {out!r} {err!r}")
        s.end(signal.SIGTERM)
    code, out, err = run("store", "drive", "--port", str(s.port), "--seconds", "0.2")
    check(code == 1 and err.count("\n") == 1, f"drive without a server: exit code {code}: {out!r} {err!r}")
    with tempfile.TemporaryDirectory(prefix="grosr-store-") as folder:
        path = os.path.join(folder, "store.json")
        code, out, err = run("store", "compare", "--device", "host:0", "--bytes", "100", "--threads", "1", "--clients",
                             "1", "--pipeline", "4", "--repeats", "1", "--seconds", "0.5", "--json", path)
        check(code == 0, f"compare: exit code {code}: {out} {err}")
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)["rows"]
        check(len(rows) == 2 and all(r["valid"] and r["requests_per_s"] > 0 for r in rows), f"compare: {rows}")


def ends_by_itself_and_refuses():
    s = Server("store", "--seconds", "0.3")
    code, out, took = s.end(send=None)
    check(code == 0 and took < 5 and counted(out).get("connections") == 0, f"--seconds: {code} {out!r}")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        check_bad_input("store", [(["serve", "--device", "host:0", "--port", port], [port, "in use", "--port"])])
    check_bad_input("store", [
        (["serve", "--device", "host:0", "--largest", "2M"], ["--largest"]),
        (["serve", "--device", "host:0", "--connections", "x"], ["--connections"]),
        (["drive", "--keys", "0"], ["--keys"]),
        (["drive", "--keys", "1M", "--bytes", "1M"], ["fewer or smaller"]),
    ])


check_help("store", ["serve", "drive", "compare"])
with server("store") as s:
    for talk in (keeps_values, refuses_garbage, takes_what_is_split, takes_what_is_pipelined):
        c = Client(s.port)
        talk(c)
        c.close()
    survives_peers_that_go(s.port)
    code, out, took = s.end()
    check(code == 130 and took < 3, f"Ctrl-C: exit code {code} after {took:.1f} s: {out!r}")
    check(counted(out).get("refused") == 23, f"{out!r}")
more_connections_than_workers()
more_clients_than_connections()
peers_that_do_not_read()
# UndefinedBehaviorSanitizer opens a pipe to look at an object, and calls one that it cannot look at a wrong one.
with open(app("store"), "rb") as program:
    SANITIZED = b"__ubsan_" in program.read()
if not SANITIZED:
    runs_out_of_descriptors()
slow_ones_make_way()
runs_out_of_memory()
writers_and_readers()
drives_and_compares()
ends_by_itself_and_refuses()
finish("store")
