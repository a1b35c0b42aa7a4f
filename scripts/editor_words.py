#!/usr/bin/env python3
"""Writes the words of the language into the packages for editors, from weft's own tables:
.venv/bin/python scripts/editor_words.py

A file says where its words go: between a comment `words: KIND` and a comment `words end`. The queries of Helix are
those of the grammar, with the names that Helix has for colours. With `--check`, nothing is written, and files that
are not what they should be are named.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from weft.contexts import context_table
from weft.disk import replacing
from weft.names import RESERVED
from weft.ops import BUILTINS, CONSTANTS, STATE, WORDS
from weft.sources import SOURCES
from weft.syntax.pragmas import PRAGMAS
from weft.syntax.scanner import ENDING, KEYWORDS, OPERATOR

FOLDER = Path(__file__).parents[1] / "editors"

_WIDTH = 120
_DEFINING = ("spindle", "let", "out")
_NOT = "N"
_CHOOSING = ("if", "then", "else")


def words() -> Mapping[str, Sequence[str]]:
    """The words of the language by what they are. No word is in two lists."""
    operators = [word for word, kind in KEYWORDS.items() if kind in (OPERATOR, _NOT)]
    others = [word for word in KEYWORDS if word not in (*operators, *_DEFINING, *_CHOOSING, *RESERVED)]
    found = {
        "choosing": _CHOOSING, "repeating": others, "defining": _DEFINING, "joining": operators,
        "reserved": RESERVED, "outputs": context_table().statements, "functions": [*BUILTINS, *WORDS, *STATE, *SOURCES],
        "constants": CONSTANTS, "pragmas": PRAGMAS,
    }  # fmt: skip
    return {kind: sorted(set(listed)) for kind, listed in found.items()}


# --- lines of words in the languages of editors ---


def _wrapped(listed: Iterable[str], begin: str, end: str = "", indent: str = "  ") -> list[str]:
    """Lines with the words between two brackets."""
    return textwrap.wrap(begin + " ".join(listed) + end, _WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def _vim(kind: str, listed: Sequence[str]) -> list[str]:
    start = f"syntax keyword weft{kind.title()} "
    return [start + line for line in textwrap.wrap(" ".join(listed), _WIDTH - len(start))]


def _emacs(kind: str, listed: Sequence[str]) -> list[str]:
    return [f"(defconst weft--{kind}", *_wrapped(map(_quoted, listed), "  '(", "))", "    ")]


def _kakoune(kind: str, listed: Sequence[str]) -> list[str]:
    return _wrapped(listed, f"    {kind}='", "'", "        ")


# What the words are called in the query that lists them.
_CAPTURES = {
    "constants": "@constant.builtin", "functions": "@function.builtin", "outputs": "@keyword",
    "reserved": "@variable.builtin",
}  # fmt: skip


def _query(kind: str, listed: Sequence[str]) -> list[str]:
    return _wrapped(map(_quoted, listed), f"  (#any-of? {_CAPTURES[kind]} ", ")", "    ")


def _quoted(word: str) -> str:
    return f'"{word}"'


_LINES: Mapping[str, Callable[[str, Sequence[str]], list[str]]] = {
    "emacs/weft-mode.el": _emacs,
    "kakoune/weft.kak": _kakoune,
    "tree-sitter-weft/queries/highlights.scm": _query,
    "vim/syntax/weft.vim": _vim,
}
_BLOCK = re.compile(r"(?m)^(?P<begin>\S* words: (?P<kind>\w+).*\n)[\s\S]*?(?P<end>^\S* words end$)")


def _with_words(path: Path, write: Callable[[str, Sequence[str]], list[str]]) -> str:
    """The text of a file, with the words of today."""
    text, listed = path.read_text("utf-8"), words()
    if _BLOCK.search(text) is None:
        sys.exit(f"{path}: it has no place for words, and may be damaged; git restores it")

    def block(found: re.Match[str]) -> str:
        lines = write(found["kind"], listed[found["kind"]])
        return found["begin"] + "".join(f"{line}\n" for line in lines) + found["end"]

    return _BLOCK.sub(block, text)


# --- whole files ---

_HELIX = "helix/queries/weft/highlights.scm"
_QUERIES = "tree-sitter-weft/queries/highlights.scm"
# What Helix calls the captures for which themes have colours.
_IN_HELIX = {
    "@comment.documentation": "@comment.block.documentation",
    "@constant.builtin": "@constant.builtin",
    "@function.call": "@function",
    "@keyword.conditional": "@keyword.control.conditional",
    "@keyword.modifier": "@keyword.directive",
    "@keyword.repeat": "@keyword.control.repeat",
    "@module": "@namespace",
    "@number": "@constant.numeric",
    "@property": "@variable.other.member",
    "@string.escape": "@constant.character.escape",
    "@variable.member": "@variable.other.member",
}


def _for_helix(query: str) -> str:
    """A query for Neovim as one for Helix. Of two patterns that match, the first one counts up to Helix 25.01, and from
    25.07 on the last one. So what counts most is at both ends."""
    _, *parts = re.split(r"(?m)^(?=; )(?!; words)", query.strip() + "\n\n")
    renamed = re.sub(r"@[a-z.]+(?<!\.)", lambda name: _IN_HELIX.get(name[0], name[0]), "".join([*parts[:0:-1], *parts]))
    return "; Written by scripts/editor_words.py from editors/tree-sitter-weft/queries.\n\n" + renamed.strip() + "\n"


_TEXTMATE = "vscode/syntaxes/weft.tmLanguage.json"
_SCOPES = {
    "choosing": "keyword.control.conditional", "repeating": "keyword.control.loop", "defining": "storage.type",
    "joining": "keyword.operator.logical", "reserved": "variable.language", "outputs": "keyword.other.output",
    "functions": "support.function", "constants": "constant.language",
}  # fmt: skip


def textmate() -> str:
    """The grammar for editors that read those of TextMate."""
    named = [(r"@\s*[A-Za-z0-9_]+", "variable.other.member"), (r"\b[A-Za-z_]\w*(?=\s*:(?!:))", "variable.parameter")]
    tokens = [
        {"name": "comment.block.weft", "begin": r"/\*", "end": r"\*/"},
        {"name": "comment.line.documentation.weft", "match": "///(?!/).*$"},
        {"name": "comment.line.double-slash.weft", "match": "//.*$"},
        {
            "name": "string.quoted.double.weft", "begin": '"', "end": '"|$',
            "patterns": [
                {"name": "constant.character.escape.weft", "match": r'\\["\\nt]'},
                {"name": "invalid.illegal.escape.weft", "match": r"\\."},
            ],
        },
        {"name": "keyword.control.directive.weft", "match": rf"^\s*#(?:{'|'.join(words()['pragmas'])})\b"},
        *({"name": f"{scope}.weft", "match": pattern} for pattern, scope in named),
        {
            "match": r"\b(spindle)\s+([A-Za-z_]\w*)",
            "captures": {"1": {"name": "storage.type.weft"}, "2": {"name": "entity.name.function.weft"}},
        },
        *(
            {"name": f"{scope}.weft", "match": rf"\b(?:{'|'.join(words()[kind])})\b"}
            for kind, scope in _SCOPES.items()
        ),
        {"name": "entity.name.function.weft", "match": r"\b[A-Za-z_]\w*(?=\s*\()"},
        {"name": "constant.numeric.weft", "match": r"(?:\b[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"},
        {"name": "keyword.operator.weft", "match": r"\|>|::|[-+*/%^=<>!~]+"},
    ]  # fmt: skip
    grammar = {"name": "weft", "scopeName": "source.weft", "fileTypes": [ENDING[1:]], "patterns": tokens}
    return json.dumps(grammar, indent=2) + "\n"


def files() -> dict[Path, str]:
    """What the files with words should be."""
    found = {FOLDER / path: _with_words(FOLDER / path, write) for path, write in _LINES.items()}
    return {**found, FOLDER / _HELIX: _for_helix(found[FOLDER / _QUERIES]), FOLDER / _TEXTMATE: textmate()}


def main() -> int:
    """Writes the files, or checks them; 1 if some are not what they should be."""
    is_check, wrong = "--check" in sys.argv[1:], 0
    for path, text in files().items():
        if path.exists() and path.read_text("utf-8") == text:
            continue
        if is_check:
            print(f"{path}: not the words of today; scripts/editor_words.py writes them")
            wrong = 1
        else:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                # Whole or not at all: another one of this script reads it, and writes what it has read.
                with replacing(path) as temporary:
                    temporary.write_text(text, "utf-8")
            except OSError as problem:
                sys.exit(f"{path} cannot be written: {problem.strerror}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
