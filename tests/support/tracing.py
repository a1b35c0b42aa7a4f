"""What processes ask of the system, as strace sees it: files that they open, programs, connections and sockets."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

_CALLS = (
    "open", "openat", "creat", "mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "rename", "renameat", "renameat2",
    "link", "linkat", "symlink", "symlinkat", "truncate", "mknod", "mknodat", "connect", "bind", "listen",
    "sendto", "execve",
)  # fmt: skip

_CALL = re.compile(r"(?P<name>\w+)\((?P<words>.*)\)\s+= (?P<result>-?\d+|\?)(?:<(?P<opened>.*)>)?[^>]*")
_WRITES = re.compile(r"\bO_(?:WRONLY|RDWR|CREAT|TRUNC|APPEND)\b")
# In a text of strace, any character of a path may be an escape.
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\([0-7]{1,3})")
# What counts even if it fails.
_ATTEMPTS = ("connect", "bind", "sendto")
_INTERNET = ("AF_INET", "AF_INET6")


class Traced(NamedTuple):
    """What processes did: paths that they read and wrote (made, changed or removed), programs that they started, and
    what they did with sockets of the internet."""

    read: frozenset[str]
    written: frozenset[str]
    programs: frozenset[str]
    network: frozenset[str]


@cache
def missing_tracer() -> str | None:
    """Why nothing can be traced here; None if it can."""
    try:
        attempt = "strace", "-f", "--seccomp-bpf", "-e", "trace=execve", "true"
        done = subprocess.run(attempt, capture_output=True, text=True, check=False)
    except OSError as problem:
        return f"strace: {problem.strerror}"
    return None if done.returncode == 0 else f"strace cannot trace here: {done.stderr[-200:]}"


def traced(command: Sequence[str], folder: Path, logs: Path, environment: Mapping[str, str], patience: float) -> Traced:
    """Runs a command in a folder, and all that it starts, to its end."""
    logs.mkdir()
    # Only the calls that are asked for are stopped at.
    run = ["strace", "-ff", "--seccomp-bpf", "-y", "-qq", "-s", "4096", "-e", f"trace={','.join(_CALLS)}"]
    run += ["-e", "signal=none", "-o", str(logs / "t")]
    done = subprocess.run(
        [*run, *command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=patience, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    read, written, programs, network = set[str](), set[str](), set[str](), set[str]()
    for log in logs.iterdir():
        local = set[str]()  # sockets that are files
        for name, words, opened in _calls(log):
            paths = [_plain(path) for path in _TEXT.findall(words)]
            if name in _ATTEMPTS:
                if any(family in words for family in _INTERNET):
                    network.add(f"{name}({words})")
                elif name == "bind" and "sun_path=\"" in words:
                    local.add(words.partition(",")[0])
                    written.update(paths)
            elif name == "listen":
                network.update([f"{name}({words})"] if words.partition(",")[0] not in local else [])
            elif name == "execve":
                programs.update(paths[:1])
            elif opened is None:
                written.update(paths)
            elif name == "creat" or _WRITES.search(words):
                written.add(opened)
            else:
                read.add(opened)
    return Traced(frozenset(read), frozenset(written), frozenset(programs), frozenset(network))


def _calls(log: Path) -> Iterator[tuple[str, str, str | None]]:
    """The calls in a log that succeeded, or tried to connect: name, arguments, and the path that was opened."""
    for line in log.read_text(errors="surrogateescape").splitlines():
        match = _CALL.match(line)
        if match is not None and (not match["result"].startswith("-") or match["name"] in _ATTEMPTS):
            yield match["name"], match["words"], match["opened"] and _plain(match["opened"])


def _plain(path: str) -> str:
    """A path as strace writes it, without escapes: it has octal numbers for all that is not ASCII."""
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 8)]), path.encode()).decode(errors="surrogateescape")
