"""Imports go one way, and each device library is imported in one place."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import weft
from weft.graph.components import components

ROOT = Path(weft.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# From the ground up: each layer may import itself and those before it. What is in one set does not see its neighbours,
# except through a lower layer.
LAYERS = (
    {"errors", "codes", "names", "keys", "beats", "osc_packets", "ops", "contexts", "sources", "apple", "child",
     "disk", "cameras", "hosts", "streams", "outlets", "packages", "permissions", "performances", "platform",
     "recently_used"},
    {"syntax"},
    {"graph"},
    {"ir"},
    {"codegen"},
    {"backends"},
    {"runtime"},
    {"web", "editor"},
    {"cli", "__init__", "__main__"},
)
HEIGHT = {package: height for height, layer in enumerate(LAYERS) for package in layer}

DEVICE_LIBRARIES = ("glfw", "OpenGL", "pyaudio", "metalcompute", "AppKit", "Metal", "Quartz", "objc", "llvmlite",
                    "cuda", "pyopencl", "wgpu", "soundfile", "link", "rtmidi", "rtmidi2", "pythonosc",
                    "watchdog")  # fmt: skip

# These start parts of weft only when they are asked for, and so import them late.
LAZY = {
    "cli", "__init__", "__main__", "backends/registry.py", "backends/haptic.py", "backends/gl/backend.py",
    "backends/gl/probe.py", "media/sampled.py", "media/sounds.py", "editor/checks.py", "editor/topics.py",
}  # fmt: skip


def package_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[0]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(node: ast.AST) -> Iterator[str]:
    """The modules that an import statement names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        assert node.level == 0, "imports are absolute"
        if node.module == "weft":
            yield from (f"weft.{alias.name}" for alias in node.names)
        else:
            yield node.module


@cache
def modules_of(path: Path) -> frozenset[str]:
    """The modules that a file imports, wherever in it."""
    return frozenset(module for node in ast.walk(tree(path)) for module in imported(node))


def weft_packages(path: Path) -> set[str]:
    return {module.split(".")[1] for module in modules_of(path) if module.startswith("weft.")}


def users_of(library: str) -> list[Path]:
    """The files that import a library."""
    return [path for path in FILES if any(module.split(".")[0] == library for module in modules_of(path))]


def may_import(own: str, used: str) -> bool:
    """Whether what is in one package may import another one. `media` is next to the backends, above the same
    modules."""
    if own == "media":
        return HEIGHT.get(used) == 0 or used == "media"
    if used == "media":
        return HEIGHT.get(own, 0) >= HEIGHT["backends"]
    return own not in HEIGHT or used not in HEIGHT or HEIGHT[used] <= HEIGHT[own]


def test_imports_go_one_way():
    wrong = [
        f"{path.relative_to(ROOT)} imports {used}"
        for path in FILES
        for used in weft_packages(path)
        if not may_import(package_of(path), used)
    ]
    assert wrong == []


# The rooms of the runtime, likewise. `stderr` is next to them.
ROOMS = ({"hands"}, {"program"}, {"screens", "sound"}, {"compiling"}, {"films"}, {"inspect"}, {"live"})
ROOM_HEIGHT = {room: height for height, rooms in enumerate(ROOMS) for room in rooms}


@pytest.mark.parametrize("path", sorted((ROOT / "runtime").rglob("*/*.py")), ids=lambda path: path.stem)
def test_the_rooms_of_the_runtime_are_in_order(path):
    own = path.parent.name
    used = {module.split(".")[2] for module in modules_of(path) if module.startswith("weft.runtime.")}
    assert [room for room in used - {own, "stderr"} if ROOM_HEIGHT[room] >= ROOM_HEIGHT[own]] == []


# Circles that stay, each as its modules. When `__main__` begins, it has to import as little as possible, so it imports
# the command line late; and that asks whether the handler of signals is still the one of `__main__`.
CIRCLES: set[frozenset[str]] = {frozenset({"weft.__main__", "weft.cli"})}


def name_of(path: Path) -> str:
    """The name under which a file is imported."""
    return ".".join(("weft", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


MODULES = {name_of(path): path for path in FILES}


def imported_modules(path: Path) -> set[str]:
    """The modules of weft that a file imports: at its top, late, or for their types alone."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else str(node.module) for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & MODULES.keys()


def test_modules_do_not_import_each_other_in_a_circle():
    edges = {name: imported_modules(path) for name, path in MODULES.items()}
    assert {frozenset(found) for found in components(MODULES, edges) if len(found) > 1} == CIRCLES


def test_no_file_is_too_long_to_be_one_concept():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {str(path.relative_to(ROOT)): length for path, length in lengths.items() if length > 800} == {}


def test_every_package_has_a_layer():
    known = {*HEIGHT, "media"}
    assert {package_of(path) for path in FILES} <= known


@pytest.mark.parametrize("library", DEVICE_LIBRARIES)
def test_a_device_library_is_imported_in_one_place(library):
    assert len(users_of(library)) <= 1


@pytest.mark.parametrize(("library", "rooms"), [("PIL", {"media"}), ("av", {"media", "runtime/films"})])
def test_what_reads_and_writes_pictures_and_films_is_for_these_rooms(library, rooms):
    assert {path.parent.relative_to(ROOT).as_posix() for path in users_of(library)} == rooms


def test_media_are_opened_in_one_place():
    """Where they are read, that is: each option of FFmpeg's readers counts for all of them."""
    readers = {
        path.relative_to(ROOT).as_posix()
        for path in FILES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "open"
        and ast.unparse(node.func) == "av.open"
        and not any(isinstance(each, ast.Constant) and each.value == "w" for each in node.args)
    }
    assert readers == {"media/containers.py"}


def test_only_what_starts_late_imports_weft_late():
    late = [
        f"{path.relative_to(ROOT)} imports {module} late"
        for path in FILES
        if package_of(path) not in LAZY and path.relative_to(ROOT).as_posix() not in LAZY
        for function in ast.walk(tree(path))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        for module in imported(node)
        if module.split(".")[0] == "weft"
    ]
    assert late == []
