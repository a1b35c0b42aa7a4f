"""Executors run kernels on the CPU. This module has what they share: the interface, the thread pool, and pictures that
are drawn once while nothing in them changes."""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.backends import hardware
from weft.backends.launch import (
    Floats, Launch, StateMemory, aligned_zeros, are_same, channels, check_picture, pack, shape_of_level
)
from weft.codegen.kernel import Kernel
from weft.codes.rows import InternalError
from weft.ir.expr import StateSlot
from weft.ir.rates import Rate

# Threads that share the tiles of a launch.

_Jobs: TypeAlias = "SimpleQueue[Callable[[], None] | None]"


class _Outcome:
    """The outcome of one worker's share. If a wait for it is interrupted, it can be waited for again."""

    def __init__(self) -> None:
        self.raised: BaseException | None = None
        self.is_there = False
        self._lock = threading.Lock()
        self._lock.acquire()

    def arrive(self, raised: BaseException | None) -> None:
        self.raised = raised
        self.is_there = True
        self._lock.release()

    def wait(self, most: float = -1) -> bool:
        """Waits for the outcome, for at most `most` seconds unless that is negative. Returns whether it is there."""
        while not self.is_there:
            if not self._lock.acquire(timeout=most):
                return False
        return True


# How long the caller waits for each thread that shares its work before it considers the thread held up: some seconds,
# and the time of some parts of the work. A thread that runs has at most one part left.
_PATIENCE, _PARTS = 3e-4, 3


class BandPool:
    """Threads that wait for work as long as the pool lives. They start when they are first needed."""

    def __init__(self) -> None:
        self._jobs: _Jobs = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._here = threading.local()
        self._kept_off: tuple[int, int] | None = None
        """The core that the threads are kept off, and the number of threads at that time; None if it has to be done
        again."""
        weakref.finalize(self, _end, self._jobs, self._threads)

    def run(self, work: Callable[[int], None], workers: int, parts: int | None = None) -> None:
        """Calls `work` with each of 0 … workers - 1 concurrently, 0 in the calling thread. Returns when all are done.
        Raises what one of them raised. Each call takes the `parts` of the work one after another; by default there are
        as many parts as workers.

        A nested call runs all of its work in its own thread, since the others are busy.
        """
        is_working = getattr(self._here, "working", False)
        if not is_working:
            self._start(workers - 1)
        if is_working or (workers > 1 and not self._threads):
            for number in range(workers):
                work(number)
            return
        core = hardware.current_core()
        if core is not None and self._kept_off != (core, len(self._threads)):
            self._keep_off(core)
        others = [_Outcome() for _ in range(workers - 1)]
        for number, outcome in enumerate(others, 1):
            self._jobs.put(partial(self._report, work, number, outcome))
        own = _Outcome()
        raised: BaseException | None = None
        # An interruption is raised only after all are done, since the threads use the arrays until then.
        while not all(outcome.is_there for outcome in (own, *others)):
            try:
                if not own.is_there:
                    began = time.perf_counter()
                    self._report(work, 0, own)
                    of_a_part = (time.perf_counter() - began) * workers / (parts or workers)
                    patience = _PATIENCE + _PARTS * of_a_part
                    if not all(outcome.wait(patience) for outcome in others):
                        self._bring_here()
                for outcome in others:
                    outcome.wait()
            except BaseException as exception:
                raised = exception
                own.is_there = True
        for outcome in (own, *others):
            raised = raised or outcome.raised
        if raised is not None:
            raise raised

    def _keep_off(self, core: int) -> None:
        """Restricts the threads to the other cores. The system tends to wake a thread on the core where it last ran. On
        the core of this thread, it would wait until this one had done all the work, even while another core is idle."""
        self._kept_off = core, len(self._threads)
        hardware.keep_off(core, self._numbers)

    def _bring_here(self) -> None:
        """Moves the threads to the core of this one, which has no work left, to finish their shares. Something else
        runs on their cores, and the system may let that run for milliseconds."""
        core, self._kept_off = hardware.current_core(), None
        if core is not None:
            hardware.keep_on(core, self._numbers)

    @property
    def _numbers(self) -> list[int]:
        """The system's numbers of the threads."""
        return [thread.native_id for thread in self._threads if thread.native_id is not None]

    def _report(self, work: Callable[[int], None], number: int, outcome: _Outcome) -> None:
        self._here.working = True
        raised: BaseException | None = None
        try:
            work(number)
        except BaseException as exception:  # for the thread that waits for all of them
            raised = exception
        finally:
            self._here.working = False
            outcome.arrive(raised)

    def _start(self, count: int) -> None:
        # If the system grants no more threads, the existing ones share the work.
        with suppress(RuntimeError):
            while len(self._threads) < count:
                thread = threading.Thread(target=_serve, args=(self._jobs,), name="weft-band", daemon=True)
                thread.start()
                self._threads.append(thread)


