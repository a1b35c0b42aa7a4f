"""Rendering by the workers of a Dask cluster: tasks go to them, and the files that they write come back as bytes.

Each worker has the job in a plugin of Dask, which starts child processes, as `--workers` does on one machine. If a task
is lost with its worker, Dask gives it to another one. The scheduler needs no weft, since it reads only names and bytes.

Media are identified by their content. A worker without a file is sent the file, and keeps it until the job is done. The
names of files in a program are relative to the folder in which it was compiled, and each worker has a folder in which
these names lead to the same contents.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
import pickle
import platform
import tempfile
import threading
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar, cast

import distributed
from distributed import Client, WorkerPlugin

from weft.backends.native import llvm
from weft.backends.native.executor import ExactExecutor
from weft.codes.rows import InternalError
from weft.disk import open_plain, replacing
from weft.errors import Diagnostic, WeftError
from weft.media.animations import files_at
from weft.runtime.films.offline import hash_of
from weft.runtime.films.workers import PictureTask, RenderJob, RenderPool, RenderTask, WorkerError, WorkerPool

T = TypeVar("T")

# The packages that determine what is drawn and how it is written.
_PACKAGES = ("weft", "numpy", "llvmlite", "av", "pillow")
# The seconds to wait for the scheduler, for a first worker, and for a worker after all are gone.
_CONNECTION, _FIRST_WORKER, _NO_WORKERS = 10.0, 10.0, 30.0
# The most seconds that an answer travels.
_ANSWER = 30.0
# The seconds between two checks for workers.
_GLANCE = 1.0
# The most seconds until a task that is ended notices it.
_ENDING = 5.0
# The most times that a file is sent to a worker that does not have it afterwards.
_MOST_ATTEMPTS = 3
# The bytes of media that are sent at once.
_PIECE = 1 << 24


@dataclass(frozen=True)
class _Written:
    """The answer of a worker: the contents of the files of a task in their order, or the reason why there are none."""

    files: tuple[bytes, ...] = ()
    findings: tuple[Diagnostic, ...] = ()
    changes: tuple[str, ...] = ()
    lacking: tuple[str, str] | None = None
    """The address of the worker, and the first file that it lacks."""
    problem: str | tuple[Diagnostic, ...] | None = None


class ClusterPool(RenderPool):
    """The workers of a cluster. It is connected to the scheduler until it is closed."""

    def __init__(self, address: str, job: RenderJob) -> None:
        """`address` is such as "tcp://127.0.0.1:8786". Raises WorkerError if the scheduler does not answer, if it has
        no workers, or if these would draw something else."""
        self.findings = {}
        self.changes = {}
        self._address = address
        self._media = {str(file): hash_of(file) for name in job.build.media for file in files_at(Path(name))}
        self._sent = Counter[tuple[str, str]]()
        """The number of times that each worker was sent each file."""
        self._name = f"weft-{uuid.uuid4().hex}"
        self._client = _connected(address)
        try:
            workers = self._first_workers()
            self._compare(workers)
            plugin = RenderPlugin(pickle.dumps(job), self._media)
            self._ask(lambda: self._client.register_plugin(plugin, name=self._name))
            kind = c_library if job.backend == ExactExecutor.name else processor
            self.kinds = frozenset(self._ask(lambda: self._client.run(kind)).values()) | {kind()}
            """The processors of this machine and of all workers, or their C libraries where processors do not matter.
            Different ones may round numbers differently."""
            for name in self._media:
                for worker in workers if not os.path.isabs(name) else ():
                    self._send(worker, name)
        except WorkerError:
            self.close()
            raise
        except Exception as problem:  # of a worker, or of the way to it
            self.close()
            raise WorkerError(f"the workers of {address} refuse: {type(problem).__name__}: {problem}") from problem
        self.workers = len(workers)
        """The number of them."""
        self.count = sum(worker["nthreads"] for worker in workers.values())

    @property
    def dashboard(self) -> str:
        """The address of a page that shows what the cluster is doing."""
        return str(self._client.dashboard_link)

    def close(self) -> None:
        """Ends the connection, and everything that the workers have started."""
        for end in (lambda: self._client.unregister_worker_plugin(self._name), self._client.close):
            with suppress(Exception):  # of a cluster that is gone
                _in_time(end, _ENDING)

    def run(self, tasks: Iterable[RenderTask]) -> Iterator[int]:
        """See `RenderPool`. The frames of a task are counted together, once its files are here."""
        waiting = {self._submit(task): task for task in tasks}
        try:
            while waiting:
                for future in self._next(waiting):
                    task = waiting[future]
                    written = self._result(future, task)
                    if written is None:
                        continue
                    del waiting[future]
                    if written.lacking is None:
                        self._keep(written, task)
                        yield from task.frames
                    else:
                        self._send(*written.lacking)
                        waiting[self._submit(task)] = task
        finally:
            with suppress(Exception):  # of a cluster that is gone
                _in_time(lambda: self._client.cancel(list(waiting)), _ENDING)

    def _submit(self, task: RenderTask) -> Any:
        """Gives the task to some worker."""
        frames = task.frames
        name = f"frames-{frames[0]}-to-{frames[-1]}" if frames else "sound"
        # A function within a function is sent as its code: the scheduler, which unpacks it, may have no weft.
        draw = _drawing(self._name)
        return self._client.submit(draw, pickle.dumps(task), key=f"{name}-{uuid.uuid4().hex}", pure=False)

    def _next(self, waiting: Mapping[Any, RenderTask]) -> list[Any]:
        """Waits for tasks that have ended. Raises WorkerError if no worker is left."""
        patience = time.monotonic() + _NO_WORKERS
        while True:
            try:
                return list(distributed.wait(list(waiting), _GLANCE, "FIRST_COMPLETED").done)
            except (TimeoutError, distributed.TimeoutError):
                pass
            except CancelledError as problem:
                raise self._gone from problem
            if self._client.status == "closed":
                raise self._gone
            if self._workers():
                patience = time.monotonic() + _NO_WORKERS
            elif time.monotonic() > patience:
                raise WorkerError(f"all workers of {self._address} have gone")

    def _result(self, future: Any, task: RenderTask) -> _Written | None:
        """The answer of a worker; None if it was lost on the way, and another worker will answer."""
        if future.status == "pending":
            return None
        if future.status == "finished":
            try:
                found: _Written = pickle.loads(future.result(timeout=_ANSWER))
            except (OSError, TimeoutError, distributed.TimeoutError):
                self._workers()  # raises if the scheduler is gone, or does not answer
                return None
            if isinstance(found.problem, str):
                raise WorkerError(found.problem)
            if found.problem is not None:
                raise WeftError(*found.problem)
            return found
        if future.status == "error":
            problem = self._ask(future.exception)
            if isinstance(problem, distributed.KilledWorker):
                what = f"the frames from {task.frames[0]} on" if task.frames else "the sound"
                raise WorkerError(f"several workers that computed {what} were lost")
            raise WorkerError(f"a worker failed: {type(problem).__name__}: {problem}")
        raise self._gone

    @property
    def _gone(self) -> WorkerError:
        return WorkerError(f"the scheduler at {self._address} has gone")

    def _keep(self, written: _Written, task: RenderTask) -> None:
        """Writes the files of a task, each as a whole."""
        self.findings |= dict.fromkeys(written.findings)
        self.changes |= dict.fromkeys(written.changes)
        for path, data in zip(_files_of(task), written.files, strict=True):
            try:
                with replacing(path) as partial:
                    partial.write_bytes(data)
            except OSError as problem:
                raise WorkerError(problem.strerror) from problem

    def _first_workers(self) -> Mapping[str, Any]:
        """The workers, once there is one."""
        with suppress(TimeoutError, distributed.TimeoutError):
            self._ask(lambda: self._client.wait_for_workers(1, timeout=_FIRST_WORKER))
        workers = self._workers()
        if not workers:
            raise WorkerError(f"the scheduler at {self._address} has no workers (dask worker {self._address})")
        return workers

    def _compare(self, workers: Iterable[str]) -> None:
        """Compares versions. Raises WorkerError if one differs."""
        found = self._ask(lambda: self._client.get_versions(packages=list(_PACKAGES)))
        here = _versions(found["client"])
        for address in workers:
            for package, version in _versions(found["workers"][address]).items():
                if version != here[package]:
                    there, own = version or "missing", here[package] or "missing"
                    raise WorkerError(f"{package} is {there} at {address}, and {own} here: they must be alike")

    def _send(self, worker: str, name: str) -> None:
        """Sends a file to a worker, in pieces. Raises WorkerError if it has changed, or does not arrive."""
        self._sent[worker, name] += 1
        if self._sent[worker, name] > _MOST_ATTEMPTS:
            raise WorkerError(f"{name} cannot be written at {worker}")
        if hash_of(Path(name)) != self._media[name]:
            raise WorkerError(f"{name} has changed since it began (the same command starts again)")
        with open_plain(name) as file:
            while piece := file.read(_PIECE):
                self._take(worker, name, piece)
        self._take(worker, name, b"")

    def _take(self, worker: str, name: str, piece: bytes) -> None:
        self._ask(
            lambda: self._client.run(_take_piece, self._name, name, piece, workers=[worker], on_error="ignore")
        )  # fmt: skip

    def _workers(self) -> Mapping[str, Any]:
        """The workers that there are now."""
        found = self._ask(lambda: self._client.scheduler_info(n_workers=-1))
        if "workers" not in found:  # Dask has given up the connection, or is about to
            raise self._gone
        workers: Mapping[str, Any] = found["workers"]
        return workers

    def _ask(self, question: Callable[[], T]) -> T:
        """The answer of the cluster. Raises WorkerError if it takes too long."""
        try:
            return _in_time(question, _ANSWER)
        except _NoAnswerError as problem:
            raise WorkerError(f"the scheduler at {self._address} does not answer any more") from problem
        except OSError as problem:
            raise self._gone from problem


def _connected(address: str) -> Client:
    """A connection to a scheduler. Raises WorkerError."""
    for name in "distributed", "distributed.client":  # their messages are replaced by plainer ones here
        logging.getLogger(name).setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", module=r"distributed\b")
    try:
        return _in_time(lambda: Client(address, timeout=_CONNECTION), 2 * _CONNECTION)
    except (OSError, TimeoutError, distributed.TimeoutError, _NoAnswerError) as problem:
        raise WorkerError(f"no scheduler answers at {address}") from problem
    except Exception as problem:  # Dask takes any bytes for the lengths of its messages
        raise WorkerError(f"what answers at {address} is no scheduler of Dask") from problem


class _NoAnswerError(InternalError):
    """Something has taken too long."""


def _in_time(call: Callable[[], T], seconds: float) -> T:
    """The result of a call. Raises what the call raises, and _NoAnswerError if it takes longer than some seconds: Dask
    waits forever if the other side keeps the connection open and sends nothing. The call then continues in a thread for
    which nothing waits."""
    done = SimpleQueue[tuple[T | None, BaseException | None]]()

    def run() -> None:
        try:
            done.put((call(), None))
        except BaseException as problem:
            done.put((None, problem))

    threading.Thread(target=run, name="weft-cluster", daemon=True).start()
    try:
        found, problem = done.get(timeout=seconds)
    except Empty:
        raise _NoAnswerError from None
    if problem is not None:
        raise problem
    return cast(T, found)


def _files_of(task: RenderTask) -> list[Path]:
    """The files that a task writes."""
    return list(task.paths.values()) if isinstance(task, PictureTask) else [task.path]


def _within(task: RenderTask, folder: Path) -> RenderTask:
    """The same task, with its files in a folder, in their order."""
    if isinstance(task, PictureTask):
        return replace(task, paths={number: folder / path.name for number, path in task.paths.items()})
    return replace(task, path=folder / task.path.name)


def _versions(found: Mapping[str, Any]) -> dict[str, str | None]:
    """The versions of a machine that must be those of another one."""
    python = ".".join(found["host"]["python"].split(".")[:2])
    return {"Python": python, **{name: found["packages"][name] for name in _PACKAGES}}


def processor() -> str:
    """The properties of this machine's processor that affect how numbers are rounded."""
    host = None if llvm.problem() else llvm.host()
    if host is None:
        return "one without machine code"
    return f"{host.cpu} ({hashlib.sha256(host.features.encode()).hexdigest()[:6]})"


