"""What the backends of all graphics cards share: programs of the card, pictures, numbers and sound."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from weft.backends.base import (
    Backend, Capabilities, Compiled, Coordinator, DeviceLostError, Env, Handle, PictureHandle, Reading, SampleBlock,
    Values
)
from weft.backends.card_memory import CardState
from weft.backends.cpu import CpuAudio, CpuCompute, CpuVisual, block_of, executor_problem
from weft.backends.launch import SINCE, TIME, Array, Floats, Launch, Picture, StateMemory, Value
from weft.backends.native.executor import NativeExecutor
from weft.backends.native.llvm import NativeCode
from weft.backends.prologue import Fetch, LaunchPrologue, at_points, nowhere, prologue_code, tick
from weft.backends.records import RecordedSubgraph
from weft.backends.vector.machine import VectorExecutor
from weft.backends.vm import Interpreter
from weft.backends.waits import FILM_SECONDS, MOST_SECONDS
from weft.codegen.clike.fields import NumberedKernel
from weft.codegen.clike.language import Identifiers
from weft.codegen.clike.shader import Forms, Shader, UnsuitableError
from weft.codegen.kernel import Kernel, Unit, structure_hash
from weft.codegen.values import Line, Node, Rewriter, Scalar
from weft.contexts import ContextSpec, is_smoothed
from weft.errors import WeftError, error
from weft.ir.rates import Rate
from weft.media.frames import Frame
from weft.names import StrandRef, is_heard, is_view
from weft.recently_used import RecentlyUsed

# The shaders of a subgraph: the texts that the backends of graphics cards compile, and why a subgraph has none. They
# are generated without a card.


class Dialect(NamedTuple):
    """The generators of programs in one language, for kernels over a picture (`packed` as pixels, or not) and over
    points, whose numbers are inputs. Both raise UnsuitableError."""

    over_picture: Callable[[Kernel, bool, NumberedKernel], Forms]
    over_points: Callable[[Kernel, NumberedKernel], Shader]


@dataclass(frozen=True, slots=True)
class ShaderCode:
    """The programs of a unit: over its sweep, over points for those exposed strands that can have one, and the stages
    that run before the sweep."""

    grid: Forms
    points: Mapping[StrandRef, Shader] = field(default_factory=dict)
    stages: tuple[Forms, ...] = ()


# The number of kernels whose programs are kept.
_WRITTEN = 96

_ASKED = 16


class ProgramWriter:
    """Writes the programs of kernels in one language. A kernel that differs in numbers only from one of the last gets
    the program of that one, with its numbers."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._written: RecentlyUsed[Hashable, tuple[NumberedKernel, Forms]] = RecentlyUsed(_WRITTEN)
        self._asked: RecentlyUsed[Hashable, tuple[Kernel, Forms]] = RecentlyUsed(_ASKED)
        """What was last asked for, by the identity of the kernel: one is asked about before it is written."""

    def code(self, unit: Unit, packed: bool) -> ShaderCode:
        """The programs of a unit. Raises UnsuitableError with the reason if it has none."""
        packs = packed and bool(unit.kernel.outputs)
        points = {}
        for ref, kernel in unit.points.items():
            with suppress(UnsuitableError):  # the CPU computes it
                points[ref] = self.over_points(kernel)
        stages = tuple(self._over_picture(stage, False) for stage in unit.kernel.stages)
        return ShaderCode(self._over_picture(unit.kernel, packs), points, stages)

    def knows(self, unit: Unit, packed: bool) -> bool:
        """Whether a unit is drawn by the program of one of the last units, with other numbers."""
        packs = packed and bool(unit.kernel.outputs)
        kernels = ((unit.kernel, packs), *((stage, False) for stage in unit.kernel.stages))
        known = [(kernel, self._written.find((structure_hash(kernel), form))) for kernel, form in kernels]
        return all(found is not None and _serves(found, kernel) for kernel, found in known)

    def over_points(self, kernel: Kernel) -> Shader:
        """The program of a kernel over points. Raises UnsuitableError."""
        return self._numbered(kernel, "points", lambda found: Forms((self._dialect.over_points(kernel, found),))).drawn

    def _over_picture(self, kernel: Kernel, packed: bool) -> Forms:
        return self._numbered(kernel, packed, lambda found: self._dialect.over_picture(kernel, packed, found))

    def _numbered(self, kernel: Kernel, form: Hashable, write: Callable[[NumberedKernel], Forms]) -> Forms:
        asked = self._asked.find((id(kernel), form))
        if asked is None:
            asked = kernel, self._forms(kernel, form, write)
            self._asked.keep((id(kernel), form), asked)
        return asked[1]

    def _forms(self, kernel: Kernel, form: Hashable, write: Callable[[NumberedKernel], Forms]) -> Forms:
        key = structure_hash(kernel), form
        known = self._written.find(key)
        if known is not None and _serves(known, kernel):
            return known[1].with_numbers(kernel.numbers)
        numbered = NumberedKernel.of(kernel)
        forms = write(numbered)
        self._written.keep(key, (numbered, forms))
        return forms