def _serve(jobs: _Jobs) -> None:
    while (job := jobs.get()) is not None:
        job()
        del job  # it refers to the pool, which must be able to end while this thread waits


def _end(jobs: _Jobs, threads: list[threading.Thread]) -> None:
    for _ in threads:
        jobs.put(None)


# Pictures, and whether the next one would equal the last.

Pixels = npt.NDArray[np.uint8]


class Stillness:
    """Finds out whether a kernel would draw the same picture again. It does if it has no state, reads no other strands,
    and gets the same inputs."""

    def __init__(self, kernel: Kernel) -> None:
        self._may_stand_still = not (kernel.remembers or kernel.strands)
        self._coords = tuple(name for name, _ in kernel.coords)
        self._uniforms, self._pictures = kernel.uniforms, kernel.pictures
        self._given: list[Any] | None = None
        self._asked: tuple[Launch, list[Any]] | None = None
        """The last launch that `lasts` has found to differ, with its inputs."""

    def lasts(self, launch: Launch) -> bool:
        """Whether this launch would draw the same as the last one that drew."""
        if self._given is None:
            return False
        inputs = self._inputs(launch)
        for before, now in zip(self._given, inputs, strict=True):
            if before is not now and (isinstance(now, np.ndarray) or not are_same((before,), (now,))):
                self._asked = launch, inputs
                return False
        return True

    def drew(self, launch: Launch) -> None:
        """Records that a launch has drawn."""
        asked, self._asked = self._asked, None
        if self._may_stand_still:
            self._given = asked[1] if asked is not None and asked[0] is launch else self._inputs(launch)

    def forget(self) -> None:
        """Something else has drawn since."""
        self._given = None

    def _inputs(self, launch: Launch) -> list[Any]:
        inputs: list[Any] = [launch.shape]
        inputs += map(launch.coords.__getitem__, self._coords)
        inputs += map(launch.uniforms.__getitem__, self._uniforms)
        inputs += map(launch.pictures.__getitem__, self._pictures)
        return inputs


class Pictures:
    """The pictures that a kernel draws, alternately in two arrays, since allocating an array for each is slow. A
    picture is valid until the second one after it is begun. A picture in which nothing changes is drawn once."""

    def __init__(self, kernel: Kernel) -> None:
        self._stillness = Stillness(kernel)
        self._drawn: Pixels | None = None
        self._other: Pixels | None = None

    def drawn(self, launch: Launch, draw: Callable[[Pixels], None]) -> Pixels:
        """The picture of a launch, [height, width, 4]. `draw` is called to fill one that differs from the last."""
        if self._drawn is not None and self._stillness.lasts(launch):
            return self._drawn
        shape = (*launch.shape, 4)
        if self._other is None or self._other.shape != shape:
            self._other = aligned_zeros(shape, np.uint8)
        draw(self._other)
        self._drawn, self._other = self._other, self._drawn
        self._stillness.drew(launch)
        return self._drawn


# The interface of executors.


