"""Every end of a performance restores the terminal, and nothing waits for a terminal."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import termios
from pathlib import Path

import numpy as np
import pytest

from tests.support.pseudo_terminal import noise
from tests.support.together import all_but


def test_the_terminal_is_taken_over(start):
    player = start()
    assert player.modes == {1049, 1002, 1003, 1006}
    input_flags, _, _, local, *_ = termios.tcgetattr(player.slave)
    assert not local & (termios.ECHO | termios.ICANON)
    assert local & termios.ISIG
    assert not input_flags & termios.IXON


ENDS = {
    "close": ("screen.close()", 0),
    "exception": ("raise ValueError('in the middle')", 1),
    "exit": ("sys.exit(3)", 3),
    "exit at once": ("os._exit(4)", 4),
    "abort": ("os.abort()", -signal.SIGABRT),
    **{
        signal.Signals(number).name: (f"os.kill(os.getpid(), {number:d})", code)
        for number, code in (
            (signal.SIGTERM, 128 + signal.SIGTERM),
            (signal.SIGINT, -signal.SIGINT),
            (signal.SIGHUP, 0),
            (signal.SIGQUIT, -signal.SIGQUIT),
            (signal.SIGSEGV, -signal.SIGSEGV),
            (signal.SIGKILL, -signal.SIGKILL),
        )
    },
}


@pytest.mark.parametrize("end", all_but(4, ENDS))
def test_every_end_leaves_the_terminal_as_it_was(start, end, tmp_path: Path):
    player = start(TMPDIR=str(tmp_path))
    player.show(noise(40, 24))
    player.do("os.write(2, b'a stray word')")
    assert not player.is_restored()
    code, status = ENDS[end]
    player.order(code)
    player.until(lambda: player.ended is not None)
    assert player.ended == status
    player.until(player.is_restored)
    player.until(lambda: b"a stray word" in player.raw)
    assert player.raw.index(b"\x1b[?1049l") < player.raw.index(b"a stray word")
    assert (b"ValueError: in the middle" in player.raw) == (end == "exception")
    player.until(lambda: not list(tmp_path.iterdir()))


def test_control_c_is_a_signal(start):
    player = start()
    player.type(b"\x03")
    player.until(lambda: player.ended is not None)
    assert player.ended == -signal.SIGINT
    player.until(player.is_restored)


def test_control_z_gives_the_terminal_back_for_a_while(start):
    player = start()
    picture = noise(40, 24)
    player.show(picture)
    for stop in (1, 2):
        player.type(b"\x1a")
        player.until(lambda stop=stop: player.stops == stop)
        player.until(player.is_restored)
        player.screen.reset()
        os.kill(player.process.pid, signal.SIGUSR1)
        player.until(lambda: player.modes == {1049, 1002, 1003, 1006})
        player.do("pass")
        assert np.array_equal(player.half_blocks(12), picture[..., :3])
    player.order("screen.close()")
    player.until(lambda: player.ended == 0)
    assert player.is_restored()


def test_what_others_print_waits_for_the_end_and_nobody_waits_for_it(start):
    player = start()
    player.show(noise(40, 24))
    player.do("print('first words'); os.write(2, b'x' * 1_000_000); print('later', file=sys.stderr)")
    player.do("os.system('echo from a child >&2')")
    assert b"xxx" not in player.raw
    assert player.lines()[-1] == ""
    player.order("screen.close(); print('at the end')")
    player.until(lambda: player.ended == 0)
    player.until(lambda: b"at the end" in player.raw)
    after = player.raw.partition(b"\x1b[?1049l")[2]
    assert after.startswith(b"first words")
    assert 1000 < after.count(b"x") < 100_000


def test_a_terminal_that_does_not_read_holds_nobody_up(start):
    player = start()
    player.order("poll = screen.poll\nscreen.poll = lambda: (poll(), picture.__iadd__(noise)) and None",
                 picture=noise(40, 24), noise=noise(40, 24, 2))  # fmt: skip
    frames = player.state["frames"]
    player.until(lambda: player.state["frames"] > frames + 2, reading=False)
    os.kill(player.job, signal.SIGINT)
    player.until(lambda: player.ended is not None, reading=False)
    assert player.ended == -signal.SIGINT
    assert player.modes != {7, 25}
    player.until(player.is_restored)


def test_a_slow_terminal_gets_the_latest_picture_in_the_end(start):
    # More than a terminal takes before it is read.
    player = start(columns=100, rows=40)
    for seed in range(5):
        player.order("screen.present(picture)", picture=noise(100, 78, seed))
        player.until(lambda: player.done == player._sent, reading=False)
    player.do("pass")
    wanted = noise(100, 78, 4)[..., :3]
    player.until(lambda: player.raw.endswith(b"\x1b[?2026l") and np.array_equal(player.half_blocks(39), wanted))


def test_a_terminal_that_is_closed_ends_the_show(start):
    player = start()
    os.close(player.slave)
    os.close(player.master)
    player.master = player.slave = -1
    player.until(lambda: player.closed, reading=False)


@pytest.mark.parametrize(("stdout", "term"), [("pipe", "xterm"), ("terminal", "dumb"), ("terminal", "")])
def test_without_a_terminal_nothing_is_changed(stdout, term, tmp_path: Path):
    master, slave = os.openpty()
    code = (
        "import sys\nfrom weft.errors import WeftError\nfrom weft.runtime.screens.terminal import Terminal\n"
        "try: Terminal()\nexcept WeftError as failure: print(failure, file=sys.stderr)"
    )
    before = termios.tcgetattr(slave)
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], stdin=slave, stdout=slave if stdout == "terminal" else subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, check=True, timeout=60, env={**os.environ, "TERM": term},
        )  # fmt: skip
        assert "[no-terminal]" in done.stderr
        assert "hint: " in done.stderr
        assert not done.stdout
        assert not select.select([master], [], [], 0)[0]
        assert termios.tcgetattr(slave) == before
    finally:
        os.close(master)
        os.close(slave)