def _serves(written: tuple[NumberedKernel, Forms], kernel: Kernel) -> bool:
    """Whether what was written for a kernel of this structure is also what another one needs."""
    numbered, forms = written
    return numbered.serves(kernel) and forms.serves(kernel.numbers)


def refused(shader: Shader, library: str, words: str, line: int, dump: str) -> WeftError:
    """The error for a text that a compiler refuses: its message, and the line (from 1; 0 if unknown) that it is about.
    `dump` is the option that shows the text."""
    place = shader.places[line - 1] if 0 < line <= len(shader.places) else ""
    where = f" for {place}" if place else ""
    first = next((text.strip() for text in words.splitlines() if text.strip()), "it does not say why")
    hint = f"weft compile {dump} shows the program; --backend native draws it on the CPU"
    return error("driver-refused", f"{library} refuses the program{where}: {first}", hint=hint)


def problem_of(translate: Callable[[], object]) -> str | None:
    """The reason why there is no program; None if there is one."""
    try:
        translate()
    except UnsuitableError as failure:
        return str(failure)
    return None


# The programs of sounds. A sound has one if single precision keeps it in tune.

_DAY = 86_400.0

# The moments of a day at which numbers are tested. They coincide with no period that a patch is likely to have.
_MOMENTS = tuple(_DAY * (0.618033988749895 * number % 1) for number in range(1, 33))

# Below this, single precision resolves a millionth.
_FINE = 8.0


@dataclass(frozen=True, slots=True)
class SoundCode:
    """The program of a sound: a compute shader over the samples of a chunk. `coords` are the coordinates in its
    buffers, in their order, by the kernel's names."""

    shader: Shader
    coords: tuple[str, ...]

    def named(self, launch: Launch) -> Launch:
        """A launch with its coordinates under the names that the program uses, too."""
        names = zip(self.shader.coords, self.coords, strict=True)
        return replace(launch, coords={**launch.coords, **{made: launch.coords[name] for made, name in names}})


def sound_translated(kernel: Kernel, writer: ProgramWriter) -> SoundCode:
    """The code of a sound whose time is given by blocks (`ContextSpec.by_blocks`). Raises UnsuitableError with the
    reason if it has none."""
    if kernel.slots:
        raise UnsuitableError("each of its samples needs the one before")
    if any((given.source, given.key) == ("coord", TIME) for given in _given(kernel)):
        raise UnsuitableError("it uses the time itself at every sample, which single precision puts out of tune")
    if _has_coarse_numbers(kernel):
        raise UnsuitableError("it uses a number that grows with the time, which single precision puts out of tune")
    identifiers = Identifiers()
    # In a program, `mouse@x` is `mouse_x`.
    names = {name: identifiers.new(name) for name, _ in kernel.coords}
    shader = writer.over_points(replace(_renamed(kernel, names), sweep="points", tick="launch"))
    known = {made: name for name, made in names.items()}
    return SoundCode(shader, tuple(known[made] for made in shader.coords))


def _given(kernel: Kernel) -> Iterator[Scalar | Line]:
    for section in kernel.sections:
        if section.rate > Rate.FRAME:
            yield from section.given()


