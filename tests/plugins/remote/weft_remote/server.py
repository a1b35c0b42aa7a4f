"""The machine that computes: kernels come as JSON, and run on weft's vector machine. What they remember stays here.

GET  /health           who this is, at once
GET  /capabilities     what it can do
POST /units            a unit, to be made ready; gives its number
POST /units/N/execute  one tick of the picture
POST /units/N/values   a strand at a list of points
POST /units/N/adopt    takes over what other units remember

It listens to this machine alone by default, because a client that reaches it may have anything computed.
"""

from __future__ import annotations

import argparse
import platform
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count

import numpy as np
from weft_remote.wire import Arrays, Head, pack, unpack

import weft
from weft.backends import hardware
from weft.backends.executors import Executable
from weft.backends.launch import Getter, Launch, Picture, StateMemory, Value, bytes_needed, picture_coords
from weft.backends.vector.machine import VectorExecutor
from weft.codegen.kernel import Kernel, from_json, verify
from weft.errors import WeftError, error
from weft.names import StrandRef

# How many units are kept: those asked for last. Programs come and go, and nothing reports when one is no longer needed.
_KEPT = 64

# Bytes of a message.
_LONGEST = 1 << 30


@dataclass
class Ready:
    """A unit that is ready to run, with its memory, and the pictures that it samples."""

    grid: Executable
    points: Mapping[StrandRef, Executable]
    memory: StateMemory
    shape: tuple[int, int]
    pictures: dict[str, Picture] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Machine:
    """The units by their numbers, and what can be done with them."""

    def __init__(self) -> None:
        self._executor = VectorExecutor()
        self._numbers = count(1)
        self._units: dict[int, Ready] = {}
        self._lock = threading.Lock()

    def add(self, head: Head, arrays: Arrays) -> tuple[Head, Arrays]:
        """Makes a unit ready. Raises WeftError if there is no room for what it remembers."""
        kernel = _kernel(head["kernel"])
        height, width = map(int, head["shape"])
        points = {StrandRef(*ref): self._executor.load(_kernel(data)) for ref, data in head["points"]}
        needed, free = bytes_needed(kernel, (height, width)), hardware.memory_free()
        if free and needed > free:
            raise error("not-enough-memory", f"{kernel.name} would remember {needed / 1e9:.1f} GB, and the server has "
                        f"{free / 1e9:.1f} GB", hint="remember less, or make a smaller picture")  # fmt: skip
        memory = StateMemory(kernel.slots, (height, width))
        ready = Ready(self._executor.load(kernel), points, memory, (height, width))
        with self._lock:
            number = next(self._numbers)
            self._units[number] = ready
            while len(self._units) > _KEPT:
                del self._units[next(iter(self._units))]
        return {"unit": number}, {}

    def find(self, number: int) -> Ready:
        """A unit by its number. Raises KeyError if there is none, or none any more."""
        with self._lock:
            self._units[number] = self._units.pop(number)
            return self._units[number]

    def execute(self, ready: Ready, head: Head, arrays: Arrays) -> tuple[Head, Arrays]:
        """One tick: pixels [height, width, 4], or the outputs as they are, [outputs, height, width]."""
        height, width = ready.shape
        stopped: list[bool] = []
        with ready.lock:
            launch = self._launch(ready, head, arrays, picture_coords(width, height, head["abstime"]), ready.shape)
            launch = replace(launch, loop_stopped=lambda: stopped.append(True))
            if head["planes"]:
                found = {"values": ready.grid.planes(ready.memory, launch)}
            else:
                found = {"values": np.empty((height, width, 4), np.uint8)}
                ready.grid.rgba8(ready.memory, launch, found["values"])
        return {"loop_stopped": bool(stopped)}, found

    def values(self, ready: Ready, head: Head, arrays: Arrays) -> tuple[Head, Arrays]:
        """A strand at a list of points, as the tick finished last has left it."""
        coords = {name: arrays[name] for name in ("x", "y", "abstime", "channel")}
        with ready.lock:
            launch = self._launch(ready, head, arrays, coords, (1, len(coords["x"])))
            values = ready.points[StrandRef(*head["strand"])].planes(ready.memory, launch)[0, 0]
        return {}, {"values": values}

    def adopt(self, ready: Ready, head: Head, arrays: Arrays) -> tuple[Head, Arrays]:
        """Takes over the memory of other units that are still there; gives the keys of the slots."""
        kept: list[str] = []
        for number in head["old"]:
            if number in self._units:
                old = self.find(number)
                with old.lock:
                    kept += ready.memory.adopt(old.memory, head["copy"])
        return {"kept": kept}, {}

    def _launch(
        self, ready: Ready, head: Head, arrays: Arrays, coords: Mapping[str, Value], shape: tuple[int, int]
    ) -> Launch:
        ready.pictures.update({path: arrays[path] for path in head["pictures"]})
        strands = {StrandRef(instance, output): _given(value) for instance, output, value in head["strands"]}
        return Launch(shape, coords, head["uniforms"], strands, ready.pictures, hardware.cores())