class Executable(Protocol):
    """A kernel that is ready to run. Its launches share scratch memory, so they run one after another: a second thread
    waits."""

    kernel: Kernel

    @property
    def tier(self) -> int | None:
        """The tier of its code for pictures, from 1; None if there is only one."""

    def planes(self, memory: StateMemory, launch: Launch) -> Floats:
        """The outputs as an array [outputs, height, width]. They are not clamped, and may be NaN. Then advances the
        state of a grid kernel. Raises ValueError if the launch does not fit the kernel."""

    def upgrade(self, code: object) -> None:
        """Runs faster code for pictures, made by `Executor.translate`, from the next launch on."""
        return

    def rgba8(self, memory: StateMemory, launch: Launch, out: npt.NDArray[np.uint8]) -> None:
        """Writes the outputs as a picture into `out` [height, width, 4], without gaps; then advances the state.

        One output is a gray, three are red, green and blue, a fourth is alpha (opaque by default). NaN becomes 0, all
        else is clamped to 0…1; halves round up. Raises ValueError if the launch or `out` does not fit the kernel.
        """
        channels(len(self.kernel.outputs))
        check_picture(out, launch.shape)
        pack(self.planes(memory, launch), out)


NOTHING: Mapping[bool, object] = MappingProxyType({})
"""No translations."""


class RefusedError(InternalError):
    """An executor cannot compile a kernel. The message is the reason."""


# Longer reasons are cut.
_LONGEST_REASON = 200


@contextmanager
def refusing_failures(what: str) -> Iterator[None]:
    """Turns any exception of a code generator into a RefusedError, since another executor can run the kernel. The
    caller checks its own arguments before this."""
    try:
        yield
    except (RefusedError, MemoryError):
        raise
    except Exception as failure:
        words = " ".join(f"{type(failure).__name__}: {failure}".split())[:_LONGEST_REASON]
        raise RefusedError(f"no {what} could be made of it ({words}), which is a bug in weft") from failure


