"""Each language case of `tests/programs` as a page, and each kind of memory: what its strands show and play is what the
reference machine computes."""

import pytest

from tests.codegen.test_glsl_pictures import MEMORIES
from tests.support.choices import ANYWHERE
from tests.support.programs import expectations
from tests.support.together import all_but
from tests.test_programs import PROGRAMS
from weft.contexts import ContextTable
from weft.errors import Source, WeftError
from weft.runtime.compiling.stages import Request, build
from weft.web.page import page_of
from weft.web.reference import reference

# The strands of a page, three in each of its windows.
_STRANDS, _WINDOW = 12, 3
_SMALL = {"width": 32.0, "height": 18.0}


def shown(strands):
    """Output statements that show numbers, between 0 and 1. Angles of huge ones would be those of rounding errors."""
    waves = [f"0.5 + 0.5 * sin(0.7 * clamp({strand}, lo: -1000, hi: 1000))" for strand in strands]
    for at in range(0, len(waves), _WINDOW):
        three = (*waves[at : at + _WINDOW], "0", "0")[:_WINDOW]
        yield f'display({", ".join(three)}, to: "window {at}")'


def played(strands):
    return (f"audio(0.04 * sin(0.7 * clamp({strand}, lo: -1000, hi: 1000)))" for strand in strands)


def texts(path):
    """The texts of the pages of a case. Strands that cannot be outputs are left out."""
    text = path.read_text(encoding="utf-8")
    for statement, written in (("display", shown), ("audio", played)):
        strands = dict.fromkeys(each.strand for each in expectations(text) if each.statement == statement)
        usable = [strand for strand in strands if compiled(f"{text}\n" + "\n".join(written([strand])), path)]
        for at in range(0, len(usable), _STRANDS):
            yield "\n".join([text, *written(usable[at : at + _STRANDS])])


def compiled(text, path):
    """The program of a text; None if it has errors, such as a picture that is not there."""
    try:
        return build(Request(Source(str(path), text), ContextTable(), _SMALL, permissions=ANYWHERE))
    except WeftError:
        return None


@pytest.mark.long
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_case_is_the_same_in_a_page(path, browser, tmp_path):
    page = tmp_path / "page.html"
    for text in texts(path):
        made = compiled(text, path)
        try:
            values = reference(made)
        except WeftError as problem:  # it reads a file that is not there
            assert "cannot be read" in str(problem)  # noqa: PT017 -- only some cases do
            continue
        page.write_text(page_of(made, "case", text, values).text)
        browser.open(page.as_uri() + "?check")
        assert browser.title("check ").startswith("check ok: "), text


@pytest.mark.parametrize("text", all_but(2, MEMORIES.values()), ids=MEMORIES.keys())
def test_what_is_remembered_is_the_same_in_a_page(text, browser, tmp_path):
    made = build(Request(Source("memory.weft", f"{text}\n"), ContextTable(), _SMALL))
    page = tmp_path / "page.html"
    page.write_text(page_of(made, "memory", text, reference(made)).text)
    browser.open(page.as_uri() + "?check")
    assert browser.title("check ").startswith("check ok: ")
