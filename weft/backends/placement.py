"""Whether a subgraph is worth the way to a graphics card: its work against what a device costs to ask."""

from __future__ import annotations

from dataclasses import dataclass

from weft.codegen.base import Kernel
from weft.codegen.unit import Unit
from weft.ir.rates import Rate


@dataclass(frozen=True, slots=True)
class Costs:
    """What work and ways cost, in seconds. An operation is a value of a kernel, for one element. What
    stands here is believed of devices that have not been measured (`known_costs.py`)."""

    cpu_operation: float = 1e-10
    """On one core, as machine code: some 240 million pixels a second of the plasma in patches/bench, of 40 operations,
    on a core with AVX2 (docs/performance.md)."""
    gpu_operation: float = 5e-12
    """A tenth of what an NVIDIA H200 takes, which draws that plasma at 1280×720 in 0.07 ms: a small card is meant."""
    launch: float = 5e-5
    """Until a draw has been given to the driver and begun: 19 µs there with the wait for its end, 50 µs on machines
    that share their memory with the card (`weft bench` measures it)."""
    wait: float = 5e-5
    """Until values have been read back, however few. As with the launch, the larger of what is known."""
    upload: float = 1e-10
    """For a byte of a picture on its way to the screen: 10 GB a second."""


COSTS = Costs()
_PIXEL = 4


def operations(kernel: Kernel, shape: tuple[int, int]) -> int:
    """How many operations a launch over a shape (height, width) takes. A loop counts as one turn of it."""
    height, width = shape
    counts = {Rate.ELEMENT: height * width, Rate.COLUMN: width, Rate.ROW: height}
    return sum(len(section) * counts.get(section.rate, 1) for section in kernel.sections)


def stays_on_cpu(unit: Unit, shape: tuple[int, int], cores: int, costs: Costs = COSTS) -> str | None:
    """Why a subgraph that sweeps a shape (height, width) is left to so many cores although there is a graphics card;
    None if the card is worth it."""
    work = operations(unit.kernel, shape)
    shown = shape[0] * shape[1] * _PIXEL * costs.upload if unit.subgraph.sinks else 0.0
    here = work * costs.cpu_operation / max(1, cores) + shown
    reading = len(unit.points) * costs.wait
    there = costs.launch + work * costs.gpu_operation + reading
    if here > there:
        return None
    small = f"{work:,} operations take {here * 1e3:.2g} ms on the CPU"
    if reading > costs.launch:
        return f"{small}, and reading {len(unit.points)} strands back from a graphics card {reading * 1e3:.2g} ms"
    return f"{small}, and a graphics card {there * 1e3:.2g} ms before it has answered"
