"""Pictures that another machine computes. The environment variable WEFT_REMOTE names it: http://HOST:PORT."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt
from weft_remote.wire import Arrays, Head, pack, unpack

import weft
from weft.backends.base import Backend, Capabilities, Compiled, Coordinator, DeviceInfo, DeviceLostError, Env
from weft.backends.launch import Launch, Picture, StateMemory, Value
from weft.codegen.bytecode import disassemble
from weft.codegen.kernel import Kernel, Unit, to_json
from weft.errors import error
from weft.names import StrandRef

VARIABLE = "WEFT_REMOTE"

# Seconds. Who asks what there is does not want to wait, and a picture that takes longer than a patch may is lost.
_AT_ONCE, _LONGEST = 0.5, 5.0


Answer = tuple[Head, dict[str, npt.NDArray[Any]]]


class Link:
    """The way to the server. Nothing is sent twice: a tick that was computed is over.

    Raises WeftError for what the server cannot take, OSError or HTTPException if it does not answer as it should."""

    def __init__(self, address: str, timeout: float) -> None:
        """Raises ValueError for what is no address."""
        parts = urlsplit(address)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"{address} is no http://HOST:PORT")
        self._connect = partial(HTTPConnection, parts.hostname, parts.port or 80, timeout=timeout)
        self._open = self._connect()
        weakref.finalize(self, self._open.close)

    def ask(self, path: str, message: bytes | None = None) -> Answer:
        """Sends a request, and gives the answer. May be called from any thread."""
        with closing(self._connect()) as connection:
            return _ask(connection, path, message)

    def ask_in_turn(self, path: str, message: bytes) -> Answer:
        """The same for one thread alone, over a connection that stays open from tick to tick."""
        try:
            return _ask(self._open, path, message)
        except (OSError, HTTPException):
            self._open.close()
            raise


def _ask(connection: HTTPConnection, path: str, message: bytes | None) -> Answer:
    connection.request("GET" if message is None else "POST", path, message)
    response = connection.getresponse()
    try:
        head, arrays = unpack(response.read())
    except ValueError as failure:
        raise ConnectionError("what answers is no server of weft") from failure
    if response.status == 422:
        raise error(head["code"], head["message"], hint=head["hint"])
    if response.status != 200:
        raise ConnectionError(head["reason"])
    return head, arrays


@dataclass
class RemoteCompiled:
    """A unit on the server, by its number. What it remembers is there, and lost with it."""

    unit: Unit
    link: Link
    number: int
    memory: StateMemory = field(default_factory=lambda: StateMemory(()))
    sent: dict[str, Picture] = field(default_factory=dict)

    def run(
        self,
        memory: StateMemory,
        launch: Launch,
        sync: bool = True,
        out: npt.NDArray[Any] | None = None,
        planes: bool = False,
    ) -> npt.NDArray[Any]:
        planes = planes or not self.unit.kernel.outputs
        found, values = self._ask("execute", launch, {"abstime": launch.coords["abstime"], "planes": planes}, {})
        if found["loop_stopped"]:
            launch.loop_stopped()
        if out is None:
            return values
        np.copyto(out, values)
        return out

    def value_at(self, ref: StrandRef, launch: Launch) -> npt.NDArray[Any]:
        return self._ask("values", launch, {"strand": list(ref)}, launch.coords)[1]

    def dump(self) -> str:
        return disassemble(self.unit.kernel)

    def _ask(self, verb: str, launch: Launch, more: Head, arrays: Arrays) -> tuple[Head, npt.NDArray[Any]]:
        # A picture is sent once, and again when its file has changed.
        new = {path: picture for path, picture in launch.pictures.items() if self.sent.get(path) is not picture}
        head = {
            "uniforms": dict(launch.uniforms),
            "strands": [[*ref, float(read())] for ref, read in launch.strands.items()],
            "pictures": list(new),
            **more,
        }
        found, values = self.link.ask_in_turn(f"/units/{self.number}/{verb}", pack(head, {**arrays, **new}))
        self.sent.update(new)
        return found, values["values"]


class Remote(Backend):
    """Pictures [height, width, 4] of bytes, by weft's vector machine on another computer."""

    name = "remote"
    context = "visual"

    def __init__(self) -> None:
        self._link = Link(os.environ.get(VARIABLE, ""), _LONGEST)

    @classmethod
    def probe(cls) -> list[DeviceInfo]:
        address = os.environ.get(VARIABLE)
        if not address:
            return [DeviceInfo(0, "no server", False, f"{VARIABLE} names no server", f"{VARIABLE}=http://HOST:PORT")]
        try:
            facts, _ = Link(address, _AT_ONCE).ask("/health")
            version, name = facts.pop("weft"), f"{facts.pop('name')} at {address}"
            device = DeviceInfo(0, name, driver=f"weft {version}", unified=False, **facts)
        except Exception as failure:
            remedy = "python -m weft_remote.server starts one there"
            return [DeviceInfo(0, address, False, f"no server answers: {_reason(failure)}", remedy)]
        if version != weft.__version__:
            return [DeviceInfo(0, address, False, f"it runs weft {version}", f"install weft {weft.__version__} there")]
        return [device]

    def capabilities(self) -> Capabilities:
        found, _ = self._ask("/capabilities")
        return Capabilities(**{**found, "sources": frozenset(found["sources"])})

    def unsuitable(self, unit: Unit) -> str | None:
        # A strand without coordinates is one number, which is sent along. To ask back for each pixel would take ages.
        for kernel in (unit.kernel, *unit.points.values()):
            for _, node in kernel.walk():
                if node.op == "strand" and node.args:
                    return f"does not ask back for {node.attr} at another place for each pixel"
        return None

    def compile_subgraph(self, unit: Unit, env: Env, coordinator: Coordinator) -> RemoteCompiled:
        problem = self.unsuitable(unit)
        if problem is not None:
            raise error("not-for-this-device", f"{unit.subgraph.name} cannot be computed remotely: it {problem}")
        points = [[list(ref), to_json(kernel)] for ref, kernel in unit.points.items()]
        head = {"kernel": to_json(unit.kernel), "points": points, "shape": [env.height, env.width]}
        found, _ = self._ask("/units", pack(head))
        return RemoteCompiled(unit, self._link, found["unit"])

    def execute_subgraph(self, compiled: Compiled, env: Env, coordinator: Coordinator) -> npt.NDArray[Any]:
        return self._run(compiled, env, coordinator, planes=False)

    def try_out(
        self, compiled: Compiled, env: Env, coordinator: Coordinator, raw: bool = False
    ) -> npt.NDArray[Any] | None:
        return self._run(compiled, env, coordinator, planes=raw)

    def get_value_at(
        self, ref: StrandRef, compiled: Compiled, coords: Mapping[str, Value], env: Env, coordinator: Coordinator
    ) -> npt.NDArray[Any]:
        given = {"x": 0.5, "y": 0.5, "abstime": env.abstime, "channel": 0.0, **coords}
        arrays = np.broadcast_arrays(*(np.asarray(value, np.float64) for value in given.values()))
        flat = {name: array.reshape(-1) for name, array in zip(given, arrays, strict=True)}
        launch = self._launch(compiled.unit.points[ref], (1, arrays[0].size), flat, env, coordinator)
        with self._watched():
            return compiled.value_at(ref, launch).reshape(arrays[0].shape)

    def adopt(self, compiled: Compiled, old: Iterable[Compiled], copy: bool = False) -> list[str]:
        numbers = [other.number for other in old if isinstance(other, RemoteCompiled)]
        if not numbers or not compiled.unit.kernel.slots:
            return []
        found, _ = self._ask(f"/units/{compiled.number}/adopt", pack({"old": numbers, "copy": copy}))
        return found["kept"]

    def remembered(self, compiled: Compiled) -> StateMemory:
        raise DeviceLostError(self.context, "what it remembers is on the server")

    def _run(self, compiled: Compiled, env: Env, coordinator: Coordinator, planes: bool) -> npt.NDArray[Any]:
        coords = {"abstime": env.abstime}
        launch = self._launch(compiled.unit.kernel, (env.height, env.width), coords, env, coordinator)
        with self._watched():
            return compiled.run(compiled.memory, launch, planes=planes)

    def _launch(
        self, kernel: Kernel, shape: tuple[int, int], coords: Mapping[str, Value], env: Env, coordinator: Coordinator
    ) -> Launch:
        return Launch(
            shape=shape,
            coords=coords,
            uniforms={name: env.uniform(name) for name in kernel.uniforms},
            strands={ref: coordinator.lookup(ref) for ref in kernel.strands},
            pictures={path: env.pictures[path] for path in kernel.pictures},
            loop_stopped=lambda: env.loop_stopped(kernel.name),
        )

    def _ask(self, path: str, message: bytes | None = None) -> tuple[Head, Arrays]:
        with self._watched():
            return self._link.ask(path, message)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Raises DeviceLostError where the server does not answer."""
        try:
            yield
        except (OSError, HTTPException) as failure:
            raise DeviceLostError(self.context, f"the server is lost: {_reason(failure)}") from failure


def _reason(failure: Exception) -> str:
    return (failure.strerror if isinstance(failure, OSError) else None) or str(failure) or type(failure).__name__
