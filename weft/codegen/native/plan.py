"""How a kernel runs as native code: its first form, the form that takes over, and why. All of that is decided here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from weft.codegen.kernel import Kernel
from weft.codegen.native.module import reads_strands, sections_that_read
from weft.codegen.native.serial_parts import is_series, states
from weft.codegen.native.tiles import PROGRAMS, has_handler
from weft.codegen.values import Node
from weft.ir.rates import Rate


class KernelDomain(Enum):
    """The kind of the elements of a kernel."""

    PICTURE = "picture"
    """Pixels that do not depend on each other, in single precision."""
    SOUND = "sound"
    """Samples, one after another, in double precision."""


class Form(Enum):
    """The form of a kernel as code."""

    LIST = "a list of calls"
    """Records of functions that exist: there in milliseconds."""
    MODULE = "machine code"
    """A module that LLVM compiles: quickly for the first tier."""
    QUICK_MODULE = "machine code, made quickly"
    """The same in the second tier, for kernels that LLVM would take too long to optimise."""


@dataclass(frozen=True, slots=True)
class NativePlan:
    """The forms of a kernel in the first and in the second tier: None where there is none. `reason` says why it is not
    a list of calls followed by all that LLVM can do; it is empty if it is."""

    domain: KernelDomain | None
    first: Form | None = None
    second: Form | None = None
    reason: str = ""

    @property
    def text(self) -> str:
        """The plan for people, in a line."""
        forms = [form.value for form in (self.first, self.second) if form is not None]
        text = ", then ".join(forms) if forms else "numpy"
        return f"{text}: {self.reason}" if self.reason else text


# For more values, LLVM takes seconds to make machine code, which is too long on stage.
_MOST_VALUES = 2500

# Operations that take LLVM as long as this many others.
_LONG_CALLS, _LONG = frozenset({"exp", "exp2", "log", "log2", "power", "atan2"}), 7

# For more values, optimising a sound takes so long that a save would have to wait for it.
_MOST_TO_IMPROVE = 1180


def domain_of(kernel: Kernel) -> KernelDomain | None:
    """What a kernel computes, if that can be native code. Its values are looked at only if it reads strands."""
    if is_series(kernel):
        return None if kernel.strands else KernelDomain.SOUND
    by_element = kernel.tick == "element" or any(rate == Rate.ELEMENT for _, rate in kernel.coords)
    is_picture = kernel.sweep == "grid" and not by_element and reads_strands(kernel)
    return KernelDomain.PICTURE if is_picture else None


def plan(kernel: Kernel, lists: bool = True) -> NativePlan:
    """The plan of a kernel without stages, each of which has a plan of its own. Without `lists`, no kernel is a list of
    calls. Walks through all values."""
    domain = domain_of(kernel)
    if domain is None:
        reads = "it reads strands where machine code cannot" if kernel.strands else "its elements depend on each other"
        return NativePlan(None, reason=reads)
    work = _work(kernel)
    lacking = _lacking(kernel, domain) if lists else "lists are not wanted"
    is_huge = work > _MOST_VALUES
    too_many = f"it is too large for LLVM ({work} operations)"
    if lacking and is_huge:
        return NativePlan(domain, reason=f"{too_many}, and no list: {lacking}")
    if is_huge:
        return NativePlan(domain, Form.LIST, None, too_many)
    first, reason = (Form.MODULE, f"no list: {lacking}") if lacking else (Form.LIST, "")
    values = sum(map(len, kernel.sections))
    if domain is KernelDomain.PICTURE or values <= _MOST_TO_IMPROVE:
        return NativePlan(domain, first, Form.MODULE, reason)
    much = f"it has {values} values, which LLVM takes long to compile well"
    return NativePlan(domain, first, Form.QUICK_MODULE if first is Form.LIST else None, reason or much)


def _work(kernel: Kernel) -> int:
    """How much work a kernel is for LLVM, in operations."""
    ops = (op for section in kernel.sections for op in section.ops())
    return sum(_LONG if op in _LONG_CALLS else 1 for op in ops)


def _lacking(kernel: Kernel, domain: KernelDomain) -> str:
    """The reason why a kernel cannot be a list of calls; empty if it can."""
    if domain is KernelDomain.SOUND:
        frame = (kernel.section(rate) for rate in (Rate.CONSTANT, Rate.FRAME))
        if any(section.stores or any(states(section.nodes)) for section in frame):
            return "what it remembers changes once a block"
        nodes = (node for _, node in kernel.walk())
        return _missing(node for node in nodes if node.op == "sample" or not has_handler(node))
    rates = {*PROGRAMS.values()} - sections_that_read(kernel)
    return _missing(node for rate in rates for node in kernel.section(rate).walk() if not has_handler(node))


def _missing(nodes: Iterable[Node]) -> str:
    """A reason about the first of these, for which there is no function; empty without any."""
    node = next(iter(nodes), None)
    return "" if node is None else f"there is no function for {node.op}"