def _has_coarse_numbers(kernel: Kernel) -> bool:
    """Whether samples depend on a number that is the same for a whole block, and at some time of a day is too large for
    single precision."""
    used = {int(given.key) for given in _given(kernel) if given.source == "local"}
    tested = [at for at in used if kernel.locals[at].rate == Rate.FRAME and kernel.locals[at].type == "float"]
    if not tested:
        return False
    prologue = LaunchPrologue(kernel)
    machines = [prologue.begin(StateMemory(()), one_sample(kernel, moment)) for moment in _MOMENTS]
    numbers = np.array([machine.locals for machine in machines])[:, tested]
    with np.errstate(all="ignore"):
        changes = (numbers != numbers[0]).any(axis=0)
        return bool((np.abs(numbers) > _FINE)[:, changes].any())


def one_sample(kernel: Kernel, moment: float) -> Launch:
    """A launch of one sample at a moment, with placeholders for all inputs."""
    coords: dict[str, Value] = {name: 0.0 for name, _ in kernel.coords}
    return Launch(
        shape=(1, 1),
        coords={**coords, TIME: moment},
        uniforms=dict.fromkeys(kernel.uniforms, 1.0),
        strands=dict.fromkeys(kernel.strands, lambda *at: 0.0),
        pictures={path: np.zeros((1, 1, 4), np.float32) for path in kernel.pictures},
    )


def _renamed(kernel: Kernel, names: Mapping[str, str]) -> Kernel:
    def renamed(leaf: Node) -> Node:
        match leaf.attr:
            case Scalar("coord", str(name)) | Line("coord", str(name)):
                return Node(leaf.op, (), leaf.kind, leaf.attr._replace(key=names[name]))
        return leaf

    rewriters = [(section, Rewriter({leaf: renamed(leaf) for leaf in section.leaves()})) for section in kernel.sections]
    sections = tuple(rewriter.section(section) for section, rewriter in rewriters)
    return replace(kernel, sections=sections, coords=tuple((names[name], rate) for name, rate in kernel.coords))


# The pictures that programs sample.

T = TypeVar("T")


class CardPictures(Generic[T]):
    """Pictures that are uploaded when a program first needs them, and again when their file has changed."""

    def __init__(self, send: Callable[[Picture, T | None], T]) -> None:
        """`send` uploads a picture [height, width, 4], if possible to where the one before it was."""
        self._send = send
        self._known: dict[str, tuple[Picture, T]] = {}

    def on_card(self, path: str, picture: Picture) -> T:
        """A picture on the card; uploads it only if it has changed."""
        known = self._known.get(path)
        if known is None or known[0] is not picture:
            # Only frames of films and cameras are overwritten, since only the program that draws now uses them. Other
            # pictures may also belong to programs that are being prepared.
            before = known[1] if known and isinstance(known[0], Frame) and isinstance(picture, Frame) else None
            known = self._known[path] = picture, self._send(picture, before)
        return known[1]


# Subgraphs that draw or compute numbers.


class CardPicture(PictureHandle):
    """A picture on a card. Its buffer is reused in the tick after the next."""

    def __init__(self, shape: tuple[int, int]) -> None:
        """`shape` is height and width."""
        self._shape = shape
        self._pixels: npt.NDArray[np.uint8] | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        return (*self._shape, 4)

    def read(self) -> npt.NDArray[np.uint8]:
        if self._pixels is None:
            self._pixels = self.fetched()
        return self._pixels

    @abstractmethod
    def fetched(self) -> npt.NDArray[np.uint8]:
        """A copy of the pixels; waits until they have been drawn."""


