"""cryptfs: AES-XTS is the standard's; what is written is read again, by another mount too; a killed process leaves sectors whole."""

import errno
import os
import pty
import random
import resource
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager, suppress

from apps import app, check, finish, run
from cli import run_json

CRYPTFS = app("cryptfs")
PASSPHRASE = "correct horse"
HEADER = 4096
environment = dict(os.environ, CRYPTFS_PASSPHRASE=PASSPHRASE)


def cryptfs(*arguments, passphrase=PASSPHRASE):
    return run(*arguments, program=CRYPTFS, env=dict(os.environ, CRYPTFS_PASSPHRASE=passphrase))


def unmount(mountpoint):
    subprocess.run(["umount", "-l", mountpoint], capture_output=True, check=False)


class Mount:
    """A mounted directory, and the process that serves it."""

    def __init__(self, directory, mountpoint, *arguments, descriptors=None):
        self.mountpoint = mountpoint
        limit = lambda: descriptors and resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))  # noqa: E731
        self.process = subprocess.Popen([CRYPTFS, "mount", directory, mountpoint, "--foreground", *arguments],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=environment, preexec_fn=limit)
        self.said = self.process.stdout.readline()
        if "is mounted on" not in self.said:
            raise RuntimeError(f"not mounted: {self.said!r} {self.process.stderr.read()!r}")

    def end(self, by=signal.SIGINT):
        if by == "umount":
            subprocess.run(["umount", self.mountpoint], check=True)
        else:
            self.process.send_signal(by)
        try:
            _, err = self.process.communicate(timeout=60)
        finally:
            unmount(self.mountpoint)
        expected = {signal.SIGINT: 130, signal.SIGTERM: 130, signal.SIGHUP: 130, "umount": 0, signal.SIGKILL: -9}[by]
        check(self.process.returncode == expected and err == "", f"ended by {by}: {self.process.returncode} {err!r}")


@contextmanager
def mounted(directory, mountpoint, *arguments, by=signal.SIGINT, descriptors=None):
    m = Mount(directory, mountpoint, *arguments, descriptors=descriptors)
    try:
        yield m
        m.end(by)
    finally:
        unmount(mountpoint)
        if m.process.poll() is None:
            m.process.kill()
            m.process.communicate()


@contextmanager
def volume(sector):
    with tempfile.TemporaryDirectory(prefix="grosr-cryptfs-") as folder:
        directory, mountpoint = os.path.join(folder, "enc"), os.path.join(folder, "mnt")
        os.mkdir(directory)
        os.mkdir(mountpoint)
        code, out, err = cryptfs("init", directory, "--sector", str(sector))
        check(code == 0 and err == "", f"init: {code} {out} {err}")
        yield directory, mountpoint


def may_mount():
    if not os.path.exists("/dev/fuse"):
        return "there is no /dev/fuse"
    with volume(4096) as (directory, mountpoint):
        code, _, err = cryptfs("mount", directory, mountpoint)
        unmount(mountpoint)
        return "" if code == 0 else err.strip()


