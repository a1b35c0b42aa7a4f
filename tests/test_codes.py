"""The table of errors and warnings: each wrong text brings its code about, each right one says nothing, and the source
and the documents know the same codes."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, pairwise
from pathlib import Path

import pytest
from PIL import Image

import weft
from scripts.errors import PAGE, page
from tests.support.films import gray_film
from weft.cli import commands
from weft.cli.console import exit_code_of
from weft.cli.help import entry_of_code
from weft.codes.meaning import MEANING
from weft.codes.playing import PLAYING
from weft.codes.rows import DONE, ERRORS, MISSING, USAGE, CodeSpec
from weft.codes.table import CODES, spec_of
from weft.codes.text import TEXT
from weft.contexts import context_table
from weft.errors import Diagnostic, Source, WeftError
from weft.media.sampled import header_if_whole
from weft.runtime.compiling.stages import Request, analyse
from weft.runtime.inspect.forecast import check

ROOT = Path(weft.__file__).parent
SHOWN = [row for row in CODES.values() if not row.arises]

# These are found in the program that is made of a text, or by evaluating it at a few places.
IN_PROGRAMS = {
    "cannot-read-across", "count-as-level", "film-elsewhere", "long-time", "loop-stopped", "lost-coordinate",
    "map-reaches-state", "no-output", "not-a-number", "not-finite", "too-many-times",
}  # fmt: skip


# --- the texts --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the texts name."""
    made = tmp_path_factory.mktemp("codes")
    shutil.copy(ROOT.parent / "patches" / "media" / "cloth.png", made / "picture.png")
    gray_film(made / "film.mp4", 5)
    red, blue = (Image.new("RGB", (8, 8), colour) for colour in ("red", "blue"))
    red.save(made / "moving.webp", save_all=True, append_images=[blue])
    (made / "shapes.weft").write_text("ring = length(me@x, me@y) < 0.5\n")
    return made


def told(text: str, folder: Path, is_program: bool) -> Sequence[Diagnostic]:
    """All that is said about a text, which is in the file patch.weft."""
    (folder / "patch.weft").write_text(text)
    source, contexts = Source(str(folder / "patch.weft"), text), context_table()
    if is_program:
        return check(source, contexts, header_if_whole)
    try:
        return analyse(Request(source, contexts, probe=header_if_whole)).warnings
    except WeftError as failure:
        return failure.diagnostics


@pytest.mark.parametrize("row", SHOWN, ids=lambda row: row.code)
def test_a_wrong_text_is_told_and_a_right_one_is_not(row: CodeSpec, folder: Path) -> None:
    found = told(row.wrong, folder, row.code in IN_PROGRAMS)
    assert {d.code for d in found} == {row.code}
    assert {d.severity for d in found} == {"warning" if row.mild else row.severity}
    assert all(d.span is not None and Path(d.span.source.name).parent == folder for d in found)
    assert exit_code_of(found) == (DONE if row.mild or row.severity == "warning" else row.exit_code)
    right = told(row.right, folder, row.code in IN_PROGRAMS)
    assert [d.render() for d in right] == []


# Texts that are too long to be shown.
LONG = {
    "not-text": "display(me@x)\0",
    "too-deep": f"display({'(' * 300}me@x{')' * 300})",
    "too-long": "display(me@x)".ljust(250_001),
    "too-many-errors": "display(me@x\n" * 60,
}


@pytest.mark.parametrize("code", LONG)
def test_a_long_text_is_told(code: str, folder: Path) -> None:
    found = told(LONG[code], folder, is_program=False)
    assert code in {d.code for d in found}
    assert exit_code_of(found) == CODES[code].exit_code


# Commands that end with a code which no text brings about.
COMMANDS = {
    "no-such-output": "why still.weft --name hall",
    "not-drawn": "eval film.weft light --samples 4",
    "nothing-to-hear": "render still.weft -o sound.wav --duration 0.1",
    "nothing-to-show": "render quiet.weft -o picture.png",
    "too-far": "render trail.weft -o picture.png --time 1e9",
    "unknown-backend": "render still.weft -o picture.png --backend openlg",
    "unknown-context": "render still.weft -o picture.png --backend vidual=gl",
    "unknown-name": "help smothstep",
    "unreadable-file": "graph hallo.weft",
}