class CardCompiled(RecordedSubgraph):
    """A subgraph that is ready to run. Its memory is for one size of picture."""

    code: ShaderCode
    memory: CardState

    @property
    @abstractmethod
    def device(self) -> object:
        """Identifies the device: programs on an equal device can bind values of this one."""

    @abstractmethod
    def can_bind(self, ref: StrandRef) -> bool:
        """Whether the values of an exposed strand can be left on the card."""

    @abstractmethod
    def ask(self, ref: StrandRef, launch: Launch) -> Fetch:
        """Requests a strand at the points of a launch, as it was in the last finished tick, and returns a function that
        fetches the values. Does not wait if the card computes them."""

    def value_at(self, ref: StrandRef, launch: Launch) -> Array:
        """The values of a strand at the points of a launch, as it was in the last finished tick."""
        return self.ask(ref, launch)()

    @abstractmethod
    def bound_at(self, ref: StrandRef, launch: Launch) -> Any:
        """A value for each point of a launch, left on the card in the form that programs bind. Does not wait."""

    @abstractmethod
    def draw(self, launch: Launch) -> PictureHandle | None:
        """One tick: draws a picture and advances the state. None if it has state but no outputs."""

    @abstractmethod
    def planes(self, launch: Launch) -> Floats:
        """One tick: returns the plain outputs [outputs, height, width], and advances the state."""

    def picture(self, launch: Launch) -> PictureHandle | None:
        """One tick, like `draw`. If nothing in the picture changes, returns the last picture."""
        if self.drawn is not None and self.stillness.lasts(launch):
            return self.drawn
        self.drawn = self.draw(launch)
        self.stillness.drew(launch)
        return self.drawn

    def run(self, memory: StateMemory, launch: Launch, sync: bool = True, out: Array | None = None) -> Array:
        if memory is not self.memory:
            raise ValueError("a subgraph on the graphics card runs on its own memory")
        shown = self.picture(launch) if self.code.grid.drawn.packed else None
        found: Array = self.planes(launch) if shown is None else shown.read()
        if out is None:
            return found
        np.copyto(out, found)
        return out

    def dump(self) -> str:
        return self.code.grid.drawn.text


# Backends. They open their device when something is compiled.