class Model:
    """A file of a mounted directory, and what it has to hold."""

    def __init__(self, path, seed):
        self.path, self.random, self.content = path, random.Random(seed), bytearray()
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o640)

    def write(self, offset, data):
        check(os.pwrite(self.fd, data, offset) == len(data), f"{len(data)} bytes at {offset} are not written whole")
        if len(self.content) < offset:
            self.content.extend(bytes(offset - len(self.content)))
        self.content[offset:offset + len(data)] = data

    def truncate(self, size):
        os.ftruncate(self.fd, size)
        del self.content[size:]
        self.content.extend(bytes(size - len(self.content)))

    def read(self, offset, size):
        got = os.pread(self.fd, size, offset)
        check(got == self.content[offset:offset + size], f"{size} bytes at {offset} of {len(self.content)} are others")

    def step(self, sector):
        r = self.random
        near = lambda n: max(0, n // sector * sector + r.choice((-1, 0, 1, 7, sector // 2)))  # noqa: E731
        size = len(self.content)
        what = r.randrange(10)
        if what < 5:
            offset = near(r.randrange(size + 3 * sector)) if what else near(size + r.randrange(8 * sector))
            count = r.choice((1, 15, sector, near(r.randrange(1, 20 * sector)) or 1))
            self.write(offset, r.getrandbits(8 * count).to_bytes(count, "little"))
        elif what < 7:
            self.truncate(near(r.randrange(size + 4 * sector)))
        else:
            self.read(r.randrange(size + 10), r.randrange(1, 30 * sector))

    def verify(self):
        check(os.stat(self.path).st_size == len(self.content), f"a size: {os.stat(self.path).st_size}, not {len(self.content)}")
        with open(self.path, "rb") as file:
            check(file.read() == self.content, "what is read is not what was written")


def as_a_plain_file(sector, device, steps):
    with volume(sector) as (directory, mountpoint):
        path = os.path.join(mountpoint, "file")
        with mounted(directory, mountpoint, "--device", device):
            model = Model(path, sector + steps)
            for _ in range(steps):
                model.step(sector)
            model.verify()
            # Bytes that a write brings to the end, a hole, and requests as large as they come.
            model.write(len(model.content) + 5 * sector + 3, os.urandom(3))
            if device == "openssl":
                model.write(1, os.urandom(3 << 20))
            model.verify()
            os.close(model.fd)
        with mounted(directory, mountpoint, "--device", "openssl", by="umount"):
            model.verify()
        stored = open(os.path.join(directory, "file"), "rb").read()
        sectors = -(-len(model.content) // sector)
        check(len(stored) == HEADER + sectors * sector, f"{len(stored)} bytes are stored for {len(model.content)}")
        part = next(i for i in range(0, len(model.content), sector) if any(model.content[i:i + 64]))
        check(bytes(model.content[part:part + 16]) not in stored, "what is stored is not encrypted")


def raises(number, f, *arguments):
    try:
        f(*arguments)
    except OSError as e:
        return check(e.errno == number, f"{f.__name__}{arguments}: {e}")
    return check(False, f"{f.__name__}{arguments}: no error")


def names(directory, mountpoint):
    at = lambda name: os.path.join(mountpoint, name)  # noqa: E731
    with mounted(directory, mountpoint):
        os.mkdir(at("d"))
        for name in ("a", "b", "d/c"):
            with open(at(name), "w", encoding="utf-8") as file:
                file.write(name)
        os.rename(at("a"), at("d/a"))
        os.rename(at("b"), at("d/c"))
        os.symlink("d/a", at("s"))
        os.link(at("d/a"), at("hard"))
        with open(at("hard"), "a", encoding="utf-8") as file:
            file.write("more")
        check(open(at("s"), encoding="utf-8").read() == "amore", "a link's file is another one's")
        check(os.readlink(at("s")) == "d/a" and os.stat(at("hard")).st_nlink == 2, "links")
        check(sorted(os.listdir(mountpoint)) == ["d", "hard", "s"] and sorted(os.listdir(at("d"))) == ["a", "c"], "names")
        os.chmod(at("hard"), 0o600)
        os.utime(at("hard"), (1000, 2000))
        s = os.stat(at("d/a"))
        check(s.st_mode & 0o777 == 0o600 and s.st_mtime == 2000 and s.st_atime == 1000, f"attributes: {s}")
        with open(at("d/c"), "rb+") as file:  # goes on without a name
            os.unlink(at("d/c"))
            file.seek(100)
            file.write(b"z")
            file.flush()
            os.fsync(file.fileno())
            file.seek(99)
            check(file.read() == b"\0z", "a file without a name")
        raises(errno.ENOTEMPTY, os.rmdir, at("d"))
        raises(errno.ENOENT, os.unlink, at("b"))
        raises(errno.EEXIST, os.mkdir, at("d"))
        raises(errno.EISDIR, os.open, at("d"), os.O_WRONLY)
        raises(errno.ENOENT, os.stat, at(".cryptfs"))
        raises(errno.EPERM, os.mkdir, at(".cryptfs"))
        raises(errno.EPERM, os.rename, at("hard"), at(".cryptfs"))
        raises(errno.ENAMETOOLONG, os.mkdir, at("n" * 256))
        os.unlink(at("d/a"))
        os.rmdir(at("d"))
        check(os.statvfs(mountpoint).f_blocks > 0, "statfs")
        many = {f"file {i}" for i in range(300)}
        for name in many:
            open(at(name), "wb").close()
        check(set(os.listdir(mountpoint)) == many | {"hard", "s"}, "a long directory")
        with open(os.path.join(directory, "stranger"), "wb") as file:
            file.write(b"no header of this file system, and longer than one is")
        check(os.stat(at("stranger")).st_size == 0, "the size of a file without a header")
        raises(errno.EIO, os.open, at("stranger"), os.O_RDONLY)
        raises(errno.EIO, os.open, at("stranger"), os.O_WRONLY | os.O_APPEND)
        raises(errno.EIO, os.truncate, at("stranger"), 0)
        check(os.path.getsize(os.path.join(directory, "stranger")) == 53, "a file without a header was changed")
        os.unlink(at("stranger"))
        with open(at("shortened"), "wb") as file:
            file.write(b"z" * 10000)
            file.flush()
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            os.truncate(os.path.join(directory, "shortened"), HEADER + 4096)
        with open(at("shortened"), "rb", buffering=0) as file:
            check(os.pread(file.fileno(), 4096, 0) == b"z" * 4096, "what is there of a shortened file")
            raises(errno.EIO, os.pread, file.fileno(), 4096, 8192)
        os.unlink(at("shortened"))


def keeps_the_key_file(directory, mountpoint):
    key, link = os.path.join(directory, ".cryptfs"), os.path.join(mountpoint, "other")
    os.link(key, os.path.join(directory, "other"))  # another name of it, as where case is ignored
    with mounted(directory, mountpoint, by=signal.SIGTERM):
        raises(errno.ENOENT, os.open, link, os.O_RDWR)
        raises(errno.ENOENT, os.unlink, link)
        with open(os.path.join(mountpoint, "new"), "wb"):
            pass
        raises(errno.EPERM, os.rename, os.path.join(mountpoint, "new"), link)
        raises(errno.EPERM, os.open, link, os.O_RDWR | os.O_CREAT)
        os.unlink(os.path.join(mountpoint, "new"))
    os.unlink(os.path.join(directory, "other"))
    check(os.path.getsize(key) > 100, "the key file is another one")


def times_and_modes(directory, mountpoint):
    path = os.path.join(mountpoint, "times")
    with mounted(directory, mountpoint, by=signal.SIGHUP):
        with open(path, "wb") as file:
            file.write(b"some")
        for size in (4, 4, 0, 0):
            os.utime(path, (1000, 2000))
            with open(path, "rb+") as file:
                os.ftruncate(file.fileno(), size)
            s = os.stat(path)
            check(s.st_size == size and s.st_mtime != 2000 and s.st_atime == 1000, f"truncated to {size}: {s}")
        with open(path, "wb") as file:
            file.write(b"some")
        os.close(os.open(path, os.O_RDONLY | os.O_TRUNC))
        check(os.stat(path).st_size == 0, "O_RDONLY | O_TRUNC")
        os.unlink(path)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o4750))
        check(os.stat(path).st_mode & 0o7777 == 0o4750, f"the mode of a new file: {os.stat(path).st_mode:o}")
        os.unlink(path)