# The functions that machine code and folding take from C's library, over a range in which all are defined.
_FUNCTIONS = math.exp, math.log, math.log2, math.sin, math.cos, math.atan, math.tan, lambda x: math.pow(x, x)
_STEPS = range(1, 2000)


def c_library() -> str:
    """The properties of this machine's C library that affect how numbers are rounded."""
    values = repr([function(step / 97) for function in _FUNCTIONS for step in _STEPS])
    name = " ".join(filter(None, platform.libc_ver())) or platform.system()
    return f"{name} ({hashlib.sha256(values.encode()).hexdigest()[:6]})"


# --- in a worker ------------------------------------------------------------------------------------------------------


class RenderPlugin(WorkerPlugin):  # type: ignore[misc]
    """The part of a job that a worker of Dask has: processes that draw, and media."""

    def __init__(self, job: bytes, media: Mapping[str, str]) -> None:
        """`media` are the names of files with the hashes of their contents."""
        self._job = job
        self._media = media

    def setup(self, worker: Any) -> None:
        """Called by Dask when a worker gets the plugin."""
        self._address = str(worker.address)
        self._folder = tempfile.TemporaryDirectory(
            prefix="weft-", dir=worker.local_directory, ignore_cleanup_errors=True
        )
        self._root = _root_for(self._media, Path(self._folder.name))
        self._root.mkdir(parents=True)
        self._checked = set[str]()
        self._pools = SimpleQueue[WorkerPool]()
        self._all = [WorkerPool(pickle.loads(self._job), 1, self._root) for _ in range(worker.state.nthreads)]
        for pool in self._all:
            self._pools.put(pool)

    def teardown(self, worker: Any) -> None:
        """Called by Dask when the worker ends, or the job."""
        for pool in self._all:
            pool.close()
        with suppress(Empty):
            for _ in self._all:
                self._pools.get(timeout=_ENDING)  # until no task writes any more
        self._folder.cleanup()

    def draw(self, task: bytes) -> bytes:
        """Does a `RenderTask`, and returns `_Written`."""
        return pickle.dumps(self._draw(pickle.loads(task)))

    def _draw(self, task: RenderTask) -> _Written:
        for name, expected in self._media.items():
            if name in self._checked:
                continue
            path = self._root / name
            if not (path.is_file() and hash_of(path) == expected):
                if os.path.isabs(name):
                    words = f"{name} is not the same file on {self._address} (name it relative to the patch)"
                    return _Written(problem=words)
                return _Written(lacking=(self._address, name))
            self._checked.add(name)
        pool = self._pools.get()
        try:
            with tempfile.TemporaryDirectory(dir=self._folder.name) as folder:
                moved = _within(task, Path(folder))
                for _ in pool.run([moved]):
                    pass
                files = tuple(path.read_bytes() for path in _files_of(moved))
            return _Written(files, tuple(pool.findings), tuple(pool.changes))
        except WorkerError as failure:
            return _Written(problem=f"{failure} (on {self._address})")
        except WeftError as failure:
            return _Written(problem=failure.diagnostics)
        finally:
            self._pools.put(pool)

    def take_piece(self, name: str, piece: bytes) -> None:
        """Takes the next bytes of a file, or its end."""
        path = Path(os.path.normpath(self._root / name))
        partial = path.with_name(f"{path.name}.part")
        if not piece:
            partial.replace(path)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("ab") as file:
            file.write(piece)


def _root_for(names: Iterable[str], folder: Path) -> Path:
    """The folder within `folder` such that all names relative to it stay within `folder`."""
    relative = (os.path.normpath(name).split(os.sep) for name in names if not os.path.isabs(name))
    depth = max((parts.count("..") for parts in relative), default=0)
    return folder.joinpath(*["up"] * depth, "media")


def _drawing(plugin: str) -> Callable[[bytes], bytes]:
    """The function that has a worker do a task."""

    def draw(task: bytes) -> bytes:
        from distributed import get_worker

        found: bytes = get_worker().plugins[plugin].draw(task)
        return found

    return draw


def _take_piece(plugin: str, name: str, piece: bytes, dask_worker: Any = None) -> None:
    dask_worker.plugins[plugin].take_piece(name, piece)