class CardBackend(Backend):
    """Computes the subgraphs of a context, each by one program over all its elements."""

    packed: ClassVar[bool] = False
    """Whether outputs become pixels."""
    library: ClassVar[str]
    """The name of the library that it uses, for messages."""
    dialect: ClassVar[Dialect]
    failure: ClassVar[type[Exception]]
    """The exception that its device raises when it is lost."""
    most_seconds: float = MOST_SECONDS
    """The seconds after which a device that does not answer is lost."""

    def set_offline(self) -> None:
        self.most_seconds = FILM_SECONDS

    @functools.cached_property
    def writer(self) -> ProgramWriter:
        """The writer of its programs."""
        return ProgramWriter(self.dialect)

    @functools.cached_property
    def _prologues(self) -> RecentlyUsed[str, NativeCode | None]:
        """The machine code of prologues, by the structures of their kernels."""
        return RecentlyUsed(_WRITTEN)

    @functools.cached_property
    def _interpreters(self) -> RecentlyUsed[str, Interpreter]:
        """The interpreters of prologues, likewise."""
        return RecentlyUsed(_WRITTEN)

    def shape(self, env: Env) -> tuple[int, int]:
        """Height and width of the sweep."""
        return 1, 1

    def unsuitable(self, unit: Unit) -> str | None:
        return problem_of(lambda: self.writer.code(unit, self.packed))

    def is_at_hand(self, unit: Unit) -> bool:
        return self.writer.knows(unit, self.packed)

    def translate(self, unit: Unit, tier: int = 1) -> object:
        if tier > 1:
            return self._prologue_code(unit.kernel)
        try:
            return self.code(unit)
        except UnsuitableError:
            return None

    def _prologue_code(self, kernel: Kernel) -> NativeCode | None:
        """The machine code of a prologue: that of the last one which differed in numbers only, if there was one."""
        return _with_numbers(self._prologues.get_or_make(structure_hash(kernel), lambda: prologue_code(kernel)), kernel)

    def tier(self, compiled: Compiled) -> int | None:
        return self.own(compiled).prologue.tier

    def upgrade(self, compiled: Compiled, code: object) -> None:
        if isinstance(code, NativeCode):
            self._prologues.keep(structure_hash(compiled.unit.kernel), code)
            self.own(compiled).prologue.upgrade(code)

    def at_known_tier(self, made: CardCompiled) -> CardCompiled:
        """A new subgraph, whose prologue runs as that of the last kernel did which differed in numbers only: by machine
        code if there was some, and else by its interpreter. No frame waits until that is made."""
        kernel = made.unit.kernel
        key = structure_hash(kernel)
        if (code := _with_numbers(self._prologues.find(key), kernel)) is not None:
            made.prologue.upgrade(code)
        else:
            made.prologue.interpret_by(self._interpreters.get_or_make(key, lambda: Interpreter.of_prologue(kernel)))
        return made

    def code(self, unit: Unit) -> ShaderCode:
        """The programs of a unit. Raises UnsuitableError."""
        return unit.code if isinstance(unit.code, ShaderCode) else self.writer.code(unit, self.packed)

    def check(self, unit: Unit) -> None:
        """Raises WeftError for a unit that has to run on another backend."""
        reason = None if isinstance(unit.code, ShaderCode) else self.unsuitable(unit)
        if reason is not None:
            words = f"{self.library} cannot compute {unit.subgraph.name}: {reason}"
            raise error("unsuitable", words, hint="--backend native computes it on the CPU")

    def execute_subgraph(self, compiled: Compiled, env: Env, coordinator: Coordinator) -> Values:
        own, shape = self.own(compiled), self.shape(env)
        if not self.packed and own.unit.kernel.outputs:
            return self._planes(own, env, coordinator, shape)
        try:
            drawn = own.by_record(env, shape)
        except self.failure as failure:
            raise DeviceLostError(self.context, str(failure)) from failure
        if drawn is not None:
            return drawn
        launch = tick(own.unit.kernel, env, coordinator, shape, nowhere(env))
        shown = self.guarded(lambda: own.picture(launch))
        return shown if shown is not None else np.zeros((0, *launch.shape), np.float32)

    def try_out(self, compiled: Compiled, env: Env, coordinator: Coordinator, raw: bool = False) -> Values:
        if raw:
            return self._planes(self.own(compiled), env, coordinator, self.shape(env))
        return self.execute_subgraph(compiled, env, coordinator)

    def get_value_at(
        self, ref: StrandRef, compiled: Compiled, coords: Mapping[str, Value], env: Env, coordinator: Coordinator
    ) -> Array:
        (values,) = self.get_values_at([Reading(ref, compiled, coords)], env, coordinator)
        return values

    def get_values_at(self, reads: Sequence[Reading], env: Env, coordinator: Coordinator) -> list[Array]:
        fetches = []
        for ref, compiled, coords in reads:
            launch, shape = at_points(compiled.unit.points[ref], coords, env, coordinator)
            fetches.append((self.guarded(partial(self.own(compiled).ask, ref, launch)), shape))
        # The last request is waited for first, since the others are finished by then.
        return [self.guarded(fetch).reshape(shape) for fetch, shape in fetches[::-1]][::-1]

    def get_handle(self, ref: StrandRef, compiled: Compiled) -> Handle | None:
        own = self.own(compiled)
        return CardHandle(self, ref, own) if own.can_bind(ref) else None

    @abstractmethod
    def own(self, compiled: Compiled) -> CardCompiled:
        """A subgraph of this backend. Raises TypeError for one that runs on another."""

    def capabilities(self) -> Capabilities:
        return Capabilities(handles=True, sources=frozenset({"picture"}))

    def allocate(self, compiled: Compiled, old: Iterable[Compiled]) -> None:
        self.guarded(lambda: super(CardBackend, self).allocate(compiled, old))

    def adopt(self, compiled: Compiled, old: Iterable[Compiled], copy: bool = False) -> list[str]:
        return self.guarded(lambda: super(CardBackend, self).adopt(compiled, old, copy))

    def remembered(self, compiled: Compiled) -> StateMemory:
        return self.guarded(self.own(compiled).memory.finished)

    def remembered_into(self, compiled: Compiled, into: StateMemory) -> StateMemory:
        return self.guarded(lambda: self.own(compiled).memory.finished(into))

    def upload(self, data: Array, memory: Any) -> None:
        own = super().upload if isinstance(memory, np.ndarray) else lambda given, into: into.fill(given)
        self.guarded(lambda: own(data, memory))

    def download(self, memory: Any) -> Array:
        own = super().download if isinstance(memory, np.ndarray) else lambda of: np.asarray(of.read())
        return self.guarded(lambda: own(memory))

    def is_finite(self, compiled: Compiled, key: str) -> bool:
        return self.guarded(lambda: super(CardBackend, self).is_finite(compiled, key))

    def begin_again(self, compiled: Compiled, keys: Sequence[str]) -> list[str]:
        return self.guarded(lambda: super(CardBackend, self).begin_again(compiled, keys))

    def guarded(self, work: Callable[[], T]) -> T:
        """Calls `work`, which uses the device. Raises DeviceLostError if that is lost."""
        try:
            return work()
        except self.failure as failure:
            raise DeviceLostError(self.context, str(failure)) from failure

    def _planes(self, own: CardCompiled, env: Env, coordinator: Coordinator, shape: tuple[int, int]) -> Floats:
        """One tick that gives plain outputs [outputs, height, width]."""
        launch = tick(own.unit.kernel, env, coordinator, shape, nowhere(env))
        return self.guarded(lambda: own.planes(launch))