def tells_no_passphrase(directory, mountpoint):
    code, out, err = cryptfs("mount", directory, mountpoint)
    try:
        check(code == 0, f"in the background: {code} {out} {err}")
        serving = subprocess.run(["pgrep", "-f", f"cryptfs mount .*{directory}"], stdout=subprocess.PIPE, check=False,
                                 universal_newlines=True).stdout.split()
        check(serving, "no process serves")
        for pid in serving:
            with open(f"/proc/{pid}/environ", "rb") as file:
                check(PASSPHRASE.encode() not in file.read(), "the environment has the passphrase, in the background")
            with open(f"/proc/{pid}/limits", encoding="ascii") as file:
                core = next(line for line in file if line.startswith("Max core file size"))
            check(core.split()[4:6] == ["0", "0"], f"a core file: {core}")
    finally:
        subprocess.run(["umount", mountpoint], check=False)
    for _ in range(100):
        if not any(os.path.exists(f"/proc/{pid}") for pid in serving):
            break
        time.sleep(0.05)
    with mounted(directory, mountpoint) as m:
        with open(f"/proc/{m.process.pid}/environ", "rb") as file:
            check(PASSPHRASE.encode() not in file.read(), "the environment has the passphrase, in the foreground")


def without_descriptors(directory, mountpoint):
    """Nothing is lost where the process runs out of descriptors: what is asked is done, or gets an error."""
    paths = [os.path.join(mountpoint, f"log {i}") for i in range(80)]
    before, added = b"0123456789" * 10, {}
    with mounted(directory, mountpoint):
        for path in paths:
            with open(path, "wb") as file:
                file.write(before)
    refused = 0
    with mounted(directory, mountpoint, descriptors=50):
        for path in paths:
            try:
                check(os.stat(path).st_size == len(before), f"{path}: a size of {os.stat(path).st_size}")
            except OSError as e:
                check(e.errno == errno.EMFILE, f"{path}: {e}")
                refused += 1
            try:
                fd = os.open(path, os.O_WRONLY | os.O_APPEND)
            except OSError as e:
                check(e.errno == errno.EMFILE, f"{path}: {e}")
                continue
            try:
                added[path] = os.write(fd, b"more")
            except OSError as e:
                check(e.errno == errno.EMFILE, f"{path}: {e}")
            finally:
                with suppress(OSError):  # to close takes a descriptor for a moment
                    os.close(fd)
        kinds = {"file": lambda path: os.open(path, os.O_CREAT | os.O_WRONLY), "directory": os.mkdir,
                 "link": lambda path: os.symlink("x", path)}
        files = []
        for kind, make in kinds.items():
            made = 0
            with suppress(OSError):
                for made in range(20):  # some have a descriptor left
                    files.append(make(os.path.join(mountpoint, f"new {kind} {made}")))
            there = os.path.lexists(os.path.join(directory, f"new {kind} {made}"))
            check(made < 19 and not there, f"a {kind} that got an error was made")
        for fd in files:
            with suppress(OSError, TypeError):
                os.close(fd)
    check(refused > 20 and added, f"{refused} files got an error, {len(added)} were written to")
    with mounted(directory, mountpoint):
        for path in paths:
            with open(path, "rb") as file:
                check(file.read() == before + b"more"[:added.get(path, 0)], f"{path} holds something else")
        for name in os.listdir(mountpoint):
            path = os.path.join(mountpoint, name)
            if name.startswith(("log", "new")):
                (os.rmdir if os.path.isdir(path) else os.unlink)(path)


