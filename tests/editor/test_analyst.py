"""Whatever becomes of the processes that analyse, the editor has its server, and the server its answers."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from benchmarks.generated import patch
from tests.support.sound import eventually
from weft.editor.analyst import AnalysisError, Analyst
from weft.editor.documents import Document
from weft.editor.questions import AnalystSetup
from weft.permissions import DEFAULT_PERMISSIONS

SETUP = AnalystSetup("utf-16", DEFAULT_PERMISSIONS, False)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
def test_processes_that_die_or_hang_are_replaced(shared, end):
    name = f"{end}.weft"
    shared.open(name, "display(a)\n")
    assert shared.codes(name) == [("unknown-strand", 0, 8)]
    before = shared.analysts
    assert len(before) == 2
    for number in before:
        os.kill(number, end)
    shared.edit(name, "display(a, b)\n")
    assert shared.codes(name) == [("unknown-strand", 0, 8), ("unknown-strand", 0, 11)]
    assert not set(before) & set(shared.analysts)


def test_an_answer_that_takes_too_long_is_given_up():
    analyst = Analyst(SETUP, patience=0.3)
    long, short = Document("file:///long.weft", patch("evening", 900, 1).text), Document("file:///a.weft", "display(b)")

    async def asked():
        with pytest.raises(AnalysisError, match="took too long"):
            await analyst.ask({long.uri: long}, "forecast", long.uri)
        return await analyst.ask({short.uri: short}, "diagnose", short.uri)

    found = asyncio.run(asked())
    analyst.end()
    assert [each.shown.code for each in found.findings[short.uri]] == ["unknown-strand"]


def test_a_question_that_fails_has_its_reason():
    analyst = Analyst(SETUP)
    with pytest.raises(AnalysisError, match="KeyError"):
        asyncio.run(analyst.ask({}, "diagnose", "file:///nowhere.weft"))
    analyst.end()


def is_running(number: int) -> bool:
    try:
        with open(f"/proc/{number}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_an_editor_that_dies_leaves_no_process(editor):
    editor.open("a.weft", patch("evening", 400, 1).text)
    editor.now(asyncio.sleep(0.5))
    processes = [editor.process, *editor.analysts]
    editor.client._server.stdin.close()
    editor.now(asyncio.sleep(0.1))
    eventually(lambda: not any(map(is_running, processes)), "the end of all processes")


def test_the_longest_text_costs_the_editor_nothing(shared):
    """Other texts are answered while it is built."""
    line = f"a{{}} = sin(me@x * {{}}) // {'long ' * 40}\n"
    text = "".join(line.format(n, n) for n in range(2000))[:249_000].rpartition("\n")[0]
    shared.open("long.weft", text + "\ndisplay(a1\n")
    shared.open("a.weft", "display(b)\n")
    shared.edit("long.weft", text + "\ndisplay(a1, nosuch)\n")
    assert shared.codes("a.weft") == [("unknown-strand", 0, 8)]
    assert [code for code, *_ in shared.codes("long.weft")] == ["unknown-strand"]
    shared.edit("long.weft", text + "x" * 2000)
    assert [code for code, *_ in shared.codes("long.weft")] == ["too-long"]


def test_without_pygls_the_command_says_what_to_install(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['pygls'] = None\n")
    done = subprocess.run(
        [sys.executable, "-m", "weft", "lsp"], env={**os.environ, "PYTHONPATH": str(tmp_path)}, input="", text=True,
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert "pip install 'weft-live[editor]'" in done.stderr