def _given(value: float) -> Getter:
    """A strand of a context that is computed elsewhere: its value came along."""
    return lambda *coords: value


def _kernel(data: Head) -> Kernel:
    """Raises MalformedError for a kernel that the machine would stumble over."""
    kernel = from_json(data)
    verify(kernel)
    return kernel


def health() -> Head:
    return {
        "weft": weft.__version__,
        "name": platform.processor() or platform.machine(),
        "platform": platform.system(),
        "simd": hardware.simd(),
        "cores": hardware.cores(),
        "memory_total": hardware.memory_total(),
        "memory_free": hardware.memory_free(),
    }


def capabilities() -> Head:
    return {"simd": True, "threads": True, "sources": ["picture"]}


class Handler(BaseHTTPRequestHandler):
    """One connection, which stays open for many requests."""

    protocol_version = "HTTP/1.1"
    # An answer is written in two parts, and the second would wait until the first has been acknowledged.
    disable_nagle_algorithm = True
    server: Server

    def do_GET(self) -> None:
        known = {"/health": health, "/capabilities": capabilities}
        if self.path in known:
            self._answer(200, pack(known[self.path]()))
        else:
            self._answer(404, pack({"reason": f"there is nothing at {self.path}"}))

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        if length > _LONGEST:
            self.close_connection = True
            self._answer(413, pack({"reason": f"a message of {length} bytes"}))
            return
        try:
            self._answer(200, pack(*self._done(*unpack(self.rfile.read(length)))))
        except WeftError as refused:
            problem = refused.diagnostics[0]
            self._answer(422, pack({"code": problem.code, "message": problem.message, "hint": problem.hint}))
        except KeyError as missing:
            self._answer(404, pack({"reason": f"it has no {missing} any more"}))
        except Exception as failure:
            self._answer(500, pack({"reason": f"it failed ({type(failure).__name__}: {failure})"}))

    def _done(self, head: Head, arrays: Arrays) -> tuple[Head, Arrays]:
        machine = self.server.machine
        match self.path.strip("/").split("/"):
            case ["units"]:
                return machine.add(head, arrays)
            case ["units", number, ("execute" | "values" | "adopt") as verb]:
                work = {"execute": machine.execute, "values": machine.values, "adopt": machine.adopt}[verb]
                return work(machine.find(int(number)), head, arrays)
        raise KeyError(self.path)

    def _answer(self, status: int, message: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(message)))
        self.end_headers()
        self.wfile.write(message)

    def log_message(self, format: str, *args: object) -> None:
        """A line for each frame would be of no use to anybody."""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, host: str, port: int) -> None:
        super().__init__((host, port), Handler)
        self.machine = Machine()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m weft_remote.server", description="Computes pictures for others.")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at")
    parser.add_argument("--port", type=int, default=8765, help="0: any that is free")
    asked = parser.parse_args()
    with Server(asked.host, asked.port) as server:
        print(f"http://{asked.host}:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
