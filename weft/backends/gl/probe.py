"""Probes for OpenGL in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from weft.backends.base import DeviceInfo
from weft.backends.probing import print_devices, probed
from weft.platform import system

DRAWS, COMPUTES = (3, 3), (4, 3)
"""The versions that have shaders for pictures, and compute shaders."""


def devices(least: tuple[int, int] = DRAWS) -> list[DeviceInfo]:
    """The devices of OpenGL, available with at least this version; an unavailable one has a reason. Never raises."""
    return probed("weft.backends.gl.probe", "OpenGL", system.opengl_remedy, lambda about: _device(about, least))


def _device(about: Mapping[str, Any], least: tuple[int, int]) -> DeviceInfo:
    index = about["index"]
    if tuple(about["number"]) < least:
        number, wanted = (".".join(map(str, version)) for version in (about["number"], least))
        reason = f"it has OpenGL {number}, and this takes {wanted}"
        return DeviceInfo(index, about["renderer"], available=False, reason=reason, platform="OpenGL")
    total, free = about["memory_total"], about["memory_free"]
    return DeviceInfo(
        index, about["renderer"], memory_total=total, memory_free=free, unified=not total, platform="OpenGL",
        compute=f"OpenGL {about['number'][0]}.{about['number'][1]}",
        driver=f"{about['vendor']}, {about['version']}", software=about["software"],
    )  # fmt: skip


def _listed() -> list[dict[str, Any]]:
    from weft.backends.gl.egl import GraphicsError

    try:
        from weft.backends.gl.offscreen import offscreen

        found = [offscreen().about]
        # Cards come first. If there is one, drivers that draw with the processor are left out.
        with suppress(GraphicsError):
            while not (another := offscreen(len(found)).about).software:
                found.append(another)
    except GraphicsError:
        raise
    except Exception as failure:  # PyOpenGL raises errors of many kinds without libGL
        raise GraphicsError(f"OpenGL is missing on this machine ({failure})") from failure
    return [{"index": index, **asdict(about), "software": about.software} for index, about in enumerate(found)]


if __name__ == "__main__":
    print_devices(_listed)
