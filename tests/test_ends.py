"""Tests that are ended leave no process or file, whatever signal ends them, and a worker that crashes fails a test."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.together import all_but

_ROOT = Path(__file__).parents[1]
_TESTS = """\
import os, subprocess, time
from pathlib import Path
from tests.support.ends import terminate_in_order, tied
from tests.support.forks import forks
terminate_in_order()
with forks() as found, subprocess.Popen(tied(["sleep", "600"]), start_new_session=True) as server:
    fork = found.start(["run", "--headless", "--no-audio", "--no-midi"], Path("/"), os.environ)
    while "sleep" not in Path(f"/proc/{server.pid}/comm").read_text():
        time.sleep(0.01)
    try:
        print(server.pid, fork.pid, flush=True)
        # A signal that comes a moment before a wait would not end it.
        while server.poll() is None:
            time.sleep(0.01)
    finally:
        print("in order", flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends what a process has started")
@pytest.mark.parametrize("number", all_but(1, [signal.SIGTERM, signal.SIGKILL]))
def test_nothing_outlives_the_tests(number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", _TESTS], stdout=subprocess.PIPE, text=True) as tests:
        assert tests.stdout is not None
        started = [os.pidfd_open(int(word)) for word in tests.stdout.readline().split()]
        assert len(started) == 2
        tests.send_signal(number)
        for each in started:
            assert select.select([each], [], [], 60)[0], "it goes on"
            os.close(each)
        # What weft says goes to stderr.
        assert tests.stdout.read() == ("in order\n" if number == signal.SIGTERM else "")


# Its workers crash once each.
_CRASHING = """\
import os
import pytest

@pytest.mark.parametrize("number", range(4))
def test_crash(number, tmp_path_factory):
    mark = tmp_path_factory.getbasetemp().parent.parent / f"crashed{number}"
    if number % 2 and not mark.exists():
        mark.touch()
        os._exit(1)
"""


@pytest.mark.long
def test_the_tests_end_when_workers_have_crashed(tmp_path: Path) -> None:
    (tmp_path / "test_crashing.py").write_text(_CRASHING)
    done = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", "-p", "tests.conftest",
            *("-p", "no:pytest-lsp", "-p", "no:asyncio"), "--rootdir", str(tmp_path), "-c", os.devnull,
            "--basetemp", str(tmp_path / "made"), str(tmp_path)
        ],
        cwd=_ROOT, env=os.environ | {"PYTEST_ADDOPTS": "", "CI": ""}, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 failed, 4 passed" in done.stdout, done.stdout
