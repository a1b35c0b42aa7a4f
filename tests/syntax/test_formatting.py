"""The style of patches: `weft fmt` changes white space alone, and a formatted text stays as it is."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given

from benchmarks.generated import STYLES, patch
from tests.support.edits import session
from tests.support.mutations import mutated, programs
from tests.support.program_texts import program_texts
from weft.codegen.kernel import content_hash
from weft.contexts import ContextTable
from weft.errors import Report, Source, WeftError
from weft.runtime.compiling.stages import Request, build
from weft.syntax.ast import Binding, CallBinding, SpindleDefinition, outline
from weft.syntax.formatting import formatted
from weft.syntax.parser import parse
from weft.syntax.scanner import END, PRAGMA_END, scan

SHIPPED = programs("patches", "weft/std")
BY_LENGTH = sorted((path for path in SHIPPED if "std" not in path.parts), key=lambda path: len(SHIPPED[path]))
SMALL, LARGE = BY_LENGTH[:12], BY_LENGTH[12:]


def in_style(text: str, name: str = "a.weft") -> str:
    return formatted(Source(name, text))


def said(text: str) -> tuple[str, list[str | None]]:
    """What a text says, and the documentation in it."""
    program = parse(Source("a.weft", text), Report())
    documented = (Binding, CallBinding, SpindleDefinition)
    return outline(program), [each.doc for each in program.statements if isinstance(each, documented)]


def comments(text: str) -> list[str]:
    """What stands outside of tokens, without blanks."""
    tokens = scan(Source("a.weft", text), Report())
    assert tokens is not None
    ends = [0, *tokens.ends]
    return ["".join(text[end:start].split()) for end, start in zip(ends, [*tokens.starts, len(text)], strict=True)]


def squeezed(text: str, chance: random.Random) -> str:
    """A text with other white space between its tokens, and at the beginnings and ends of its lines."""
    tokens = scan(Source("a.weft", text), Report())
    assert tokens is not None
    made, end = [], 0
    for start, stop, kind in zip(tokens.starts, tokens.ends, tokens.kinds, strict=True):
        gap = text[end:start]
        if kind not in (PRAGMA_END, END):
            blanks = re.sub(r"^[ \t]+", lambda _: " " * chance.randint(0, 5), gap, flags=re.MULTILINE) if gap else gap
            made += [blanks if "\n" in gap else " " * chance.randint(1, 3) if gap else "", text[start:stop]]
            end = stop
    return "".join(made) + text[end:]


def check(text: str) -> str:
    """Formats a text, and demands that all but the white space is there, and that the result is formatted."""
    found = in_style(text)
    assert said(found) == said(text)
    assert comments(found) == comments(text)
    assert in_style(found) == found
    return found


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_what_ships_is_in_style(path):
    assert check(SHIPPED[path]) == SHIPPED[path]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_style_does_not_depend_on_the_white_space_between_tokens(path):
    text = SHIPPED[path]
    chance = random.Random(path.stem)
    assert check(squeezed(text, chance)) == text


def check_kernels(path, text):
    """A text without its white space, and with blank lines, has the kernels of what it becomes in style."""
    def hashes(text):
        made = build(Request(Source(str(path), text), ContextTable()))
        return [content_hash(kernel) for unit in made.units for kernel in unit.kernels]

    text = squeezed(text, random.Random(7)).replace("\n", "\n\n\n")
    assert text != in_style(text, str(path))
    assert hashes(in_style(text, str(path))) == hashes(text)


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_kernels_stay_the_same(path):
    check_kernels(path, SHIPPED[path])


@pytest.mark.long
@pytest.mark.parametrize("path", LARGE, ids=lambda path: path.stem)
def test_kernels_of_all_patches_stay_the_same(path):
    check_kernels(path, SHIPPED[path])


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_kernels_of_many_generated_patches_stay_the_same(seed):
    for number in range(100):
        text = patch(list(STYLES)[number % len(STYLES)], 4 + number % 9, 100 * seed + number).text
        check(squeezed(text, random.Random(number)))
        check_kernels("generated.weft", text)


@given(program_texts())
def test_generated_programs(text):
    check(text)


@pytest.mark.parametrize("style", STYLES)
def test_generated_patches(style):
    text = patch(style, 60, 3).text
    check(squeezed(text, random.Random(style)))


def test_texts_after_edits_and_slips_of_the_hand():
    """Each is formatted, or it has a mistake, which is said."""
    chance, formattable = random.Random(5), 0
    for path in SMALL[:6]:
        texts = [*session(SHIPPED[path], chance, 5), *(mutated(SHIPPED[path], chance) for _ in range(10))]
        for text in texts:
            report = Report()
            parse(Source("a.weft", text), report)
            if report.errors:
                with pytest.raises(WeftError) as failure:
                    in_style(text)
                assert [each.render() for each in failure.value.diagnostics] == [each.render() for each in report]
            else:
                check(text)
                formattable += 1
    assert formattable > 20


UGLY = """\


//head
me< width >=640;me<height>=360
#slider   a<v>=-1,1 , .5   "a"   raw




/*
   block
 stays   */
let  q=<me@x,me@y>*2-1 // one
tri=abs( - q@x)   // two
long_name = if q@x>=0.5 then-1 else not q@y// three
c<r,g,b>=<1,(2>1),3>>4
w = max(1,
// inside
2,
max(
3, 4
)
)+
4
|> max( 2 )
spindle f(a,b=<1,2>[0],
 c<x,y>=<1,2>) ::<u,v>{
// first
for i in(0 to 3){a+=i;b=1
  +2
/* z */ }
    k=a  out=<k,b>// last
// end
}
spindle g(a)::v{v=a}
g<2>(<1,2>)::two<a,b>;f(1,2)::z<q>
display(a@v(me@x~me@x*.5,me@y~1),to:"x")
/* tail */"""

IN_STYLE = """\
//head
me<width> = 640; me<height> = 360
#slider a<v> = -1, 1, .5 "a" raw


/*
   block
 stays   */
let q = <me@x, me@y> * 2 - 1                     // one
tri = abs(-q@x)                                  // two
long_name = if q@x >= 0.5 then -1 else not q@y   // three
c<r, g, b> = <1, (2 > 1), 3> > 4
w = max(1,
  // inside
  2,
  max(
    3, 4
  )
) +
  4
  |> max(2)
spindle f(a, b = <1, 2>[0],
  c<x, y> = <1, 2>) :: <u, v> {
  // first
  for i in (0 to 3) { a += i; b = 1
      + 2
    /* z */ }
  k = a  out = <k, b>   // last
  // end
}
spindle g(a) :: v { v = a }
g<2>(<1, 2>)::two<a, b>; f(1, 2)::z<q>
display(a@v(me@x ~ me@x * .5, me@y ~ 1), to: "x")
/* tail */
"""


def test_the_style():
    assert check(UGLY) == IN_STYLE


def test_line_ends_and_a_byte_order_mark_stay():
    assert in_style("\ufeff" + UGLY.replace("\n", "\r\n")) == "\ufeff" + IN_STYLE.replace("\n", "\r\n")


@pytest.mark.parametrize("text", ["", "\n", "// a", "\r\n", "\ufeff", "/**/"])
def test_texts_without_a_statement(text):
    found = check(text)
    assert found.strip("\ufeff\r\n") == text.strip("\ufeff\r\n")


@pytest.mark.long
def test_a_text_of_the_greatest_length():
    line = "a{}=sin( me@x*{} )// one\n"
    text = "".join(line.format(n, n) for n in range(7000))[:249_000].rpartition("\n")[0]
    assert in_style(text).startswith("a0 = sin(me@x * 0)")
