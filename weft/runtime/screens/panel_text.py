"""The panel of parameters as text for a terminal: the same layout as in a window, a character for each cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeAlias

from weft.errors import blank_halves, columns
from weft.runtime.screens.panel import PAD, Band, Colour, PanelLayout, PanelView

_Bytes: TypeAlias = tuple[int, int, int]

_GROUND: _Bytes = (13, 15, 20)
_TEXT: _Bytes = (236, 239, 244)
_DIM: _Bytes = (164, 173, 187)
_ACCENT: _Bytes = (136, 192, 255)
_GROOVE: _Bytes = (84, 93, 108)
_FIELD: _Bytes = (34, 39, 48)


@dataclass(frozen=True, slots=True)
class PanelCell:
    """One column of the panel: a character, or nothing for the right half of a wide one, and its colours."""

    text: str
    ink: _Bytes = _TEXT
    ground: _Bytes = _GROUND


def panel_rows(view: PanelView) -> list[list[PanelCell]]:
    """The rows of the panel, each as wide as its layout."""
    layout = view.layout
    rows = [row for band, _ in view.rows for row in _rows_of(band, layout)]
    return [*rows, _placed(layout, {PAD: _written(view.footer, layout.columns - 2 * PAD, _DIM)})]


def painted_panel(row: Sequence[PanelCell], code: Callable[[_Bytes, bool], bytes]) -> bytes:
    """The bytes of a row for a terminal, in UTF-8. `code` gives the bytes that choose a colour for letters, or for the
    ground (True)."""
    parts = []
    for (ink, ground), same in groupby(row, key=lambda cell: (cell.ink, cell.ground)):
        text = "".join(cell.text for cell in same).encode(errors="replace")
        parts.append(code(ink, False) + code(ground, True) + text)
    return b"".join([*parts, b"\x1b[0m"])


def _placed(layout: PanelLayout, parts: dict[int, list[PanelCell]]) -> list[PanelCell]:
    """A row with these parts from their columns on."""
    row = [PanelCell(" ")] * layout.columns
    for start, part in parts.items():
        row[start : start + len(part)] = part
    return row[: layout.columns]


def _written(text: str, width: int, ink: _Bytes) -> list[PanelCell]:
    shown = columns(text, 4)
    if len(shown) > width:
        shown = [*shown[: width - 1], "…"]
    return [PanelCell(each, ink) for each in blank_halves(shown)]


def _rows_of(band: Band, layout: PanelLayout) -> Iterator[list[PanelCell]]:
    is_bar = band.part in ("hue", "saturation", "brightness")
    ink = _ACCENT if band.is_chosen else _DIM if is_bar else _TEXT
    label = _written(band.label, layout.label_columns, ink)
    for row in range(band.rows):
        parts = {layout.track: _track(band, row, layout.track_columns)}
        if row == 0:
            parts[layout.label] = label
            if band.is_chosen:
                parts[0] = [PanelCell("▎", _ACCENT)]
        if row < len(band.values):
            ink = _ACCENT if band.is_asking else _DIM if is_bar else _TEXT
            value = _written(band.values[row], layout.columns - layout.value - PAD, ink)
            parts[layout.columns - PAD - len(value)] = value
        yield _placed(layout, parts)


def _track(band: Band, row: int, width: int) -> list[PanelCell]:
    knob = _cell_of(band.at[0], width) if band.at else -1
    match band.part:
        case "slider" | "menu":
            cells = [PanelCell("━", _ACCENT if column < knob else _GROOVE) for column in range(width)]
            cells[knob] = PanelCell("●")
            return cells
        case "toggle" | "button":
            on, off = PanelCell("●", _ACCENT), PanelCell("●", _DIM)
            line = [PanelCell("━", _ACCENT if band.at[0] else _GROOVE)] * 2
            return [*line, on] if band.at[0] else [off, *line]
        case "xy":
            level = _cell_of(band.at[1], band.rows)
            if row != level:
                cells = [PanelCell(" ", _GROOVE, _FIELD)] * width
                cells[knob] = PanelCell("│", _GROOVE, _FIELD)
            else:
                cells = [PanelCell("─", _GROOVE, _FIELD)] * width
                cells[knob] = PanelCell("●", _ACCENT, _FIELD)
            return cells
        case "lamps":
            lamps = [_between((colour,), 0) for colour in band.colours]
            width = min(width, 2 * len(lamps))
            return [PanelCell("▇", lamps[column * len(lamps) // width]) for column in range(width)]
        case _:
            cells = [PanelCell(" ", ground=_between(band.colours, column / (width - 1))) for column in range(width)]
            if knob >= 0:
                ground = cells[knob].ground
                # Rec. 709 weighs green most. At half of white, black and white letters are equally easy to read.
                is_light = 0.2126 * ground[0] + 0.7152 * ground[1] + 0.0722 * ground[2] > 127
                cells[knob] = replace(cells[knob], text="●", ink=(0, 0, 0) if is_light else (255, 255, 255))
            return cells


def _cell_of(at: float, cells: int) -> int:
    """The cell in which a knob is."""
    return round(min(max(at, 0.0), 1.0) * (cells - 1))


def _between(colours: Sequence[Colour], at: float) -> _Bytes:
    """The colour at a place, 0…1, along evenly spaced ones."""
    step = at * (len(colours) - 1)
    index = min(int(step), max(len(colours) - 2, 0))
    pairs = zip(colours[index], colours[min(index + 1, len(colours) - 1)], strict=True)
    red, green, blue = (round(255 * (a + (b - a) * (step - index))) for a, b in pairs)
    return red, green, blue
