"""Kernels of sounds, played launch by launch, and programs that cover all features."""

from __future__ import annotations

from functools import cache
from itertools import accumulate

import numpy as np

from tests.support.beats import changing_beats
from tests.support.tolerances import SERIES
from weft.backends.launch import Launch, StateMemory
from weft.codegen.kernel import Kernel
from weft.codegen.native.plan import KernelDomain, domain_of
from weft.contexts import ContextTable
from weft.errors import Source
from weft.names import is_sound
from weft.runtime.compiling.stages import Request, build

RATE = 48_000

# Shorter than a vector, around one, around a chunk, and several.
SIZES = (100, 1, 2, 3, 255, 256, 257, 16, 17, 600, 800, 31)

_PICTURE = np.random.default_rng(7).random((3, 5, 4), np.float32)
_SOUND = np.random.default_rng(8).uniform(-1, 1, (1, 90, 2)).astype(np.float32)

PROGRAMS = {
    "nothing": "play(0.25)",
    "no state": "play(sin(me@time * 440 * tau) * me@time, me@abssample % 7)",
    "one tick": "y<v> = prev(y@v) * 0.9 + sin(me@time * 300) * 0.1\nplay(y@v, prev(y@v))",
    "sums": (
        "a<v> = 0.999 * prev(a@v) + sin(me@time * 99) * 0.01\nb<v> = 0.5 * prev(b@v) + a@v * a@v\n"
        "c<v> = cos(b@v) + prev(c@v) * -0.9\nplay(a@v, b@v, c@v * 2)"
    ),
    "infinite sums": "y<v> = prev(y@v) * 0.5 + (if me@abssample == 700 then 1 / 0 else me@abssample % 3)\nplay(y@v)",
    "two that need each other": "a<v> = prev(b@v) * 0.7 + 0.1\nb<v> = cos(prev(a@v) + me@time)\nplay(a@v, b@v)",
    "echo": "e<v> = sin(me@time * 999) + 0.5 * delay(e@v, 300, 400)\nplay(e@v)",
    "echo that moves": (
        "e<v> = sin(me@time * 999) + 0.5 * delay(e@v, max(1, 150.3 + 140 * sin(me@time * 5)), 400)\n"
        "play(e@v)"
    ),
    "short echo": "e<v> = sin(me@time * 999) + 0.5 * delay(e@v, 2, 3)\nplay(e@v, delay(me@time, 1.5, 7))",
    "phasor": "play(phasor(440 + 200 * sin(me@time * 7)), phasor(phasor(3) * 1000))",
    "integral": "play(integrate(sin(me@time * 100)) * 10, integrate(mouse@x))",
    "held": "play(hold(sin(me@time * 31), floor(me@time * 100)), hold(me@time, floor(me@time * 999)))",
    "choice": (
        "a<v> = prev(a@v) + 0.01\nplay(if a@v % 1 < 0.5 then exp(a@v) else tanh(a@v), if mouse@x > 0.6 then a@v else 1)"
    ),
    "hash": "n<v> = hash(me@abssample)\nlow<v> = mix(prev(low@v), n@v, 0.1)\nplay(low@v, hash(floor(low@v * 99)))",
    "noise": "play(noise(me@time * 700), tan(me@time) + asin(fract(me@time * 9)))",
    "past": "w<v> = sin(me@time * 999)\ncache(w, 5)::p<v>\nplay(p@v(p@k ~ 4 * fract(me@time * 50)))",
    "two of a loop, one always the same": (
        "spindle f(x) :: <o, p> { out o = x\n out p = 0.5\n"
        " for i in (1 to 20) { o += x * 0.1\n p = p * 0.9 + i * 0.01 }\n p = p * 2 }\n"
        "f(sin(me@time * 400))::h<o, p>\nplay(h@o * 0.1, h@p + prev(h@o))"
    ),
    "picture": (
        'load("a.png")::img<r, g, b, a>\ny<v> = prev(y@v) * 0.5 + img@r(me@x ~ fract(me@time * 99), me@y ~ prev(y@v))\n'
        "play(y@v, img@g(me@x ~ mouse@x))"
    ),
    "sound": (
        'load("a.wav")::k<l, r>\nload("b.wav", loop: 1)::b<l, r>\n'
        "y<v> = prev(y@v) * 0.5 + k@l(me@time ~ prev(y@v) * 0.001)\n"
        "play(y@v + k@l, b@r(me@time ~ me@time * 1.3) + k@r(me@time ~ mouse@x * 0.001) + b@seconds)"
    ),
    "channels": "play(sin(me@time * (440 + me@channel)))",
}  # fmt: skip

