"""Which backend is chosen: by its rank, by name, by number, and its fallbacks."""

from __future__ import annotations

import pickle
import sys
from dataclasses import replace

import pytest

from tests.support.cards import BROKEN, HARDWARE, SOFTWARE, card, registry_with
from weft.backends.registry import Registry, load_registry
from weft.backends.select import FAMILIES, Choice, chain_of, choose, families_on, warnings_of
from weft.errors import WeftError


def visual(registry: Registry, asked: str | None = None, environment: str | None = None) -> Choice:
    return choose(registry, ["visual"], asked, environment)["visual"]


def refused(registry: Registry, asked: str | None, environment: str | None = None) -> tuple[str, str, str]:
    """The code, the words and the hint of the error."""
    with pytest.raises(WeftError) as caught:
        choose(registry, ["visual", "audio"], asked, environment)
    (found,) = caught.value.diagnostics
    return found.code, found.message, found.hint or ""


# By itself.


def test_pictures_prefer_cards_and_the_cpu_to_drawing_in_software() -> None:
    names = [(link.name, link.software) for link in chain_of("visual")]
    cards = [(name, False) for name in families_on(sys.platform)]
    assert names == [*cards, ("native", None), ("vector", None), ("gl", True)]
    for context in ("audio", "compute", "light"):
        assert [link.name for link in chain_of(context)] == ["native", "vector"]


def test_opengl_comes_later_where_it_is_old_or_translated() -> None:
    assert families_on("linux") == ("metal", "gl", "cuda", "hip", "opencl", "wgpu", "gles")
    assert families_on("darwin") == ("metal", "wgpu", "gl", "cuda", "hip", "opencl", "gles")
    assert families_on("win32")[:3] == ("wgpu", "metal", "gl")
    assert all(sorted(families_on(system)) == sorted(FAMILIES) for system in ("linux", "darwin", "win32"))


def test_what_goes_to_files_is_drawn_by_what_is_read_back_fastest() -> None:
    assert families_on("linux", in_files=True) == ("metal", "cuda", "hip", "gl", "opencl", "wgpu", "gles")
    assert families_on("win32", in_files=True)[:4] == ("metal", "cuda", "hip", "wgpu")
    both = registry_with(card("gl_visual", [HARDWARE]), card("cuda_visual", [HARDWARE]))
    assert choose(both, ["visual"])["visual"].shown == "gl_visual"
    chosen = choose(both, ["visual"], in_files=True)["visual"]
    assert (chosen.shown, chosen.fallbacks[0].shown) == ("cuda_visual", "gl_visual")


def test_the_first_that_is_available_is_taken() -> None:
    metal, gl = card("metal_visual", [HARDWARE]), card("gl_visual", [SOFTWARE, replace(HARDWARE, index=1)])
    assert visual(registry_with(gl, metal)).shown == "metal_visual"
    found = visual(registry_with(card("metal_visual", [BROKEN]), gl))
    assert (found.shown, found.device.name) == ("gl_visual:1", "a card")
    assert "metal is faster, but it smells of smoke" in found.reason
    assert visual(registry_with(card("gl_visual", [SOFTWARE]))).shown == "native"
    assert visual(registry_with(card("gl_visual", [BROKEN]), card("gles_visual", [HARDWARE]))).shown == "gles_visual"


def test_what_is_not_wanted_is_not_looked_for() -> None:
    none, much = card("gl_visual", [HARDWARE], hardware=False), card("metal_visual", [HARDWARE])
    assert visual(registry_with(none)).shown == "native"
    choose(registry_with(none, much), ["audio", "compute", "visual"], "visual=native")
    assert (none.probes, much.probes) == (0, 0)
    choose(registry_with(much), ["visual", "audio", "compute"])
    assert much.probes == 1


def behind(registry: Registry, asked: str | None = None, environment: str | None = None) -> list[str]:
    """What takes the place of the choice, one after another."""
    return [choice.shown for choice in visual(registry, asked, environment).fallbacks]


TWO = [HARDWARE, replace(HARDWARE, index=1), replace(BROKEN, index=2)]


def test_behind_a_card_stands_the_rest_of_the_chain_and_behind_the_cpu_nothing() -> None:
    metal, gl = card("metal_visual", [HARDWARE]), card("gl_visual", [SOFTWARE, replace(HARDWARE, index=1)])
    assert behind(registry_with(metal)) == ["native", "vector"]
    assert behind(registry_with(metal, gl)) == ["gl_visual:1", "native", "vector"]
    assert behind(registry_with(card("gl_visual", TWO))) == ["gl_visual:1", "native", "vector"]
    assert behind(registry_with()) == []
    assert behind(registry_with(metal, gl), "vector") == []


