"""A kernel on the device, its launches, and the state of subgraphs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.card import CardPictures
from weft.backends.launch import Floats, Launch
from weft.backends.memory import StateMemory
from weft.backends.metal.library import MetalError
from weft.backends.prologue import LaunchPrologue, PrologueBlock, line
from weft.backends.reads import StrandReads
from weft.backends.shaders import refused
from weft.backends.vm import Machine
from weft.codegen.clike.shader import BufferSpec, BufferUse, Shader
from weft.codegen.kernel import Kernel
from weft.errors import WeftError
from weft.ir.expr import StateSlot


class MetalMemory(StateMemory):
    """State with the rings of images in buffers that the device shares with the CPU. Reading one waits for the last
    launch."""

    def __init__(self, device: Any, slots: Iterable[StateSlot], shape: tuple[int, int]) -> None:
        """Zeroed memory. Raises what the device raises if it has no room."""
        super().__init__(slots, shape)
        self.buffers: dict[str, Any] = {}
        self.running: Any = None
        """The last launch, until it is waited for."""
        for slot in self.slots.values():
            if slot.image:
                wanted = (slot.depth + 1, slot.planes, *shape)
                self.buffers[slot.key] = device.buffer(4 * int(np.prod(wanted)))
                ring = np.frombuffer(self.buffers[slot.key], np.float32).reshape(wanted)
                ring[...] = 0.0
                self._rings[slot.key] = ring

    def _is_here(self, slot: StateSlot) -> bool:
        return not slot.image

    def ring(self, key: str) -> Floats:
        self.wait()
        return super().ring(key)

    def wait(self) -> None:
        """Waits until the last launch has finished, by releasing its run."""
        self.running = None

    def _adopt_slot(self, key: str, old: StateMemory, copy: bool) -> None:
        self.wait()
        shares = isinstance(old, MetalMemory)
        super()._adopt_slot(key, old, copy or (key in self.buffers and not shares))
        if isinstance(old, MetalMemory) and key in self.buffers and self._rings[key] is old._rings[key]:
            self.buffers[key] = old.buffers[key]


# A kernel on the device, and its launches.

# Finds the line in the compiler's errors: "program_source:12:3: error: …".
_LINE = re.compile(r":(\d+):\d+: (?:fatal )?error: (.*)")


class PictureBuffers(CardPictures[Any]):
    """The pictures that kernels sample, in buffers of a device."""

    def __init__(self, device: Any) -> None:
        super().__init__(lambda picture: uploaded(device, picture))


@dataclass
class DeviceResult:
    """Values left on the device: their buffer, and the launch that fills it."""

    buffer: Any
    run: Any

    def wait(self) -> None:
        """Waits for the values, by releasing the launch."""
        self.run = None


class ComputeProgram:
    """A compiled kernel, with its buffers of inputs."""

    def __init__(self, device: Any, kernel: Kernel, shader: Shader) -> None:
        """Raises WeftError with the compiler's words if it refuses the text."""
        self.shader = shader
        self.prologue = LaunchPrologue(kernel)
        self._strands = StrandReads(kernel)
        self._device = device
        self._finished = int(kernel.sweep == "points")
        self._block = PrologueBlock(shader)
        self._function = _compiled(device, shader)
        self._limit = device.buffer(4)

    def launch(self, machine: Machine, memory: StateMemory, launch: Launch, sources: PictureBuffers, out: Any) -> Any:
        """One launch, for which `machine` has run the prologue. Reads strands of other subgraphs. Releasing the result
        waits for the end of the launch. Does not advance the memory. Raises MetalError."""
        words = self._block.packed(machine, self._finished)
        answers = self._strands.answers(machine, self._device)
        try:
            on_device = {
                key: answer.buffer if isinstance(answer, DeviceResult) else uploaded(self._device, answer)
                for key, answer in answers.items()
            }
            given = [
                on_device[buffer.key]
                if buffer.use == BufferUse.EXTERNAL_READ
                else self._buffer(buffer, words, memory, launch, sources, out)
                for buffer in self.shader.buffers
            ]
            # The answers on the device are kept until this launch has finished.
            return self._function(launch.shape[0] * launch.shape[1], *given), answers
        except Exception as failure:
            raise MetalError(f"a launch fails ({failure})") from failure

    def stopped(self) -> bool:
        """Whether a loop of a finished launch has reached its limit since the last call."""
        if not self.shader.stops:
            return False
        limit = np.frombuffer(self._limit, np.uint32)
        found = bool(limit[0])
        limit[0] = 0
        return found

    def _buffer(
        self, buffer: BufferSpec, words: npt.NDArray[Any], memory: StateMemory, launch: Launch, sources: PictureBuffers,
        out: Any,
    ) -> Any:
        match buffer.use:
            case BufferUse.FRAME:
                return uploaded(self._device, words)
            case BufferUse.OUT:
                return out
            case BufferUse.COORDINATE:
                return uploaded(self._device, line(launch.coords[buffer.key], launch.shape[1]))
            case BufferUse.RING if isinstance(memory, MetalMemory):
                return memory.buffers[buffer.key]
            case BufferUse.RING | BufferUse.HISTORY:
                with np.errstate(all="ignore"):
                    return uploaded(self._device, memory.ring(buffer.key).astype(np.float32))
            case BufferUse.PICTURE:
                return sources.on_card(buffer.key, launch.pictures[buffer.key])
            case BufferUse.LIMIT:
                return self._limit
        raise LookupError(f"nothing is bound as {buffer.use.value}")


def uploaded(device: Any, data: npt.NDArray[Any]) -> Any:
    """A new buffer with the bytes of an array."""
    return device.buffer(np.ascontiguousarray(data).reshape(-1).view(np.uint8))


def _compiled(device: Any, shader: Shader) -> Any:
    try:
        return device.kernel(shader.text).function(shader.entry)
    except Exception as failure:  # the type of the error belongs to the library, which need not be there
        raise _refused(shader, str(failure)) from failure


def _refused(shader: Shader, words: str) -> WeftError:
    """The error for a text that the compiler refuses."""
    found = _LINE.search(words)
    return refused(shader, "Metal", found[2] if found else words, int(found[1]) if found else 0, "--dump-msl")
