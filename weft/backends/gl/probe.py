"""Probes for OpenGL and OpenGL ES in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from weft.backends.base import DeviceInfo
from weft.backends.gl.egl import DESKTOP, EMBEDDED, GlApi, GraphicsError
from weft.backends.probing import print_devices, probed
from weft.platform import system

COMPUTES = (4, 3)
"""The version that has compute shaders."""


def devices(api: GlApi = DESKTOP, least: tuple[int, int] = (0, 0)) -> list[DeviceInfo]:
    """The devices of a kind of OpenGL, available with at least this version; an unavailable one has a reason. Never
    raises."""
    known = probed("weft.backends.gl.probe", DESKTOP.name, system.opengl_remedy, lambda about: _device(about, least))
    # Without any answer there is one reason for both kinds.
    found = [each for each in known if each.platform == api.name]
    if api == DESKTOP and any(each.platform == EMBEDDED.name and each.available for each in known):
        other = f"--backend gles draws with {EMBEDDED.name}, which is there"
        found = [each if each.available else replace(each, remedy=other) for each in found]
    return found or [replace(known[0], name=api.name, platform=api.name)]


def _device(about: Mapping[str, Any], least: tuple[int, int]) -> DeviceInfo:
    api = about["api"]
    if "reason" in about:
        return DeviceInfo.absent(api, about["reason"], system.opengl_remedy)
    index, number = about["index"], ".".join(map(str, about["number"]))
    if tuple(about["number"]) < least:
        reason = f"it has {api} {number}, and this takes {'.'.join(map(str, least))}"
        return DeviceInfo(index, about["renderer"], available=False, reason=reason, platform=api)
    total, free = about["memory_total"], about["memory_free"]
    return DeviceInfo(
        index, about["renderer"], memory_total=total, memory_free=free, unified=not total, platform=api,
        compute=f"{api} {number}", driver=f"{about['vendor']}, {about['version']}", software=about["software"],
    )  # fmt: skip


def _listed() -> list[dict[str, Any]]:
    try:
        return [about for api in (DESKTOP, EMBEDDED) for about in _listed_of(api)]
    except Exception as failure:  # PyOpenGL raises errors of many kinds without libGL
        raise GraphicsError(f"OpenGL is missing on this machine ({failure})") from failure


def _listed_of(api: GlApi) -> Iterator[dict[str, Any]]:
    from weft.backends.gl.offscreen import offscreen

    try:
        found = [offscreen(0, api).about]
    except GraphicsError as failure:
        yield {"api": api.name, "reason": str(failure)}
        return
    # Cards come first. If there is one, drivers that draw with the processor are left out.
    with suppress(GraphicsError):
        while not (another := offscreen(len(found), api).about).software:
            found.append(another)
    for index, about in enumerate(found):
        yield {"index": index, **asdict(about), "api": api.name, "software": about.software}


if __name__ == "__main__":
    print_devices(_listed)