@dataclass(frozen=True, slots=True)
class Refused:
    """The result of `translate` for a kernel that it cannot compile: the reason, and the next executor's code. It can
    be pickled."""

    reason: str
    instead: object = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A kernel runs on the executor `target`, since `origin` could not compile it."""

    kernel: str
    origin: str
    target: str
    reason: str

    def __str__(self) -> str:
        return f"{self.kernel} runs on {self.target}, not {self.origin}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Refusals:
    """Collects refusals until they are taken. Only the last ones are kept. May be used from any thread."""

    _waiting: deque[Refusal] = field(default_factory=lambda: deque(maxlen=32))

    def add(self, refusal: Refusal) -> None:
        if refusal not in self._waiting:
            self._waiting.append(refusal)

    def take(self) -> list[Refusal]:
        """The refusals since the last call, oldest first."""
        found: list[Refusal] = []
        while self._waiting:
            found.append(self._waiting.popleft())
        return found


class Executor(Protocol):
    """Makes kernels ready to run."""

    name: str
    refusals: Refusals

    @property
    def widest(self) -> type[np.floating[Any]]:
        """The widest floating-point type that state images may have."""

    def translate(self, kernel: Kernel, packed: bool, tier: int = 1) -> object | None:
        """The part of loading that needs neither device nor memory, for outputs as planes or `packed` as pixels. None
        if there is nothing to prepare, or no such tier. `Refused` if it fails, which `load` accepts as well. The result
        can be pickled for another process. Raises ValueError if the outputs cannot be packed."""

    def load(self, kernel: Kernel, codes: Mapping[bool, object] = NOTHING) -> Executable:
        """A kernel that is ready to run. `codes` holds the results of `translate` for the kernel, by `packed`; missing
        code is compiled when it is first needed. If that fails, the kernel runs on the next executor, which is noted in
        `refusals`."""


# Pictures that are computed in stages.


@dataclass(frozen=True, slots=True)
class StagedCode:
    """The results of `translate` for each stage of a kernel, and for the kernel itself. It can be pickled."""

    stages: tuple[object, ...]
    last: object

    @property
    def parts(self) -> tuple[object, ...]:
        """All of them, in the order in which they run."""
        return (*self.stages, self.last)


class StagedExecutable(Executable):
    """A kernel with stages. All elements of a stage are computed before the next one begins."""

    def __init__(self, kernel: Kernel, stages: Sequence[Executable], last: Executable) -> None:
        self.kernel = kernel
        self.parts = (*stages, last)
        self._stages = stages
        self._last = last
        self._lock = threading.Lock()

    @property
    def tier(self) -> int | None:
        return min((tier for part in self.parts if (tier := part.tier) is not None), default=None)

    def upgrade(self, code: object) -> None:
        if isinstance(code, StagedCode):
            for part, better in zip(self.parts, code.parts, strict=True):
                part.upgrade(better)

    def planes(self, memory: StateMemory, launch: Launch) -> Floats:
        with self._lock:
            self._compute_images(memory, launch)
            return self._last.planes(memory, launch)

    def rgba8(self, memory: StateMemory, launch: Launch, out: npt.NDArray[np.uint8]) -> None:
        channels(len(self.kernel.outputs))
        check_picture(out, launch.shape)
        with self._lock:
            self._compute_images(memory, launch)
            self._last.rgba8(memory, launch, out)

    def _compute_images(self, memory: StateMemory, launch: Launch) -> None:
        check(self.kernel, memory, launch)
        for stage in self._stages:
            stage.planes(memory, launch.at_level(stage.kernel.level))


def translate_stages(executor: Executor, kernel: Kernel, packed: bool, tier: int) -> StagedCode | None:
    """The translations of a kernel with stages; None if there are none."""
    stages = tuple(executor.translate(stage, False, tier) for stage in kernel.stages)
    code = StagedCode(stages, executor.translate(kernel.alone, packed, tier))
    return code if any(part is not None for part in code.parts) else None


def load_stages(executor: Executor, kernel: Kernel, codes: Mapping[bool, object]) -> StagedExecutable:
    """A kernel with stages, ready to run."""
    known = {packed: code for packed, code in codes.items() if isinstance(code, StagedCode)}
    of_stages = next((code.stages for code in known.values()), (None,) * len(kernel.stages))
    stages = [
        executor.load(stage, {} if code is None else {False: code})
        for stage, code in zip(kernel.stages, of_stages, strict=True)
    ]
    return StagedExecutable(kernel, stages, executor.load(kernel.alone, {p: code.last for p, code in known.items()}))


def _form(slot: StateSlot) -> tuple[int, int, bool, int]:
    return slot.depth, slot.planes, slot.image, slot.level


def check(kernel: Kernel, memory: StateMemory, launch: Launch) -> None:
    """Raises ValueError if the launch lacks something that the kernel reads, or a shape does not fit."""
    missing = [name for name, _ in kernel.coords if name not in launch.coords]
    missing += [name for name in kernel.uniforms if name not in launch.uniforms]
    missing += [str(ref) for ref in kernel.strands if ref not in launch.strands]
    missing += [path for path in kernel.pictures if path not in launch.pictures]
    for slot in kernel.slots:
        ring = memory.slots.get(slot.key)
        if ring is None or _form(ring) != _form(slot):
            missing.append(slot.key)
    missing += [path for path in kernel.pictures if path in launch.pictures and not launch.pictures[path].size]
    if missing:
        raise ValueError(f"{kernel.name}: the launch lacks {', '.join(missing)}")
    height, width = launch.shape
    if height < 1 or width < 1:
        raise ValueError(f"{kernel.name}: a launch of {width}×{height} elements")
    images = any(slot.image for slot in kernel.slots)
    if images and kernel.sweep == "grid" and shape_of_level(memory.shape, kernel.level) != launch.shape:
        raise ValueError(f"{kernel.name}: a launch of {launch.shape} elements on state of {memory.shape}")
    shapes = {Rate.COLUMN: (width,), Rate.ROW: (height,), Rate.ELEMENT: (width,)}
    for name, rate in kernel.coords:
        wanted, given = shapes.get(rate, ()), np.shape(launch.coords[name])
        if given not in (wanted, ()):
            raise ValueError(f"{kernel.name}: the coordinate {name} has the shape {given}, not {wanted}")
        if rate == Rate.ELEMENT and height != 1:
            raise ValueError(f"{kernel.name}: {name} changes at every element of more than one row")
