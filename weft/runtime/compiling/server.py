"""What runs in the process that compiles: it answers texts over a socket until the player's process is gone."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection

from weft.codegen.unit import Unit
from weft.errors import WeftError, fault
from weft.runtime.compiling.compiler import Compiler, Made
from weft.runtime.compiling.process import Answer, Content, Improved, Request, Wish
from weft.runtime.compiling.trial import mistakes
from weft.runtime.setup import Setup


def main(descriptor: int) -> None:
    """Serves the socket of this number. The first message is the `Setup`."""
    with suppress(EOFError, OSError), Connection(descriptor) as player:
        setup: Setup = player.recv()
        compiler = _compiler(setup)
        # A text makes many objects at once that stay until it is answered: collecting garbage meanwhile is in vain.
        gc.disable()
        gc.freeze()
        while True:
            message: Request | Wish | Setup = player.recv()
            if isinstance(message, Setup):
                compiler = _compiler(message)
                continue
            player.send(Answer(message.number, "begun"))
            contents = _contents(compiler, message) if isinstance(message, Request) else _better(compiler, message)
            for content in contents:
                player.send(Answer(message.number, content))
            del message, contents
            gc.collect()


def _compiler(setup: Setup) -> Compiler | Made:
    """The compiler, or what to answer in place of it."""
    try:
        return Compiler.of(setup)
    except WeftError as failure:
        return Made(None, failure.diagnostics)
    except Exception as failure:
        return Made(None, (fault("nothing can be compiled", failure),))


def _contents(compiler: Compiler | Made, request: Request) -> Iterator[Content]:
    """What became of a text; if it became a program, also what is wrong with it."""
    if isinstance(compiler, Made):
        yield compiler
        return
    try:
        made = compiler.compile(request.saved)
        yield made.with_codes(dict.fromkeys(request.known))
    except (EOFError, OSError):
        raise
    except Exception as failure:
        yield Made(None, (fault("weft failed on this text", failure),))
        return
    if made.playable is not None:
        yield mistakes(made.playable, compiler.stage, request.moment, made.places)


def _better(compiler: Compiler | Made, wish: Wish) -> Iterator[Content]:
    """Better code for units that run already; none where that fails, since what runs can go on."""
    codes: dict[str, object] = {}
    translated: tuple[Unit, ...] = ()
    started = time.perf_counter()
    if isinstance(compiler, Compiler):
        with suppress(Exception):
            if wish.bridged is not None:
                translated = compiler.stage.translate(wish.bridged).units
            codes = compiler.stage.improve(wish.units, wish.stand_ins)
    yield Improved(codes, (time.perf_counter() - started) * 1e3, translated)
