"""The grammar for tree-sitter: it takes what weft's own parser takes, its queries are about nodes that there are, and
its words are weft's."""

from __future__ import annotations

import hashlib
import json
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given

from benchmarks.generated import STYLES, edits, patch
from tests.support.mutations import exchanged, mutated, programs, rebundled
from tests.support.program_texts import program_texts
from weft.codes.table import CODES
from weft.errors import Report, Source
from weft.ops import BINARY
from weft.syntax.parser import FORMS, parse
from weft.syntax.pragmas import PRAGMAS
from weft.syntax.scanner import KEYWORDS

tree_sitter = pytest.importorskip("tree_sitter", reason="tree-sitter is not installed")
from tests.support.tree_sitter_weft import FOLDER, compiled, language, mistake  # noqa: E402 -- needs tree_sitter

if shutil.which("gcc") is None:
    pytest.skip("there is no gcc here to compile the grammar", allow_module_level=True)

QUERIES = sorted(FOLDER.parent.glob("*/queries/**/*.scm"))


@pytest.fixture(scope="module")
def weft_language(tmp_path_factory):
    return language(compiled(tmp_path_factory.mktemp("grammar")))


@pytest.fixture(scope="module")
def parser(weft_language):
    return tree_sitter.Parser(weft_language)


def is_wrong(text: str) -> bool:
    """Whether weft's own parser reports an error in a text."""
    report = Report()
    parse(Source("a.weft", text), report)
    return bool(report.errors)


# --- texts that are right ---


def test_all_that_ships_has_its_form(parser):
    texts = programs("patches", "weft", "tests", "docs", "benchmarks")
    right = {path: text for path, text in texts.items() if not is_wrong(text)}
    assert len(right) > 150
    assert {str(path): found for path, text in right.items() if (found := mistake(parser, text))} == {}


@pytest.mark.parametrize("style", STYLES)
def test_generated_patches_have_their_form(parser, style):
    text = patch(style, 60, 5).text
    assert mistake(parser, text) is None
    for edit, _ in zip(edits(text), range(8), strict=False):
        assert is_wrong(edit.text) or mistake(parser, edit.text) is None


@given(text=program_texts())
def test_generated_programs_have_their_form(parser, text):
    assert mistake(parser, text) is None


@pytest.mark.parametrize("text", [form.example for form in FORMS.values()] + [row.right for row in CODES.values()])
def test_what_help_shows_has_its_form(parser, text):
    assert is_wrong(text) or mistake(parser, text) is None


@pytest.mark.parametrize("text", [
    "a = b\n(c)\nd = 1.\n", "f<-3>(<1, 2, 3>)::c<r, g, b>\n", "x = <a, b>>c\n", "x = <a >> b, c>= d\n",
    "a<v>=3\nme<width>=640\n", "<a, b> |> f(2)::c<d>\n", "a = if b then c else d |> f + 1\n",
    "a = <if b < c then 1 else 2>\n", "f(to: 1, if: 2, me: 3, not: 4)@to\n", "#fade 0.5\nnumbers = 3\n",
    '#toggle a<v> = 0\n"b" |> f\n', "key@1\n|> f\n", "a = 2 ^ -3 - -b; c = not d == e\u00a0\r\n",
    "/* a **/ a = b //// c\n/// d\n",
    "img@r(me@x ~ 1, me@y ~ 2) |> (a ~ b)\n",
    "spindle s(a<x, y> = <1, 2>, b = 3) :: <c, d> { out = a out c = b out d += 1 for i in (1 to 2) { let e = i } }\n",
])  # fmt: skip
def test_rare_forms(parser, text):
    assert is_wrong(text) or mistake(parser, text) is None


def test_what_weft_takes_after_slips_of_the_hand(parser):
    slips(parser, 60)


@pytest.mark.long
def test_what_weft_takes_after_many_slips_of_the_hand(parser):
    slips(parser, 3000)


def slips(parser, count):
    """Texts that weft takes have no errors, and of those that it does not take, most have: not those whose mistake is
    of meaning."""
    chance = random.Random(count)
    texts = [text for text in programs("patches", "weft/std", "tests/programs").values() if len(text) < 4000]
    wrong = found = 0
    for _ in range(count):
        text = chance.choice((mutated, mutated, exchanged, rebundled))(chance.choice(texts), chance)
        if is_wrong(text):
            wrong += 1
            found += mistake(parser, text) is not None
        else:
            assert mistake(parser, text) is None, text
    assert wrong > count / 3
    assert found > 0.75 * wrong