def _with_numbers(code: NativeCode | None, kernel: Kernel) -> NativeCode | None:
    """The code of a prologue with the numbers of this kernel."""
    return None if code is None else replace(code, layout=replace(code.layout, given=kernel.numbers))


class CardHandle(Handle):
    """A strand of a subgraph on a card, with its values left there."""

    def __init__(self, backend: CardBackend, ref: StrandRef, compiled: CardCompiled) -> None:
        self.device = compiled.device
        self._backend = backend
        self._ref = ref
        self._compiled = compiled

    def values_at(self, coords: Mapping[str, Value], env: Env, coordinator: Coordinator) -> Any:
        launch, _ = at_points(self._compiled.unit.points[self._ref], coords, env, coordinator)
        return self._backend.guarded(lambda: self._compiled.bound_at(self._ref, launch))


# A backend lists one of these classes before that of its library.


class CardVisual(CardBackend):
    """Gives a picture on the card."""

    context = "visual"
    packed = True

    def shape(self, env: Env) -> tuple[int, int]:
        return env.height, env.width

    def rehearsing(self) -> Backend:
        return self._rehearsal

    @functools.cached_property
    def _rehearsal(self) -> Backend:
        """It keeps the lists of calls of the last pictures, so a number that is tuned takes hardly any time."""
        return CpuVisual(VectorExecutor.name if executor_problem(NativeExecutor.name) else NativeExecutor.name)


class CardCompute(CardBackend):
    """Gives one number for each value of the `compute` statements, as [values, 1, 1]: a picture of one pixel. Waits for
    it. The CPU computes the rarer sections in double precision."""

    context = "compute"

    def rehearsing(self) -> Backend:
        return CpuCompute(VectorExecutor.name)


# Sound, block by block. Where the inputs of a subgraph stay constant, the card computes several blocks ahead.

# The number of blocks that are computed together, ahead of time. They have at most this many samples in all, unless one
# block has more: the longer a chunk, the less exact is the time within it.
_AHEAD = 4
_MOST_AHEAD = 2048


class SampleChunk(ABC):
    """Samples that the card has computed or will compute: `count` for each channel, from sample `first` on."""

    def __init__(self, first: int, shape: tuple[int, int, int]) -> None:
        """`shape` is [channels, outputs, count]."""
        self.first = first
        self.shape = shape
        self.count = shape[2]
        self.stopped = False
        """Whether a loop reached its limit; known once the samples are."""
        self._samples: Floats | None = None

    @property
    def end(self) -> int:
        return self.first + self.count

    def samples(self) -> Floats:
        """The samples [channels, outputs, count] in double precision; waits for them at the first call. Raises what the
        device raises when it is lost."""
        if self._samples is None:
            found = [values.reshape(self.shape[1:]) for values in self.fetched()]
            self._samples = np.stack(found).astype(np.float64)
        return self._samples

    @abstractmethod
    def fetched(self) -> Sequence[npt.NDArray[np.float32]]:
        """The samples of each channel [outputs · count]; waits for them. Notes whether a loop was `stopped`."""


def _changes(picture: str) -> bool:
    """Whether a picture changes from block to block, in place."""
    return is_view(picture) or is_heard(picture)


