"""`weft help`: every name of the language has a meaning and an example that compiles."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from weft.cli import COMMANDS, main
from weft.contexts import ContextTable, context_table
from weft.editor.topics import KINDS, _of_library, all_names, all_topics, find, library_docs
from weft.errors import Report, Source, did_you_mean
from weft.graph.domain import ALL_FIELDS
from weft.keys import KEYS, MOUSE
from weft.ops import BINARY, BUILTINS, CONSTANTS, STATE, UNARY
from weft.runtime.inspect.forecast import check
from weft.sources import SOURCES
from weft.syntax.ast import OutputStatement
from weft.syntax.includes import libraries, spindles_of
from weft.syntax.parser import parse
from weft.syntax.pragmas import PRAGMAS
from weft.syntax.scanner import KEYWORDS

ROOT = Path(__file__).parents[2]
LIGHT = ROOT / "tests" / "plugins" / "light"


def as_patch(example: str, contexts: ContextTable) -> str:
    """Statements as they are; an expression as something that is shown."""
    report = Report()
    found = parse(Source("example", example), report, contexts.statements).statements
    calls = [statement.name for statement in found if isinstance(statement, OutputStatement)]
    if found and not report.errors and all(name in contexts.statements for name in calls):
        return example
    return f"example = {example}\ndisplay(example)\n"


def test_a_topic_is_complete() -> None:
    assert {topic.kind for topic in all_topics()} == set(KINDS)
    incomplete = [
        f"{topic.kind} {topic.name}" for topic in all_topics()
        if not (topic.meaning and topic.shown and all(topic.shown) and topic.examples and all(topic.examples))
    ]  # fmt: skip
    assert incomplete == []


# What the examples of spindles show is tested with the libraries; the first of each library is an example of that.
@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"library spindle"}))
def test_the_examples_compile(kind: str, tmp_path: Path) -> None:
    shutil.copy(ROOT / "patches" / "media" / "cloth.png", tmp_path / "picture.png")
    (tmp_path / "lib.weft").write_text("spindle half(x) :: v { out v = x / 2 }\n")
    contexts = context_table()
    examples = [example for topic in all_topics() if topic.kind == kind for example in topic.examples]
    assert examples
    for example in examples:
        source = Source(str(tmp_path / "example.weft"), as_patch(example, contexts))
        assert [d.render() for d in check(source, contexts) if d.severity == "error"] == []


def test_all_that_the_language_knows_is_found() -> None:
    names = {*BINARY, *UNARY, *BUILTINS, *CONSTANTS, *STATE, *SOURCES, *KEYWORDS, *ContextTable().statements}
    names |= {f"me@{name}" for name in ALL_FIELDS} | set(ALL_FIELDS)
    names |= {f"mouse@{name}" for name in MOUSE} | {f"key@{name}" for name in KEYS} | {"me", "mouse", "key"}
    names |= {f"#{name}" for name in PRAGMAS} | set(PRAGMAS) | {*libraries()}
    assert names <= set(all_names())
    assert [name for name in names if not find(name)] == []


def test_all_names_are_those_of_the_topics() -> None:
    topics = all_topics()
    assert {*all_names()} == {topic.name for topic in topics} | {word for topic in topics for word in topic.words}
    assert len({*all_names()}) == len(all_names())


def test_only_libraries_that_have_a_name_are_read() -> None:
    assert sum(name == "blur" for library in libraries() for name in spindles_of(library)) == 1
    for asked, count in [("sin", 0), ("blur", 1), ("std.picture.blur", 1), ("std.picture", 1), ("blurr", 0)]:
        library_docs.cache_clear()
        _of_library.cache_clear()
        assert bool(find(asked)) == (asked != "blurr")
        assert library_docs.cache_info().currsize == count, asked


def test_a_name_is_shown_with_all_that_it_is(weft):
    text = weft("help", "clamp").stdout
    assert text.startswith("clamp(x, lo: 0, hi: 1)   builtin\n")
    assert BUILTINS["clamp"].doc in text
    assert BUILTINS["clamp"].example in text
    minus = weft("help", "-").stdout
    assert "a - b   operator" in minus
    assert "-a   operator" in minus


@pytest.mark.parametrize(
    ("one", "other"),
    [("lerp", "mix"), ("mod", "%"), ("<<", "<"), ("x", "me@x"), ("slider", "#slider"), ("play", "audio"),
     ("visual", "display"), ("then", "if"), ("-=", "+="), ("key@space", "key")],
)  # fmt: skip
def test_one_thing_under_several_names(one, other):
    assert find(one) == find(other)


def test_a_library_lists_its_spindles_and_each_has_an_entry(weft, capsys):
    for library in libraries():
        # In this process: the start of another one takes longer than all that is shown.
        assert main(["help", library]) == 0
        listed = capsys.readouterr().out
        assert f"#use {library}" in listed
        spindles = [t for t in all_topics() if t.kind == "library spindle" and t.name.startswith(f"{library}.")]
        assert spindles
        for topic in spindles:
            short = topic.name.removeprefix(f"{library}.")
            assert f"  {short}(" in listed
        # Each is looked for among all of them.
        assert spindles[-1] in find(spindles[-1].name)
    assert weft("help", "perlin").stdout == weft("help", "std.noise.perlin").stdout


def test_a_spindle_shows_which_parameters_take_bundles_and_what_may_be_left_out():
    (blur,), (ring,) = find("std.picture.blur"), find("std.sdf.ring")
    assert blur.shown[0].startswith("blur(s<…>, ")
    assert dict(blur.facts)["s"].endswith("a bundle is taken as a whole")
    assert ring.shown[0].startswith("ring(p<x, y> = centre(), radius = ")
    assert "bundle" not in dict(ring.facts)["radius"]


def test_alone_it_lists_everything(weft):
    text = weft("help").stdout
    for topic in all_topics():
        name = topic.name.removeprefix("me@")
        assert topic.kind == "library spindle" or f" {name}" in text, topic.name
    assert max(map(len, text.splitlines())) <= 80


def test_where_to_sends_a_picture_is_said(weft):
    assert 'display(…, to: "name") has a window of its own' in " ".join(weft("help", "display").stdout.split())
    assert 'midi(…, to: "name")' in weft("help", "midi").stdout


def test_it_is_wrapped_to_the_terminal(weft):
    lines = weft("help", "key", COLUMNS="50").stdout.splitlines()
    assert 40 < max(map(len, lines)) <= 50


@pytest.mark.parametrize(("wrong", "right"), [("clammp", "clamp"), ("me@tiem", "me@time"), ("std.noize", "std.noise"),
                                              ("#slidr", "#slider"), ("chek", "check"), ("blurr", "blur"),
                                              ("std.blurr", "std.picture.blur"), ("std.blend.brun", "std.blend.burn"),
                                              ("sdt.blend.burn", "std.blend.burn")])  # fmt: skip
def test_an_unknown_name(weft, wrong, right):
    done = weft("help", wrong, code=2)
    assert f'did you mean "{right}"?' in done.stderr
    assert done.stdout == ""


def test_an_unknown_name_may_be_meant_as_one_of_any_library():
    names = all_names()
    spindles = [name for library in libraries() for name in spindles_of(library) if f"{name}{name[-1]}" not in names]
    assert spindles
    for name in spindles:
        assert did_you_mean(f"{name}{name[-1]}", names) == f'did you mean "{name}"?'


def test_the_code_of_a_message_is_looked_up_as_it_is_shown(weft):
    shown = weft("help", "cycle").stdout
    assert shown.startswith("cycle   error, exit code 1\n")
    assert "  Wrong:\n    trail = max(me@x, trail * 0.9)\n" in shown
    assert "  Right:\n    trail = max(me@x, prev(trail) * 0.9)\n" in shown
    assert weft("help", "[cycle]").stdout == shown
    # A name of the language may be a code as well.
    both = weft("help", "dot").stdout
    assert "dot(a, b)   word for bundles" in both
    assert "dot   error" in both
    assert 'did you mean "unknown-strand"?' in weft("help", "unknown-strnd", code=2).stderr


def test_a_command_shows_its_own_help(weft):
    assert weft("help", "check").stdout == weft("check", "--help").stdout
    assert weft("help", "help").stdout == weft("help", "--help").stdout
    both = weft("help", "render").stdout  # an output statement, and a command
    assert "display(gray)" in both
    assert weft("render", "--help").stdout in both
    assert all(name in COMMANDS for name in ("new", "examples", "help"))


def test_an_option_is_explained_for_each_command_that_has_it(weft):
    warp = weft("help", "--warp").stdout
    assert warp.startswith("--warp [NAME=]SETTING:VALUE,…   option of weft run\n  How the picture of a window lies")
    assert "option of weft run, check, " in weft("help", "--allow").stdout
    first, second = weft("help", "--fps").stdout.split("\n\n")
    assert first.startswith("--fps NUMBER|monitor   option of weft run\n")
    assert second.startswith("--fps NUMBER   option of weft render\n")
    assert "  a less b\n" in weft("help", "-").stdout, "an operator is none"


def test_an_unknown_option(weft):
    assert '"--wrap" (did you mean "--warp"?)' in weft("help", "--wrap", code=2).stderr
    assert '"-x" (weft help run lists those of weft run)' in weft("help", "-x", code=2).stderr


@pytest.mark.long
def test_a_context_that_a_package_brings_along(weft):
    path = os.pathsep.join([str(LIGHT), *sys.path])
    assert "the levels of lamps" in weft("help", "lamp", PYTHONPATH=path).stdout
    assert " light" in weft("help", PYTHONPATH=path).stdout
    weft("help", "lamp", code=2)


def test_a_home_folder_is_a_tilde_that_the_shell_has_replaced(weft):
    assert weft("help", os.path.expanduser("~")).stdout == weft("help", "~").stdout


def test_it_is_plain_in_a_pipe_and_starts_without_heavy_parts(weft):
    assert "\x1b" not in weft("help", "sin").stdout
    heavy = ["numpy", "PIL", "glfw", "OpenGL", "rich", "watchdog"]
    code = "import sys; from weft.cli import main; main(['help', 'sin'])"
    code += f"; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"
