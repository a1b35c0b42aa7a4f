"""The grammar of `editors/tree-sitter-weft`, compiled and loaded as editors do it."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

from tree_sitter import Language, Node, Parser

FOLDER = Path(__file__).parents[2] / "editors/tree-sitter-weft"


def compiled(folder: Path) -> Path:
    """The library that the grammar's parser becomes, in `folder`."""
    library = folder / "weft.so"
    source = FOLDER / "src"
    options = ("-shared", "-fPIC", "-O1", "-I", str(source), "-o", str(library))
    subprocess.run(["gcc", *options, str(source / "parser.c")], check=True)
    return library


def language(library: Path) -> Language:
    """The language in a library."""
    begin = ctypes.CDLL(str(library)).tree_sitter_weft
    begin.restype = ctypes.c_void_p
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return Language(capsule(begin(), b"tree_sitter.Language", None))


def mistake(parser: Parser, text: str) -> str | None:
    """The place at which a text does not have the form that the grammar wants, with what is there."""
    data = text.encode()
    root = parser.parse(data).root_node
    if not root.has_error:
        return None
    node = _first(root)
    return f"{node.start_point.row + 1}: {node.type} {data[node.start_byte : node.end_byte][:60]!r}"


def _first(node: Node) -> Node:
    if node.type == "ERROR" or node.is_missing:
        return node
    return next((_first(each) for each in node.children if each.has_error), node)
