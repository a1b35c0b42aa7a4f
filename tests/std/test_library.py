"""What holds for every spindle of every library."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from scripts.library import PAGE, page
from tests.std.values import compiled, planes, sound
from tests.support.kernels import closed_hashes
from tests.support.sound import steps
from tests.support.together import all_but
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.codegen.bytecode import disassemble
from weft.contexts import ContextTable
from weft.editor.topics import library_docs
from weft.errors import Source, WeftError
from weft.ops import BUILTINS, CONSTANTS, STATE
from weft.runtime.compiling.stages import Build, Request, build
from weft.runtime.films.offline import Offline
from weft.sources import SOURCES
from weft.syntax.docs import SpindleDoc, opening_line
from weft.syntax.includes import libraries, spindles_of

LIBRARIES = list(libraries())
SPINDLES = [(library, name) for library in LIBRARIES for name in spindles_of(library)]
TESTS = "".join(p.read_text(encoding="utf-8") for p in Path(__file__).parent.glob("test_*.py")).replace("\\n", "\n")
USE_ALL = "".join(f"#use {library}\n" for library in LIBRARIES)


def built(text: str) -> Build:
    return build(Request(Source("test.weft", text), ContextTable()))


def code(made: Build) -> list[str]:
    return [disassemble(unit.kernel) for unit in made.units]


def test_the_libraries_are_these() -> None:
    names = ("ambisonics", "blend", "color", "control", "coord", "drums", "ease", "effects", "fixtures", "map", "music",
             "noise", "picture", "sdf", "letters", "react", "synth")  # fmt: skip
    assert {f"std.{name}" for name in names} == set(LIBRARIES)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_begins_with_what_it_is_about(library: str) -> None:
    assert opening_line(libraries()[library]).startswith(f"{library}: ")


def test_all_libraries_together_are_taken_in_without_a_warning() -> None:
    assert built(f"{USE_ALL}display(me@x)").warnings == ()


def test_names_are_unique_and_no_builtins() -> None:
    names = [doc.name for library in LIBRARIES for doc in library_docs(library)]
    assert names == [name for _, name in SPINDLES]
    assert len(set(names)) == len(names)
    assert not {*BUILTINS, *CONSTANTS, *STATE, *SOURCES} & set(names)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_that_is_not_called_costs_nothing(library: str) -> None:
    own = "a = noise(me@x * 8, me@y) * sin(me@time)\ndisplay(a, me@x, a * a)"
    assert code(built(f"#use {library}\n{own}")) == code(built(own))


def test_outputs_that_are_not_read_cost_nothing() -> None:
    def length(outputs: str) -> int:
        (unit,) = compiled("std.noise", f"cellular(me@x, me@y, 0)::c<f1, f2, edge>\ndisplay({outputs})")
        return sum(len(section) for section in unit.kernel.sections)

    assert 3 * length("c@f1") < length("c@edge")


def test_a_constant_whole_z_costs_no_second_plane() -> None:
    def length(z: str) -> int:
        (unit,) = compiled("std.noise", f"display(perlin3(me@x, me@y, {z}))")
        return sum(len(section) for section in unit.kernel.sections)

    assert length("3") < 0.6 * length("me@x * me@y")


def test_a_spindle_of_the_patch_takes_the_place_of_a_librarys() -> None:
    made = built("#use std.sdf\nspindle circle(p, radius) :: d { d = 7 }\ndisplay(circle(<0, 0>, 1))")
    assert [w.code for w in made.warnings] == ["overrides-library"]
    assert planes(made.units, [0.5], [0.5])[0] == 7


def test_each_spindle_is_tested() -> None:
    words = {*re.findall(r"\w+", TESTS)}
    assert [name for _, name in SPINDLES if name not in words] == []


@pytest.mark.parametrize("library", LIBRARIES)
def test_each_spindle_is_documented(library: str) -> None:
    for doc in library_docs(library):
        assert tuple(doc.parameter_texts) == doc.parameters, doc.name
        assert all(doc.parameter_texts.values()), doc.name
        assert doc.returns, doc.name
        assert doc.summary[0].isupper(), doc.name
        assert doc.summary.endswith("."), doc.name
        assert 10 < len(doc.headline) < 110, doc.name


# In turn: some of each library are in `make test`.
EXAMPLES = [case for turn in range(3) for case in SPINDLES[turn::3]]


@pytest.mark.parametrize(
    ("library", "name"), all_but(len(SPINDLES[::3]), EXAMPLES), ids=[f"{where}.{name}" for where, name in EXAMPLES]
)
def test_an_example_is_a_patch_that_shows_the_spindle_or_lets_it_be_heard(library: str, name: str) -> None:
    ((example,),) = (doc.examples for doc in library_docs(library) if doc.name == name)
    assert f"{name}(" in example
    if "audio(" in example:
        heard = sound(library, example, 0.5, rate=4000)
        assert not np.isnan(heard).any()
        assert 0.05 < np.abs(heard).max() <= 1
        assert (steps(heard.T, 4000) == []) == (name != "dust"), "only clicks click"
        return
    if library == "std.react":
        # After a beat and before one, with what is heard by then.
        registry = load_registry()
        choices = choose(registry, [spec.name for spec in registry.contexts], "native")
        text = f"#use {library}\nme<width> = 16\nme<height> = 8\n{example}\n"
        program = Offline(build(Request(Source("test.weft", text), registry.contexts)), choices)
        seen = np.stack([program.at(time)[..., :3].copy() for time in (3.08, 3.45)])
        assert np.ptp(seen) > 0.3 * 255
        return
    units = compiled(library, example)
    shown = np.stack(planes(units, np.linspace(0.01, 0.99, 48), np.linspace(0.02, 0.98, 27), 1.25))
    assert not np.isnan(shown).any()
    assert np.ptp(np.clip(shown, 0, 1)) > 0.3


@pytest.mark.parametrize("library", libraries())
def test_a_heading_is_a_sentence_of_its_own(library: str) -> None:
    heading = opening_line(libraries()[library])
    assert heading.startswith(f"{library}: ")
    assert heading.endswith(".")
    assert ". " not in heading


def test_the_page_is_what_the_libraries_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it again: .venv/bin/python scripts/library.py"


def test_the_pages_patch_plays() -> None:
    (patch,) = re.findall("```weft\n(#use.*?)```", page(), re.DOTALL)
    assert built(patch).warnings == ()


def test_a_patch_cannot_change_what_the_library_means_by_a_name() -> None:
    use = "#use std.noise\n#use std.color\n"
    shown = "rainbow(me@x)::k<r, g, b>\ndisplay(k@r, k@g, perlin(me@x * 5, me@y * 5))\n"
    own = "tau = 0.5\ne = me@x\nspindle hash(x, y, z) :: v { v = 0.5 }\nspindle floor(x) :: v { v = x }\n"
    plain, changed = (built(text).units for text in (use + shown, use + own + shown))
    assert [unit.hash for unit in plain] == [unit.hash for unit in changed]


# A spindle of the patch takes the place of one that the library itself calls, and does not fit there.
UNFIT = "#use std.synth\nspindle filter(x) :: v { v = x }\n"


@pytest.mark.parametrize("within", ["display({})", "a = {} display(0)", "spindle s(q) :: v {{ v = {} }} display(0)"])
def test_a_mistake_in_calling_the_library_is_told_at_the_call(within: str) -> None:
    with pytest.raises(WeftError) as caught:
        built(UNFIT + within.format("svf(me@x, 300)@low"))
    found = next(d for d in caught.value.diagnostics if d.severity == "error")
    assert found.span is not None
    assert found.span.text == "svf(me@x, 300)"
    assert found.message.startswith("svf cannot be called like this: ")
    assert "weft help svf" in str(found.hint)


def test_a_mistake_in_one_of_several_calls_is_told_at_all_of_them() -> None:
    shown = "svf(me@x, 300)@low + svf(me@y, 300)@low"
    with pytest.raises(WeftError) as caught:
        built(f"{UNFIT}display({shown})")
    found = next(d for d in caught.value.diagnostics if d.severity == "error")
    assert found.span is not None
    assert found.span.text == shown


def test_a_point_that_is_too_short_is_told_at_the_argument() -> None:
    with pytest.raises(WeftError) as caught:
        built("#use std.sdf\ndisplay(fill(sphere(<me@x, me@y>)))")
    (found,) = caught.value.diagnostics
    assert found.span is not None
    assert found.span.text == "<me@x, me@y>"
    assert found.message == 'this is 2 strands, and "p" takes 3 (x, y, z)'


def calls(doc: SpindleDoc) -> tuple[str, str] | None:
    """A call without what may be left out, and the same with the defaults written there; None if there are none."""
    given: dict[str, str] = {}
    written: dict[str, str] = {}
    for name, head in zip(doc.parameters, doc.heads, strict=True):
        _, is_default, default = head.partition(" = ")
        members = re.findall(r"\w+", head.partition("<")[2].partition(">")[0])
        if is_default:
            # A default may read the parameters before it.
            for other, value in written.items():
                default = re.sub(rf"(?<![@\w]){other}\b", f"({value})", default)
            written[name] = default
        else:
            given[name] = written[name] = f"<{', '.join(['me@time'] * len(members))}>" if members else "me@time"
    if len(given) == len(written):
        return None
    output = "" if len(doc.outputs) == 1 else f"@{doc.outputs[-1]}"
    return (f"{doc.name}({', '.join(given.values())}){output}", f"{doc.name}({', '.join(written.values())}){output}")


@pytest.mark.parametrize("library", all_but(3, dict.fromkeys(["std.coord", "std.map", "std.picture", *LIBRARIES])))
def test_what_is_left_out_is_the_default(library: str) -> None:
    pairs = [found for doc in library_docs(library) if (found := calls(doc)) is not None]
    assert pairs or library == "std.blend"
    # The library's defaults read its own names, and so does a patch that uses the same libraries.
    short, long = (", ".join(pair[i] for pair in pairs) for i in (0, 1))
    if pairs:
        one, other = (closed_hashes(f"#use {library}\ncompute({shown})") for shown in (short, long))
        assert one == other


def test_a_parameter_that_takes_one_strand_is_called_for_each_member() -> None:
    boxes = ("rounded_box(radius: <0.1, 0.2>)", "<rounded_box(radius: 0.1), rounded_box(radius: 0.2)>")
    whole, apart = (planes(compiled("std.sdf", f"q = {box}\ndisplay(q[0], q[1], 0)"), [0.1, 0.9], 0.3) for box in boxes)
    np.testing.assert_array_equal(whole, apart)
    assert not np.array_equal(whole[0], whole[1])
    tones = ("peak_eq(<saw_tone(200), saw_tone(300)>)", "<peak_eq(saw_tone(200)), peak_eq(saw_tone(300))>")
    whole, apart = (list(sound("std.synth", f"audio({tone})", 0.02)) for tone in tones)
    np.testing.assert_array_equal(whole, apart)
    assert not np.array_equal(whole[0], whole[1])