# --- texts that are wrong ---

# Mistakes that have the form of a program.
OF_MEANING = {
    "bad-colour", "bad-count", "bad-fade", "bad-map-target", "bad-menu", "bad-quantize", "bad-toggle", "continued-line",
    "default-before-parameter", "duplicate-label", "duplicate-output", "duplicate-parameter", "empty-range",
    "keyword-as-name", "labelled-map", "misplaced-assignment", "misplaced-loop", "misplaced-map", "misplaced-out",
    "misplaced-output", "misplaced-pragma", "misplaced-setting", "mixed-maps", "nested-spindle", "number-overflow",
    "outputs-in-spindle", "pipe-needs-a-call", "piped-output", "setting-not-a-number", "unbound-multi-call",
    "unlabelled-argument",
}  # fmt: skip


def test_mistakes_are_seen(parser):
    missed = {
        code for code, row in CODES.items() if row.wrong and is_wrong(row.wrong) and not mistake(parser, row.wrong)
    }
    assert missed == OF_MEANING
    assert len(CODES) > 5 * len(OF_MEANING)


def test_texts_that_are_no_patches_are_read_to_their_end(parser):
    for piece in ("(", "<", "a<b>", "if a then ", "#", '"', "/*", "spindle s(x) :: v {", "a = <a >> ", "\0\u00e9"):
        data = (piece * 50_000)[:250_000].encode()
        assert parser.parse(data).root_node.end_byte == len(data)


# --- queries and words ---


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: "/".join(path.parts[-3:]))
def test_queries_are_about_what_there_is(weft_language, path):
    query = tree_sitter.Query(weft_language, path.read_text("utf-8"))
    assert query.capture_count


def test_all_words_have_colours(weft_language, parser):
    query = tree_sitter.Query(weft_language, (FOLDER / "queries/highlights.scm").read_text("utf-8"))
    examples = [form.example for form in FORMS.values()]
    text = "\n".join([*examples, "#fade 1", "a = not pi or mouse@x and b", "let c = 1"])
    found = {}
    for name, nodes in tree_sitter.QueryCursor(query).captures(parser.parse(text.encode()).root_node).items():
        for node in nodes:
            found.setdefault(node.text.decode(), set()).add(name)
    assert {word for word in KEYWORDS if not any(name[:3] in ("key", "var") for name in found.get(word, ()))} == set()
    assert "function.builtin" in found["sin"]
    assert "keyword" in found["display"]
    assert "constant.builtin" in found["pi"]
    assert "variable.builtin" in found["mouse"]
    assert "function" in found["disc"]
    assert "keyword.directive" in found["#fade"]


def test_the_grammar_has_the_words_of_weft():
    nodes = json.loads((FOLDER / "src/node-types.json").read_text("utf-8"))
    spelled = {node["type"] for node in nodes if not node["named"]}
    assert {word for word in spelled if word[0].isalpha()} == set(KEYWORDS)
    rules = (FOLDER / "grammar.js").read_text("utf-8")
    assert set(re.findall("'#([a-z]+)'", rules)) == set(PRAGMAS)


@pytest.mark.parametrize("symbol", BINARY)
def test_the_grammar_has_the_operators_of_weft(parser, symbol):
    assert mistake(parser, f"a = b {symbol} c") is None
    inside = mistake(parser, f"a = <b {symbol} c>")
    assert bool(inside) == is_wrong(f"a = <b {symbol} c>")


@pytest.mark.parametrize("word", PRAGMAS)
def test_the_grammar_has_the_pragmas_of_weft(parser, word):
    assert mistake(parser, PRAGMAS[word].example) is None


def test_the_parser_is_that_of_the_grammar():
    """`scripts/grammar` writes both."""
    digest = hashlib.sha256((FOLDER / "grammar.js").read_bytes()).hexdigest()
    assert (FOLDER / "src/grammar.sha256").read_text("utf-8").split()[0] == digest


def test_the_words_of_all_editors_are_those_of_weft():
    root = Path(__file__).parents[2]
    check = [root / ".venv/bin/python", root / "scripts/editor_words.py", "--check"]
    found = subprocess.run(check, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")