def ends_in_mid_request(directory, mountpoint):
    """After a signal the mount point is free at once, and a request is finished however long it takes."""
    with tempfile.TemporaryDirectory(prefix="grosr-cryptfs-") as top, mounted(directory, mountpoint) as below:
        inner = os.path.join(mountpoint, "inner")
        os.mkdir(inner)
        cryptfs("init", inner)
        m = Mount(inner, top, "--device", "openssl")
        fd = os.open(os.path.join(top, "slow"), os.O_WRONLY | os.O_CREAT)
        os.write(fd, b"begun")
        below.process.send_signal(signal.SIGSTOP)  # what is written waits from here on
        writer = threading.Thread(target=os.write, args=(fd, b" and done"))
        writer.start()
        time.sleep(0.2)
        try:
            m.process.send_signal(signal.SIGTERM)
            time.sleep(3.4)
            check(m.process.poll() is None, f"ended in mid-request: {m.process.returncode}")
            check(not os.path.ismount(top), "the mount point is not free before requests are done")
        finally:
            below.process.send_signal(signal.SIGCONT)
            writer.join()
            m.process.communicate(timeout=60)
            unmount(top)
        with suppress(OSError):  # nobody serves it any more
            os.close(fd)
        check(m.process.returncode == 130, f"ended in mid-request: {m.process.returncode}")
        with mounted(inner, top):
            check(open(os.path.join(top, "slow"), "rb").read() == b"begun and done", "a request was not finished")
        for name in ("slow", ".cryptfs"):
            os.unlink(os.path.join(inner, name))
        os.rmdir(inner)