def test_behind_what_was_asked_for_stands_what_else_was_asked_for_and_then_the_chain() -> None:
    gl, other = card("gl_visual", TWO), card("other_visual", TWO)
    registry = registry_with(gl, other)
    cpu = ["native", "vector"]
    assert behind(registry, "visual=gl:1") == ["gl_visual", *cpu]
    assert behind(registry, "other_visual") == ["other_visual:1", "gl_visual", "gl_visual:1", *cpu]
    assert behind(registry, "visual=other_visual:0,visual=gl:1") == ["gl_visual:1", "gl_visual", *cpu]
    assert behind(registry, None, "gl:1,other_visual:1,cpu") == ["other_visual:1", *cpu]
    assert behind(registry, "visual=gl:0", "vector") == ["vector", "native"]
    found = visual(registry, "visual=other_visual:0,visual=gl:1")
    assert [choice.requested for choice in found.fallbacks] == [True, False, False, False]


def test_behind_the_only_device_for_a_context_stands_another_one_of_its_kind() -> None:
    found = choose(registry_with(card("lamps", TWO, context="lamps")), ["lamps"])["lamps"]
    assert [choice.shown for choice in (found, *found.fallbacks)] == ["lamps", "lamps:1"]


def test_what_a_package_brings_is_taken_only_where_it_is_alone_or_named() -> None:
    other = card("other_visual", [HARDWARE])
    assert visual(registry_with(other)).shown == "native"
    assert visual(registry_with(other), "other_visual").shown == "other_visual"
    lamps = card("lamps", [HARDWARE], context="lamps")
    found = choose(registry_with(lamps), ["lamps"])["lamps"]
    assert (found.shown, found.fallbacks, found.requested) == ("lamps", (), False)


# By name.


def test_a_family_stands_for_its_backend_of_each_context() -> None:
    registry = registry_with(card("gl_visual", [SOFTWARE]), card("gl_compute", [SOFTWARE], context="compute"))
    found = choose(registry, ["visual", "audio", "compute"], "gl")
    assert {name: choice.shown for name, choice in found.items()} == {
        "visual": "gl_visual", "audio": "native", "compute": "gl_compute",
    }  # fmt: skip
    assert [found[name].requested for name in found] == [True, False, True]


def test_a_name_that_was_asked_for_and_cannot_be_had_is_an_error() -> None:
    registry = registry_with(card("gl_visual", [BROKEN]))
    words = "gl cannot run visual: it smells of smoke"
    assert refused(registry, "gl") == ("backend-not-available", words, "open a window")
    assert refused(registry, "visual=gl,audio=native")[0] == "backend-not-available"
    assert refused(registry, "metal")[0] == "backend-not-available"
    assert refused(registry, "audio=gl")[:2] == ("backend-not-available", "gl cannot run audio")
    assert refused(registry, "nativ")[0] == "unknown-backend"
    assert refused(registry, None, "nativ")[0] == "unknown-backend"


def test_a_device_goes_by_its_number() -> None:
    two = card("gl_visual", [HARDWARE, replace(HARDWARE, index=1, name="another card"), replace(BROKEN, index=2)])
    registry = registry_with(two)
    assert visual(registry, "gl:0").device.name == "a card"
    found = visual(registry, "visual=gl:1")
    assert (found.device.name, found.shown) == ("another card", "gl_visual:1")
    listed = "there is 0: a card, 1: another card, 2: a broken card"
    assert refused(registry, "gl:7")[1:] == ("gl:7 cannot run visual: it has no device 7", listed)
    assert "smoke" in refused(registry, "gl:2")[1]
    assert refused(registry, "gl:first")[0] == "unknown-backend"
    assert refused(registry, "native:1")[0] == "backend-not-available"


def test_the_environment_is_a_chain_of_which_the_first_is_taken_that_can() -> None:
    registry = registry_with(card("gl_visual", [BROKEN]), card("gl_compute", [BROKEN], context="compute"))
    found = choose(registry, ["visual", "audio", "compute"], None, "metal,gl,vector")
    assert {choice.shown for choice in found.values()} == {"vector"}
    assert warnings_of(found) == [
        "WEFT_BACKEND: metal is not available: this version has no such backend yet",
        "WEFT_BACKEND: gl is not available: it smells of smoke (open a window)",
    ]
    alone = choose(registry, ["visual"], None, "gl")
    assert alone["visual"].shown == "native"
    assert len(warnings_of(alone)) == 1


def test_the_option_wins_over_the_environment() -> None:
    found = choose(registry_with(), ["visual", "compute"], "visual=vm", "vector")
    assert {name: (choice.shown, choice.reason) for name, choice in found.items()} == {
        "visual": ("vm", "asked for with --backend"),
        "compute": ("vector", "asked for with WEFT_BACKEND"),
    }


def test_a_choice_goes_to_another_process_as_it_is() -> None:
    registry = load_registry()
    # The class of a backend may have been made in a function.
    found = choose(registry, [spec.name for spec in registry.contexts], "visual=null")
    assert pickle.loads(pickle.dumps(found)) == found
