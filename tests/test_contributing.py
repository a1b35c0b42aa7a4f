"""What CONTRIBUTING.md shows can be typed: its files are there, and its code fits the program."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import weft

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ADDITIONS = TEXT.partition("## How to add")[2]
SECTIONS = dict(re.findall(r"^### (.+?)\n(.*?)(?=^##|\Z)", ADDITIONS, re.MULTILINE | re.DOTALL))

# Runs in a process of its own, which the additions are then part of.
TRYING = '''
import sys, weft.backends.cpu as cpu, weft.contexts as contexts, weft.ops.curves as curves, weft.sources as sources
from weft.backends.base import Env
from weft.backends.registry import load_registry
(builtin,), (row, source), (context, runner), (device,), (command, test) = eval(sys.stdin.read())
(zigzag,) = eval(f"({builtin})", vars(curves))
assert [zigzag.fold(x) for x in (0.0, 0.25, 0.5, -0.25)] == [1.0, 0.5, 0.0, 0.5]
(spec,) = eval(f"({row})", vars(sources))
made = {}
exec(source, made)
board = made["Checkerboards"]().open((4.0,), False)
assert board.at(0.0).shape == (4, 4, 4) and (board.at(0.0) != board.at(1.0)).any()
exec(context, vars(contexts))
exec(runner, vars(cpu))
exec(device, {"__name__": "printer"})
assert contexts.STROBE.name == "strobe" and {"cpu_strobe", "printer"} <= {*load_registry().names}
exec(test, made)
exec(command, made)
sys.exit(made["command"].main(["patches/gradient.weft"], standalone_mode=False))
'''


def code_of(title: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", SECTIONS[title], re.DOTALL)


def test_the_code_of_each_addition_fits() -> None:
    kinds = [code_of(f"A {kind}") for kind in ("builtin", "source", "context", "device", "command")]
    done = subprocess.run(
        [sys.executable, "-c", TRYING], input=repr(kinds), capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


def test_no_class_of_an_addition_has_the_name_of_another() -> None:
    def classes(texts: Iterable[str]) -> set[str]:
        return {name for text in texts for name in re.findall(r"^class (\w+)", text, re.MULTILINE)}

    added = classes(code for title in SECTIONS for code in code_of(title))
    # The files of the page have them once somebody has followed it.
    paths = (path.relative_to(ROOT).as_posix() for path in (ROOT / "weft").rglob("*.py"))
    known = classes((ROOT / path).read_text(encoding="utf-8") for path in paths if f"`{path}`" not in ADDITIONS)
    assert len(added) >= 4
    assert not added & known


def test_the_modules_of_additions_pass_make_lint() -> None:
    whole = [(title, code) for title in SECTIONS for code in code_of(title) if code.startswith('"""')]
    assert len(whole) >= 3
    for tool in (["ruff", "check", "--stdin-filename", "weft/addition.py", "-"], ["isort", "--check", "-"]):
        for title, code in whole:
            done = subprocess.run(
                [sys.executable, "-m", *tool], input=code, capture_output=True, text=True, check=False, cwd=ROOT
            )
            assert done.returncode == 0, f"{title}: {done.stdout}{done.stderr}"


def test_the_files_that_an_addition_touches_are_there_or_have_its_name() -> None:
    for title, text in SECTIONS.items():
        cells = re.findall(r"^\| (`.+?) \|", text, re.MULTILINE)
        paths = [path for cell in cells for path in re.findall(r"`(.+?)`", cell)]
        assert paths, title
        own = {path for path in paths if not (ROOT / path).exists()}
        assert all((ROOT / path).parent.is_dir() for path in own)
        assert len({Path(path).stem.removeprefix("test_") for path in own}) <= 1, title


def test_links_lead_somewhere() -> None:
    pages = set(re.findall(r"\]\(([\w/.-]+)", TEXT))
    assert [path for path in pages if not (ROOT / path).exists()] == []


def test_the_first_line_of_a_test_says_what_it_is_about() -> None:
    assert [path for path in (ROOT / "tests").rglob("test_*.py") if not path.read_text("utf-8").startswith('"""')] == []


def test_the_version_is_the_newest_of_the_changelog() -> None:
    versions = re.findall(r"^## (\S+) - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert versions[0] == weft.__version__
    assert versions == sorted(versions, key=lambda version: [*map(int, version.split("."))], reverse=True)
