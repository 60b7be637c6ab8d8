"""What the tests of programs under apps/ have in common."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))

from cli import check, finish, run  # noqa: E402, F401

APPS = os.environ.get("GROSR_APPS", "build/host/apps")


def app(name):
    return os.path.join(APPS, name)


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())


def long_path(folder, length):
    """A path below `folder` of `length` bytes, relative to it; its folders are made."""
    parts, left = [], length
    at = os.open(folder, os.O_RDONLY)
    while left > 255:
        part = "d" * min(200, left - 2)
        os.mkdir(part, dir_fd=at)
        inner = os.open(part, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
        parts.append(part)
        left -= len(part) + 1
    parts.append("f" * left)
    file = os.open(parts[-1], os.O_WRONLY | os.O_CREAT, dir_fd=at)
    os.close(at)
    return "/".join(parts), file


def remove_tree(folder):
    """As shutil.rmtree, also where paths are longer than Linux takes."""
    def below(at):
        for name in os.listdir(at):
            try:
                os.unlink(name, dir_fd=at)
            except (IsADirectoryError, PermissionError):
                os.chmod(name, 0o700, dir_fd=at)
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
                below(inner)
                os.close(inner)
                os.rmdir(name, dir_fd=at)
    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    below(top)
    os.close(top)
    os.rmdir(folder)
