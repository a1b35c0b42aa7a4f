"""What runs in the process that compiles: `python -m weft.runtime.compile_server FD`, with a socket to the one that
plays."""

from __future__ import annotations

import gc
import signal
import sys
from contextlib import suppress
from multiprocessing.connection import Connection

from weft.errors import Diagnostic
from weft.runtime.compile_process import Request
from weft.runtime.compiler import Compiler, Made, Saved, Setup
from weft.runtime.trial import mistakes


def serve(connection: Connection) -> None:
    """Answers requests until the other end is closed, or dies. The first message is the `Setup`."""
    # Ctrl-C is for the player, who ends this process with its own.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    setup: Setup = connection.recv()
    compiler = setup.compiler()
    # A text makes many objects at once that stay until it is answered: collecting garbage meanwhile is in vain.
    gc.disable()
    gc.freeze()
    while True:
        request: Request = connection.recv()
        made = _attempt(compiler, request.saved)
        connection.send(made.with_codes(dict.fromkeys(request.known)))
        if made.playable is not None:
            connection.send(mistakes(made.playable, compiler.stage, request.moment, made.places))
        del request, made
        gc.collect()


def _attempt(compiler: Compiler, saved: Saved) -> Made:
    try:
        return compiler.compile(saved)
    except Exception as failure:
        words = f"weft itself failed on this text ({type(failure).__name__}: {failure})"
        hint = "this is a bug in weft: WEFT_DEBUG=1 weft check shows where"
        return Made(None, (Diagnostic("error", "internal", words, None, hint),))


if __name__ == "__main__":
    with suppress(EOFError, OSError), Connection(int(sys.argv[1])) as to_player:
        serve(to_player)