def killed(directory, mountpoint, sector, rounds):
    """A process writes generations over a file, and makes it longer; each sector is of one generation."""
    path, length = os.path.join(mountpoint, "file"), 40 * sector + 100
    for round_number in range(rounds):
        m = Mount(directory, mountpoint)
        writer = None
        try:
            with open(path, "wb") as file:
                file.write(bytes([1]) * length)
            program = (f"import os\nfd = os.open({path!r}, os.O_RDWR)\ng = 1\nend = {length}\n"
                       f"while True:\n g = g % 250 + 1\n os.pwrite(fd, bytes([g]) * {length}, 0)\n"
                       f" os.pwrite(fd, bytes([g]) * 777, end)\n end += 777\n")
            writer = subprocess.Popen(["python3", "-c", program], stderr=subprocess.DEVNULL)
            time.sleep(0.25 + 0.05 * round_number)
            m.end(signal.SIGKILL)
        finally:
            unmount(mountpoint)
            m.process.kill()
            if writer:
                writer.kill()
                writer.wait()
        with mounted(directory, mountpoint):
            size = os.stat(path).st_size
            # Linux makes one request or two of a write that lies in two pages.
            check(size >= length and ((size - length) % 777 == 0 or size % 4096 == 0), f"killed: a size of {size}")
            content = open(path, "rb").read()
            generations = set()
            for i in range(0, length // sector * sector, sector):
                part = set(content[i:i + sector])
                check(len(part) == 1 and 0 not in part, f"killed: the sector at {i} of {size} holds {part}")
                generations |= part
            check(len(generations) <= 2, f"killed: {generations} are there at once")
            for i in range(length, size, 777):
                check(len(set(content[i:i + 777])) == 1 and content[i], f"killed: what was added at {i} of {size}")
            os.truncate(path, size + 10 * sector)  # nothing comes up from behind the end
            check(not any(open(path, "rb").read()[size:]), f"killed: no zeros behind {size}")


def refuses():
    with volume(4096) as (directory, mountpoint), tempfile.TemporaryDirectory() as other:
        wrong = os.path.join(other, "wrong")
        with open(wrong, "w", encoding="utf-8") as file:
            file.write("not it\n")
        empty = os.path.join(other, "empty")
        open(empty, "wb").close()
        full = os.path.join(other, "full")
        os.makedirs(os.path.join(full, "x"))
        inside = os.path.join(directory, "inside")
        os.mkdir(inside)
        for arguments, said in (
            (["init", directory], "already"),
            (["init", full], "not empty"),
            (["init", os.path.join(other, "none")], "none"),
            (["init", full, "--sector", "100"], "--sector"),
            (["mount", directory, mountpoint, "--passphrase-file", wrong], "passphrase"),
            (["mount", directory, mountpoint, "--passphrase-file", empty], "empty"),
            (["mount", directory, mountpoint, "--passphrase-file", wrong + "x"], "wrongx"),
            (["mount", full, mountpoint], "cryptfs init"),
            (["mount", os.path.join(other, "none"), mountpoint], "none"),
            (["mount", directory, full], "not empty"),
            (["mount", directory, inside], "inside"),
            (["mount", directory, os.path.join(other, "none")], "none"),
            (["mount", directory, wrong], "no directory"),
            (["mount", directory, mountpoint, "--device", "cuda:99"], "cuda:99"),
            (["mount", directory, mountpoint, "--threads", "none"], "--threads"),
            (["check", "--device", "nowhere"], "nowhere"),
        ):
            code, out, err = cryptfs(*arguments)
            unmount(mountpoint)
            check(code == 2 and out == "" and err.count("\n") == 1 and err.startswith("cryptfs: ") and said in err,
                  f"{arguments}: {code} {out!r} {err!r}")
        key = os.path.join(directory, ".cryptfs")
        text = open(key, encoding="utf-8").read()
        for changed, said in ((text.replace(": 4096", ": 512"), "passphrase"), (text[:100], ".cryptfs"), ("[]", ".cryptfs"),
                              (text.replace('"salt": "', '"salt": "zz'), ".cryptfs"),
                              (text.replace('"n": 65536', '"n": 65537'), "range"), (text.replace('"p": 1', '"p": 0'), "range"),
                              (text.replace('"n": 65536', '"n": 1048576').replace('"r": 8', '"r": 16'), "range")):
            with open(key, "w", encoding="utf-8") as file:
                file.write(changed)
            code, out, err = cryptfs("mount", directory, mountpoint)
            unmount(mountpoint)
            check(code == 2 and err.count("\n") == 1 and said in err, f"a changed key file: {code} {out!r} {err!r}")


def mounts_once():
    with volume(4096) as (directory, mountpoint), volume(512) as (_, elsewhere):
        code, out, err = cryptfs("mount", directory, mountpoint)  # in the background
        try:
            check(code == 0 and err == "" and "is mounted on" in out, f"in the background: {code} {out!r} {err!r}")
            open(os.path.join(mountpoint, "f"), "wb").close()
            for where, said in ((mountpoint, "already"), (elsewhere, "mounted already")):
                code, out, err = cryptfs("mount", directory, where)
                check(code == 2 and err.count("\n") == 1 and said in err, f"twice: {code} {out!r} {err!r}")
        finally:
            unmount(mountpoint)
        for _ in range(100):  # the process goes by itself
            code, out, err = cryptfs("mount", directory, elsewhere)
            unmount(elsewhere)
            if code == 0:
                break
            time.sleep(0.1)
        check(code == 0, f"after the end: {code} {out!r} {err!r}")


def asks_the_terminal():
    """init asks twice, and shows nothing of the answers."""
    with tempfile.TemporaryDirectory(prefix="grosr-cryptfs-") as directory:
        for second, expected, last in (("others", 2, "differ"), ("words", 0, "encrypted directory now")):
            pid, terminal = pty.fork()
            if pid == 0:
                os.environ.pop("CRYPTFS_PASSPHRASE", None)
                os.execv(CRYPTFS, [CRYPTFS, "init", directory])
            shown = b""
            answers = [(b"Passphrase: ", b"words\n"), (b"again: ", second.encode() + b"\n")]
            try:
                while True:
                    shown += os.read(terminal, 1000)
                    if answers and shown.endswith(answers[0][0]):
                        os.write(terminal, answers.pop(0)[1])
            except OSError:  # the program has ended
                pass
            os.close(terminal)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) if hasattr(os, "waitstatus_to_exitcode") else expected
            check(code == expected and last.encode() in shown and b"words" not in shown, f"the terminal: {code} {shown}")


