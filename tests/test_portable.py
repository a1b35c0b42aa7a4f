"""What `scripts/portable` takes along."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.portable import WEFT_SH, needed


def test_libraries_are_found_in_folders_with_spaces() -> None:
    listed = """\
\tlinux-vdso.so.1 (0x00007ffc7e5f2000)
\tlibweft.so.1 => /tmp/a stage ö/libweft.so.1 (0x00007f05a8e00000)
\tlibgone.so.2 => not found
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f05a8c1f000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f05a8f3d000)
"""
    found = {"libweft.so.1": "/tmp/a stage ö/libweft.so.1", "libc.so.6": "/lib/x86_64-linux-gnu/libc.so.6"}
    assert needed(listed) == found


@pytest.mark.skipif(sys.platform != "linux", reason="ldd is of Linux")
def test_what_ldd_says_here_is_understood() -> None:
    listed = subprocess.run(["ldd", sys.executable], capture_output=True, text=True, check=False).stdout
    if "=>" not in listed:
        pytest.skip("this Python needs no library")
    assert any(name.startswith("libc.") for name in needed(listed))


@pytest.mark.skipif(sys.platform == "win32", reason="a script of sh")
def test_what_is_to_be_typed_names_the_launcher(tmp_path: Path) -> None:
    launcher = tmp_path / "weft"
    # A Python of this machine in place of the one in the folder.
    text = WEFT_SH.replace('"$here/python/bin/python3"', shlex.quote(sys.executable))
    launcher.write_text(text)
    launcher.chmod(0o755)
    done = subprocess.run(["./weft", "new", "hello"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "\n    ./weft run hello.weft\n" in done.stdout