class Sounding(Protocol):
    """The program of a sound, with its buffers."""

    def begin(self, first: int, launches: Sequence[Launch]) -> SampleChunk:
        """Starts to compute a chunk, with a launch for each channel; does not wait. Raises what the device raises when
        it is lost."""


@dataclass
class CardSound:
    """A subgraph of sound that is ready to run. It has no state."""

    unit: Unit
    code: SoundCode
    sounding: Sounding
    memory: StateMemory = field(default_factory=lambda: StateMemory(()))
    _known: Hashable = None
    """The inputs that the chunks were computed with."""
    _chunks: tuple[SampleChunk, ...] = ()
    """The chunk that is being played, and the next one, which the card is computing."""

    def play(self, block: SampleBlock, launch: Launch) -> Floats:
        """The samples of a block [channels, outputs, samples], with one channel if all are the same. `launch` has all
        inputs except the coordinates. Raises what the device raises when it is lost."""
        kernel = self.unit.kernel
        channels = block.channels if block.differs(kernel) else 1
        begin = functools.partial(self._begin, block, launch, channels)
        known = self._inputs(block, launch, channels)
        if known is None:
            self._known, self._chunks = None, ()
            return self._samples_of(begin(block.first, block.samples), launch)
        if known != self._known:
            self._known, self._chunks = known, ()
        pieces: list[Floats] = [np.zeros((channels, len(kernel.outputs), 0))]
        at, end = block.first, block.first + block.samples
        while at < end:
            self._reach(at, block.samples, begin)
            chunk = self._chunks[0]
            pieces.append(self._samples_of(chunk, launch)[:, :, at - chunk.first : end - chunk.first])
            at += pieces[-1].shape[2]
        return np.concatenate(pieces, axis=2)

    def _inputs(self, block: SampleBlock, launch: Launch, channels: int) -> Hashable:
        """All inputs of the samples except their number; None if an input changes from sample to sample, so that
        nothing can be computed ahead."""
        kernel = self.unit.kernel
        smoothed = [(name, block.controls[name]) for name, _ in kernel.coords if is_smoothed(name)]
        are_constant = all(values.size and (values == values.flat[0]).all() for _, values in smoothed)
        if any(map(_changes, kernel.pictures)) or not are_constant:
            return None
        given = [*((name, float(values.flat[0])) for name, values in smoothed), *launch.uniforms.items()]
        # A zero with another sign is another input.
        numbers = tuple((name, value, math.copysign(1.0, value)) for name, value in given)
        return block.rate, channels, numbers, tuple(map(id, launch.pictures.values()))

    def _begin(self, block: SampleBlock, launch: Launch, channels: int, first: int, count: int) -> SampleChunk:
        """Starts a chunk of `count` samples. Its inputs are taken to stay the same after the end of the block."""

        def own(values: Floats, channel: int) -> Value:
            given = values if values.ndim == 1 else values[channel]
            return given if len(given) == count else float(given[0])

        # These are overwritten in place. Without copies, the card would mistake them for pictures that it already has.
        pictures = {path: np.array(p) if _changes(path) else p for path, p in launch.pictures.items()}
        launches = []
        for channel in range(channels):
            smoothed = {name: own(values, channel) for name, values in block.controls.items()}
            coords = {**middle(first, count, block.rate), "channel": float(channel), **smoothed}
            wanted = replace(launch, shape=(1, count), coords=coords, pictures=pictures)
            launches.append(self.code.named(wanted))
        return self.sounding.begin(first, launches)

    def _reach(self, at: int, samples: int, begin: Callable[[int, int], SampleChunk]) -> None:
        """Makes the chunk that contains sample `at` the first one, and starts the next one if necessary."""
        self._chunks = tuple(chunk for chunk in self._chunks if chunk.end > at)
        if not self._chunks or self._chunks[0].first > at:
            # The first chunk is short because it is waited for.
            self._chunks = (begin(at, samples),)
        if len(self._chunks) == 1:
            self._chunks += (begin(self._chunks[0].end, max(samples, min(_AHEAD * samples, _MOST_AHEAD))),)

    def _samples_of(self, chunk: SampleChunk, launch: Launch) -> Floats:
        samples = chunk.samples()
        if chunk.stopped:
            chunk.stopped = False
            launch.loop_stopped()
        return samples

    def run(self, memory: StateMemory, launch: Launch, sync: bool = True, out: Array | None = None) -> Array:
        """Samples at the coordinates of the launch: [outputs, 1, samples]."""
        found: Floats = self.sounding.begin(0, [self.code.named(launch)]).samples()[0][:, np.newaxis]
        if out is None:
            return found
        np.copyto(out, found)
        return out

    def value_at(self, ref: StrandRef, launch: Launch) -> Array:
        """Raises KeyError, since readers of a sound get the samples that were played."""
        raise KeyError(ref)

    def dump(self) -> str:
        return self.code.shader.text


