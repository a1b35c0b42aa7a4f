"""Probes for OpenGL in a process of its own."""

from __future__ import annotations

import json
from dataclasses import asdict

from weft.backends.base import DeviceInfo
from weft.backends.hardware import answer

_REMEDY = "install the driver of the graphics card, or Mesa (Debian: apt install libegl1 libgl1-mesa-dri)"

DRAWS, COMPUTES = (3, 3), (4, 3)
"""The versions that have shaders for pictures, and compute shaders."""


def devices(least: tuple[int, int] = DRAWS) -> list[DeviceInfo]:
    """The device of OpenGL, available if it has at least this version; an unavailable one says why. Never raises."""
    found = answer("weft.backends.gl.probe", "OpenGL")
    if "reason" in found:
        return [DeviceInfo(0, "OpenGL", available=False, reason=found["reason"], remedy=_REMEDY, platform="OpenGL")]
    if tuple(found["number"]) < least:
        number, wanted = (".".join(map(str, version)) for version in (found["number"], least))
        reason = f"it has OpenGL {number}, and this takes {wanted}"
        return [DeviceInfo(0, found["renderer"], available=False, reason=reason, platform="OpenGL")]
    total, free = found["memory_total"], found["memory_free"]
    return [
        DeviceInfo(
            0, found["renderer"], memory_total=total, memory_free=free, unified=not total, platform="OpenGL",
            compute=f"OpenGL {found['number'][0]}.{found['number'][1]}",
            driver=f"{found['vendor']}, {found['version']}", software=found["software"],
        )
    ]  # fmt: skip


def main() -> None:
    """Prints the device as JSON."""
    from weft.backends.gl.contexts import GraphicsError

    try:
        from weft.backends.gl.graphics import offscreen

        about = offscreen().about
    except GraphicsError as failure:
        print(json.dumps({"reason": str(failure)}))
    except Exception as failure:  # PyOpenGL raises errors of many kinds without libGL
        print(json.dumps({"reason": f"OpenGL is missing on this machine ({failure})"}))
    else:
        print(json.dumps({**asdict(about), "software": about.software}))


if __name__ == "__main__":
    main()