LOOPS_OF_SEVERAL = {
    "one of state": (
        "spindle f(x) :: <o, p> { out o = prev(o)\n out p = x\n"
        " for i in (1 to 2 + me@y * 4) { p += 0.1\n o += 0.1 } }\nplay(f(1)@p, f(me@time)@p)"
    ),
    "one of state, one always the same": (
        "spindle f(x) :: <o, p> { out o = prev(o) * 0.5 + x\n out p = 0.5\n"
        " for i in (1 to 20) { o = o * 0.5 + p\n p = p * 0.9 + i * 0.01 }\n p = p * 2 }\n"
        "f(sin(me@time * 400))::h<o, p>\nplay(h@o * 0.1, h@p)"
    ),
    "all of state, one stored": (
        "spindle f(x) :: <o, p> { out o = prev(o) * 0.5 + x\n out p = delay(o, 2, 3)\n"
        " for i in (1 to 2 + me@y * 4) { p = p * 0.5 + o\n o = o * 0.3 } }\nplay(f(me@time)@p)"
    ),
}
"""Loops that carry several values, some of which need state. Numpy cannot compute these block by block."""

LOOPS = {
    "partials": ("o += sin(t * 55 * (i + 1) * tau) / (i + 1)", "0 to 40"),
    "waves with levels": ("o += sin(t * 99 * i + mouse@x) * (cos(0.5 + t * (i % 3)) + 2) * 0.1", "0 to 40"),
    "powers": ("o = o * 0.5 + cos(t * 50 * 1.01 ^ i)", "1 to 50"),
    "no step": ("o += sin(t * i)", "3 to me@abssample * 0"),
    "bounds of the frame": ("o += sin(t * i + o)", "0 to me@rate / 1e3"),
    "bounds of the sample": ("o += sin(t * i)", "0 to fract(t * 20) * 90"),
    "nested": ("for j in (0 to integrate(0) + 4) { o += sin(t * i * j) }", "0 to 20"),
    "nested bounds": ("for j in (0 to i) { o = o * 0.9 + sin(t * i * j) }", "0 to 20"),
    "of state": ("o += sin(s * i)", "0 to 30"),
    "of state, bounds too": ("o = o * 0.5 + sin(s * i)", "0 to 20 + s * 20"),
    "over state": ("o = o * 0.5 + fb * sin(i + t)", "0 to 20"),
}  # fmt: skip


def looping(step: str, bounds: str) -> str:
    """A program with a loop, part of which depends on state."""
    return f"""
        spindle f(t, s, fb) :: o {{ o = 0.1
          for i in ({bounds}) {{ {step} }}
          o = o * 0.1 }}
        s<v> = phasor(3)
        e<v> = f(me@time, s@v, prev(e@v))
        play(e@v, f(me@time * 2, s@v, 0))
    """


@cache
def kernel_of(text: str) -> Kernel:
    (unit,) = build(Request(Source("test.weft", text), ContextTable())).units
    assert domain_of(unit.kernel) is KernelDomain.SOUND
    return unit.kernel


def launch(made: Kernel, first: int, count: int, start: float = 0.0, **fields) -> Launch:
    """The samples from number `first` on."""
    coords = {
        "x": 0.5, "y": 0.5, "channel": 1.0, "abstime": start + (first + np.arange(count)) / RATE,
        "mouse@x": 0.6 + 0.1 * np.sin(first + np.arange(count)),
    }  # fmt: skip
    values = {
        "dt": 1 / RATE, **changing_beats(0.01, 97, 131),
        **{name: float(_SOUND.shape[1]) for name in filter(is_sound, made.uniforms)},
    }  # fmt: skip
    return Launch(
        (1, count), coords, {name: values.get(name, 0.0) for name in made.uniforms},
        pictures={name: _SOUND if is_sound(name) else _PICTURE for name in made.pictures}, **fields,
    )  # fmt: skip


def played(executor, made: Kernel, sizes=SIZES, start=0.0, codes=None):
    """The outputs of successive launches of these sizes [outputs, samples], and the memory after them."""
    executable, memory, found = executor.load(made, codes or {}), StateMemory(made.slots), []
    for first, size in zip(accumulate(sizes, initial=0), sizes, strict=False):
        planes = executable.planes(memory, launch(made, first, size, start))
        assert (planes.shape, planes.dtype) == ((len(made.outputs), 1, size), np.float64)
        found.append(planes[:, 0])
    return np.concatenate(found, axis=1), memory


def assert_same(got, expected, tolerance=SERIES):
    (sound, memory), (wanted, remembered) = got, expected
    assert tolerance.agreement(sound, wanted).all(), np.abs(sound - wanted).max()
    assert memory.ticks == remembered.ticks
    for key in remembered.slots:
        assert tolerance.agreement(memory.ring(key), remembered.ring(key)).all(), key