def benches():
    code, document, out, err = run_json("bench", "--device", "host:0", "--file-bytes", "2500K", "--repeats", "1",
                                        program=CRYPTFS)
    rows = document["rows"] if document else []
    check(code == 0 and len(rows) >= 4 and all(r["valid"] and r["gb_per_s"] > 0 for r in rows), f"bench: {code} {out} {err}")
    code, document, out, err = run_json("bench", "--device", "host:0", "--bytes", "128K", "--repeats", "1", "--ciphers-only",
                                        program=CRYPTFS)
    rows = document["rows"] if document else []
    check(code == 0 and sum("8 in flight" in r["name"] and r["valid"] for r in rows) == 4, f"bench: {code} {out} {err}")
    code, out, err = cryptfs("bench", "--bytes", "1")
    check(code == 2 and err.count("\n") == 1 and "--bytes" in err, f"bench: {code} {out} {err}")


def compete():
    code, out, err = cryptfs("compete", "--device", "host:0", "--kernel-ms", "2", "--seconds", "1")
    check(code == 0 and err == "" and "kernels/s" in out, f"compete: {code} {out} {err}")
    for arguments, said in ((["compete", "--seconds", "0"], "--seconds"), (["compete", "--kernel-ms", "-3"], "--kernel-ms"),
                            (["compete", "--device", "cuda:99"], "cuda:99"), (["bench", "--competing", "-1"], "--competing"),
                            (["bench", "--competing", "0", "--competing", "9"], "from 0 to 8"),
                            (["bench", "--competing", "two"], "--competing"),
                            (["bench", "--competing", "1", "--ciphers-only"], "--ciphers-only"),
                            (["bench", "--competing", "1", "--kernel-ms", "0"], "--kernel-ms"),
                            (["bench", "--competing", "1", "--directory", "/none"], "/none")):
        code, out, err = cryptfs(*arguments, *(["--device", "host:0"] if "--device" not in arguments else []))
        check(code == 2 and err.count("\n") == 1 and said in err, f"{arguments}: {code} {out!r} {err!r}")