def middle(first: int, count: int, rate: float) -> dict[str, Value]:
    """The time of `count` samples as a block: relative to the middle one, which halves the largest rounding error."""
    return {TIME: (first + count // 2) / rate, SINCE: _around_middle(count, rate)}


@functools.lru_cache(maxsize=8)
def _around_middle(count: int, rate: float) -> Floats:
    """The array is read-only, so a card that has uploaded it knows that it stays the same."""
    times: Floats = (np.arange(count) - count // 2) / rate
    times.setflags(write=False)
    return times


class CardAudio(CardBackend):
    """Gives [channels, outputs, samples], computed in single precision, with one channel if all are the same. The CPU
    reduces the time of a block to one period of what depends on it, in double precision; a program computes the
    samples, usually several blocks ahead.

    A subclass lists it before the backend of its library."""

    context = "audio"

    @classmethod
    def spec_of(cls, spec: ContextSpec) -> ContextSpec:
        return spec.by_blocks()

    @abstractmethod
    def sound(self, unit: Unit, code: SoundCode) -> CardSound:
        """A subgraph of sound. Raises WeftError if the driver refuses its program, and what the device raises when it
        is lost."""

    def capabilities(self) -> Capabilities:
        return Capabilities(state=False, feedback=False, sources=frozenset({"picture"}))

    def rehearsing(self) -> Backend:
        return CpuAudio(VectorExecutor.name)

    def is_at_hand(self, unit: Unit) -> bool:
        return True  # a sound fades from one program to the next, so there is time

    def unsuitable(self, unit: Unit) -> str | None:
        return problem_of(lambda: sound_translated(unit.kernel, self.writer))

    def translate(self, unit: Unit, tier: int = 1) -> SoundCode | None:
        if tier > 1:
            return None
        try:
            return sound_translated(unit.kernel, self.writer)
        except UnsuitableError:
            return None

    def compile_subgraph(self, unit: Unit, env: Env, coordinator: Coordinator) -> Compiled:
        code = unit.code
        if not isinstance(code, SoundCode):
            self.check(replace(unit, code=None))
            code = sound_translated(unit.kernel, self.writer)
        return self.guarded(lambda: self.sound(unit, code))

    def tier(self, compiled: Compiled) -> int | None:
        return None

    def upgrade(self, compiled: Compiled, code: object) -> None:
        """Keeps the code for the CPU, which takes over if the card fails."""
        if isinstance(compiled, CardSound):
            compiled.unit = replace(compiled.unit, code=code)

    def execute_subgraph(self, compiled: Compiled, env: Env, coordinator: Coordinator) -> Array:
        if not isinstance(compiled, CardSound):
            raise TypeError(f"{compiled.unit.subgraph.name} runs on another backend")
        block = block_of(env)
        launch = tick(compiled.unit.kernel, env, coordinator, (1, block.samples), {})
        return self.guarded(lambda: compiled.play(block, launch))

    def try_out(self, compiled: Compiled, env: Env, coordinator: Coordinator, raw: bool = False) -> Array:
        return self.execute_subgraph(compiled, env, coordinator)

    def get_handle(self, ref: StrandRef, compiled: Compiled) -> None:
        return None

    def adopt(self, compiled: Compiled, old: Iterable[Compiled], copy: bool = False) -> list[str]:
        return Backend.adopt(self, compiled, old, copy)

    def remembered(self, compiled: Compiled) -> StateMemory:
        return compiled.memory

    def remembered_into(self, compiled: Compiled, into: StateMemory) -> StateMemory:
        return compiled.memory