@pytest.mark.parametrize("code", COMMANDS)
def test_a_command_ends_with_the_exit_code_of_the_row(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gray_film(tmp_path / "film.mp4", 5)
    (tmp_path / "film.weft").write_text('load("film.mp4")::f<r>\nlight = f@r\n')
    (tmp_path / "still.weft").write_text("display(me@x)\n")
    (tmp_path / "quiet.weft").write_text("audio(sin(me@time * 440) * 0.1)\n")
    (tmp_path / "trail.weft").write_text("trail = max(me@x, prev(trail) * 0.9)\ndisplay(trail)\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WeftError) as raised:
        commands.main(args=COMMANDS[code].split(), prog_name="weft", standalone_mode=False)
    assert [d.code for d in raised.value.diagnostics] == [code]
    assert exit_code_of(raised.value.diagnostics) == CODES[code].exit_code


# --- the rows ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [TEXT, MEANING, PLAYING])
def test_rows_stand_in_order(rows: Sequence[CodeSpec]) -> None:
    assert all(one.code < other.code for one, other in pairwise(rows))


def test_a_row_is_complete() -> None:
    assert len(CODES) == len(TEXT) + len(MEANING) + len(PLAYING)
    for row in CODES.values():
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", row.code)
        assert bool(row.wrong) == bool(row.right) == (not row.arises), f"{row.code}: texts, or how it comes about"
        assert row.exit_code in (ERRORS, USAGE, MISSING), row.code


def test_a_row_is_read_in_one_breath() -> None:
    """One or two sentences, in the words of the documentation and not in those of its source."""
    jargon = r"\b(token|pars\w+|syntax|semantic|elaborat\w*|kernel|lower(ed|ing)|identifier|literal|operand|scope)\b"
    for row in CODES.values():
        said = " ".join((row.meaning, row.arises))
        assert 20 <= len(row.meaning) <= 240, row.code
        assert re.fullmatch(r"[A-Z`#].*\.", row.meaning), row.code
        assert not re.search(jargon, said), row.code


def test_a_code_of_a_package_is_an_error() -> None:
    assert spec_of("of-a-package").severity == "error"
    assert exit_code_of([Diagnostic.of("of-a-package", "words")]) == ERRORS


# --- the source -------------------------------------------------------------------------------------------------------


@cache
def nodes() -> Mapping[Path, Sequence[ast.AST]]:
    """All nodes of each file of the source, without those of the table itself."""
    paths = (path for path in sorted(ROOT.rglob("*.py")) if path.parent != ROOT / "codes")
    return {path: list(ast.walk(ast.parse(path.read_text(encoding="utf-8")))) for path in paths}


@cache
def texts() -> Mapping[str, frozenset[str]]:
    """The texts in quotes in each package of the source."""
    found: dict[str, set[str]] = {}
    for path, all_of_it in nodes().items():
        package = found.setdefault(path.relative_to(ROOT).parts[0], set())
        package |= {each.value for each in all_of_it if isinstance(each, ast.Constant) and isinstance(each.value, str)}
    return {package: frozenset(each) for package, each in found.items()}


def named(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


@cache
def places_of_codes() -> dict[str, int]:
    """The functions and classes that take a code, each with its position among the arguments."""
    found = {}
    for node in chain.from_iterable(nodes().values()):
        match node:
            case ast.FunctionDef(name=name, args=args) if not name.startswith("__"):
                names = [arg.arg for arg in args.args if arg.arg not in ("self", "cls")]
                if any(arg.arg == "code" and ast.unparse(arg.annotation or arg) == "str" for arg in args.args):
                    found[name] = names.index("code")
            case ast.ClassDef(name=name, body=body):
                fields = [each for each in body if isinstance(each, ast.AnnAssign)]
                names = [ast.unparse(each.target) for each in fields]
                if "code" in names and ast.unparse(fields[names.index("code")].annotation) == "str":
                    found[name] = names.index("code")
    return found


def given_as_codes(calls: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """What calls give as a code."""
    for node in calls:
        # A code goes with a message, and other methods have the same names.
        if not isinstance(node, ast.Call) or len(node.args) < 2:
            continue
        if (place := places_of_codes().get(named(node.func))) is not None:
            yield from node.args[place : place + 1]
            yield from (keyword.value for keyword in node.keywords if keyword.arg == "code")


def test_every_code_in_the_source_has_a_row() -> None:
    assert {"error", "tell", "of", "missing", "Remark", "Diagnostic", "SoundEvent"} <= places_of_codes().keys()
    given = [(path, code) for path, calls in nodes().items() for code in given_as_codes(calls)]
    assert len(given) > 250
    computed = [f"{path.name}:{code.lineno}" for path, code in given if isinstance(code, ast.JoinedStr | ast.BinOp)]
    assert computed == [], "a code stands in the source as a whole, where it can be searched for"
    known = {code.value for _, code in given if isinstance(code, ast.Constant) and isinstance(code.value, str)}
    assert {code for code in known if code and " " not in code} <= CODES.keys()


def test_what_looks_like_a_code_is_one() -> None:
    """Where the compiler says something, no other words are joined by hyphens."""
    compiler = chain.from_iterable(texts()[package] for package in ("syntax", "graph", "ir"))
    words = {text for text in compiler if re.fullmatch(r"[a-z]+(-[a-z]+)+", text)}
    assert len(words) > 150
    assert words <= CODES.keys()


def test_every_row_is_used_unless_its_code_is_no_longer_given() -> None:
    written = frozenset[str]().union(*texts().values())
    assert [row.code for row in CODES.values() if (row.code in written) == bool(row.gone_since)] == []


def test_a_code_that_is_no_longer_given_is_still_explained(capsys: pytest.CaptureFixture[str]) -> None:
    commands.main(args=["help", "still-picture"], prog_name="weft", standalone_mode=False)
    said = capsys.readouterr().out
    assert "still-picture   no longer given since weft 0.7\n" in said
    assert "nothing to do." in " ".join(said.split())


def test_programs_with_errors_expect_known_codes() -> None:
    programs = [path.read_text() for path in (ROOT.parent / "tests" / "programs" / "errors").rglob("*.weft")]
    told = r"^//! .*: (?:error|warning): .* \[([a-z-]+)\]$"
    codes = {code for text in programs for code in re.findall(told, text, re.MULTILINE)}
    assert len(codes) > 100
    assert codes <= CODES.keys()


def test_internal_exceptions_have_one_base() -> None:
    """All that weft raises is a `WeftError`, with diagnostics, or an `InternalError`, which is caught. What interrupts
    a thread from outside is neither."""
    classes = (node for node in chain.from_iterable(nodes().values()) if isinstance(node, ast.ClassDef))
    bases = {node.name: [named(base) for base in node.bases] for node in classes}

    def above(name: str) -> set[str]:
        return {name}.union(*(above(base) for base in bases.get(name, ())))

    raised = [name for name in bases if above(name) & {"Exception", "OSError", "ValueError"} or name.endswith("Error")]
    assert len(raised) > 20
    assert [name for name in raised if not above(name) & {"WeftError", "InternalError"}] == []


# --- what people read -------------------------------------------------------------------------------------------------


def test_the_page_is_that_of_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it again: .venv/bin/python scripts/errors.py"


@pytest.mark.parametrize("columns", ["40", "100"])
def test_help_shows_all_of_a_row(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for row in CODES.values():
        heading, *lines = entry_of_code(row)
        assert row.code in heading
        assert row.consequence in heading
        shown = " ".join(" ".join(lines).split())
        for part in (row.explanation, row.arises):
            assert " ".join(part.split()) in shown
        plain = [re.sub(r"\x1b\[\d+m", "", line.removeprefix("    ")) for line in lines]
        assert all(line in plain for text in (row.wrong, row.right) for line in text.split("\n"))