def competing(*arguments):
    return ["bench", "--device", "host:0", "--kernel-ms", "2", "--file-bytes", "32K", *arguments]


def benches_beside_competitors():
    code, document, out, err = run_json(*competing("--competing", "0", "--competing", "2", "--repeats", "1"), program=CRYPTFS)
    rows = document["rows"] if document else []
    check(code == 0 and [r["name"] for r in rows] == ["no competitors", "2 competitors"] and all(r["valid"] for r in rows),
          f"bench: {code} {out} {err}")
    check(all(r.get(f"{what}_{by}_gb_per_s", 0) > 0 for r in rows for what in ("write", "read")
              for by in ("openssl", "device", "auto")), f"bench: {out}")
    check(not any("kernels" in key for key in rows[0]) and "alone_kernels_per_s" in rows[1] and
          all(f"beside_{by}_kernels_per_s" in rows[1] for by in ("openssl", "device", "auto")), f"bench: {out}")


@contextmanager
def a_bench_and_its_competitors(count, repeats):
    with tempfile.TemporaryDirectory(prefix="grosr-cryptfs-") as folder:
        bench = subprocess.Popen([CRYPTFS, *competing("--competing", str(count), "--repeats", str(repeats), "--directory", folder)],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            found = []
            while len(found) < count and bench.poll() is None:
                found = subprocess.run(["pgrep", "-f", "-P", str(bench.pid), "cryptfs compete"], stdout=subprocess.PIPE,
                                       check=False, text=True).stdout.split()
                time.sleep(0.01)
            check(len(found) == count, f"{count} competitors: {found}")
            time.sleep(0.2)
            yield bench, [int(pid) for pid in found]
        finally:
            bench.kill()
            bench.communicate()
            with open("/proc/self/mounts", encoding="utf-8") as file:
                places = [line.split()[1] for line in file]
            for place in places:
                if place.startswith(folder):
                    unmount(place)


def is_running(pid):
    with suppress(OSError), open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def gone(pids):
    for _ in range(500):
        if not any(is_running(pid) for pid in pids):
            return True
        time.sleep(0.01)
    return False


def competitors_end():
    with a_bench_and_its_competitors(2, 20) as (bench, pids):
        os.kill(pids[0], signal.SIGKILL)
        out, err = bench.communicate(timeout=60)
        check(bench.returncode == 1 and "of 2 (process" in out + err and "signal 9" in out + err, f"{bench.returncode} {out} {err}")
        check(gone(pids), "the other competitor is left behind")
    with a_bench_and_its_competitors(2, 1000) as (bench, pids):
        bench.kill()
        bench.communicate(timeout=60)
        check(gone(pids), "competitors of a bench that was killed are left behind")


if not os.path.exists(CRYPTFS):
    print("cryptfs: not built here (FUSE 3 or OpenSSL is missing), nothing is tested")
    finish("cryptfs")
code, out, err = cryptfs("check", "--device", "host:0")
check(code == 0 and "14 vectors" in out, f"check: {code} {out} {err}")
for command in ([], ["init"], ["mount"], ["check"], ["bench"], ["compete"]):
    code, out, err = cryptfs(*command, "--help")
    check(code == 0 and "Example" in out, f"{command}: {code} {err}")
benches()
compete()
asks_the_terminal()
refuse = may_mount()
if refuse:
    print(f"cryptfs: no file system can be mounted here ({refuse}), the rest is skipped")
    finish("cryptfs")
refuses()
mounts_once()
benches_beside_competitors()
competitors_end()
as_a_plain_file(4096, "openssl", 250)
as_a_plain_file(512, "openssl", 250)
as_a_plain_file(4096, "host:0", 12)
with volume(4096) as where:
    names(*where)
    keeps_the_key_file(*where)
    times_and_modes(*where)
    tells_no_passphrase(*where)
    without_descriptors(*where)
    ends_in_mid_request(*where)
    killed(*where, 4096, 3)
with volume(512) as where:
    killed(*where, 512, 2)
finish("cryptfs")
