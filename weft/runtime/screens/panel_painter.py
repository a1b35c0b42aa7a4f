"""The panel of parameters as pixels for a window. Each band is a label of its own, so that a change draws and sends one
band only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.media.lettering import Face
from weft.runtime.screens.overlay import GROUND, INKS, ramp_of, round_corners
from weft.runtime.screens.panel import PAD, Band, Colour, PanelLayout, PanelView
from weft.runtime.screens.screen import Label, Picture, Rect

_Ink = tuple[int, int, int]

_TEXT, _DIM, ACCENT = INKS["text"], INKS["dim"], INKS["hint"]
_GROOVE: _Ink = (58, 64, 76)
_FIELD: _Ink = (34, 39, 48)
_LINE: _Ink = (84, 93, 108)
# The height of a row in heights of the face: room for a finger between two sliders.
_LEADING = 1.4
# Letters and signs of most panels.
_USUAL = "".join(map(chr, range(32, 127))) + "…·°▏"


def panel_face_size(frame: tuple[int, int], scale: float) -> int:
    """The em in pixels for a frame (width, height) on a monitor with this content scale. It is larger than that of
    notes, so that a standing player can read it, but leaves room for a few controls."""
    width, height = frame
    return round(max(9.0, min(max(height / 42, 14 * scale), height / 12, width / 18)))


@dataclass(frozen=True, slots=True)
class PanelPlace:
    """Where the panel is in a frame: the edges of its first cell, and the size of a cell, in pixels."""

    left: int
    top: int
    column: int
    row: int

    def cell(self, x: float, y: float) -> tuple[float, float]:
        """Column and row of a place in the frame."""
        return (x - self.left) / self.column, (y - self.top) / self.row


@dataclass(frozen=True, slots=True)
class _Cells:
    """The sizes that follow from a face."""

    column: int
    row: int

    @property
    def edge(self) -> int:
        """From the panel's upper and lower edge to its bands."""
        return self.row // 3

    @property
    def margin(self) -> int:
        """From the frame's edge to the panel."""
        return max(2, self.row // 3)


class PanelPainter:
    """Turns views of the panel into labels, drawing each band once."""

    def __init__(self) -> None:
        self._face = Face(1)
        self._cells = _Cells(1, 1)
        self._labels: dict[tuple[Rect, object], Label] = {}
        self._drawn: tuple[PanelView, PanelPlace] | None = None
        self._shown: tuple[Label, ...] = ()

    def room(self, frame: tuple[int, int], scale: float, top: int) -> tuple[int, int]:
        """Columns and rows for the panel in a frame of this width and height, below `top`."""
        size = panel_face_size(frame, scale)
        if size != self._face.size:
            self._face = Face(size)
            self._face.draw(_USUAL)  # better now than while a knob moves
            self._cells = _Cells(self._face.width, round(self._face.height * _LEADING))
            self.forget()
        cells = self._cells
        height = frame[1] - max(top, cells.margin) - cells.margin - 2 * cells.edge
        return (frame[0] - 2 * cells.margin) // cells.column, height // cells.row

    def place(self, layout: PanelLayout, frame: tuple[int, int], top: int) -> PanelPlace:
        """The place of the panel: at the right edge, below `top`. To be called after `room` for the same frame."""
        cells = self._cells
        left = frame[0] - cells.margin - layout.columns * cells.column
        return PanelPlace(left, max(top, cells.margin) + cells.edge, cells.column, cells.row)

    def labels(self, view: PanelView, place: PanelPlace) -> tuple[Label, ...]:
        """The labels for a view at a place. Those of bands that look as before are the same objects."""
        if self._drawn is not None and self._drawn[0] is view and self._drawn[1] == place:
            return self._shown
        kept, self._labels = self._labels, {}
        layout, cells = view.layout, self._cells
        width = layout.columns * cells.column
        upper = Rect(place.left, place.top - cells.edge, width, cells.edge)
        lower = Rect(place.left, place.top + layout.rows * cells.row, width, cells.edge)
        strips: list[tuple[Rect, object]] = [(upper, "upper")]
        for band, top in view.rows:
            strips.append((Rect(place.left, place.top + top * cells.row, width, band.rows * cells.row), band))
        strips.append((Rect(place.left, lower.top - cells.row, width, cells.row), view.footer))
        strips.append((lower, "lower"))
        for number, strip in enumerate(strips):
            # Two strips may look the same; the band of a slider and a footer never do.
            known = kept.get(strip)
            self._labels[strip] = known or Label(strip[0], self._draw(strip[0], strip[1], number, len(strips), layout))
        self._drawn, self._shown = (view, place), tuple(self._labels.values())
        return self._shown

    def forget(self) -> None:
        """Drops all labels."""
        self._labels, self._drawn, self._shown = {}, None, ()

    def _draw(self, place: Rect, what: object, number: int, count: int, layout: PanelLayout) -> Picture:
        canvas = _PanelPixels(place.width, place.height)
        if isinstance(what, Band):
            _BandDrawing(canvas, self._face, self._cells, layout).draw(what)
        elif number == count - 2:
            text = _shortened(str(what), layout.columns - 2 * PAD)
            canvas.text(self._face, PAD * self._cells.column, _middle(self._face, self._cells), text, _DIM)
        else:
            # The caps are drawn as one panel without bands, of which each is a half.
            whole = _PanelPixels(place.width, 2 * place.height).pixels
            round_corners(whole, place.height)
            canvas.pixels[...] = whole[: place.height] if number == 0 else whole[place.height :]
        return canvas.pixels


def _middle(face: Face, cells: _Cells) -> int:
    """The upper edge of text in the middle of a row."""
    return (cells.row - face.height) // 2


def _shortened(text: str, columns: int) -> str:
    return text if len(text) <= columns else text[: columns - 1] + "…"


class _PanelPixels:
    """Pixels on the ground of the panel, their colours multiplied by alpha."""

    def __init__(self, width: int, height: int) -> None:
        self._words = np.full((height, width), ramp_of(_TEXT)[0], np.uint32)
        self.pixels: Picture = self._words.view(np.uint8).reshape(height, width, 4)

    def text(self, face: Face, left: int, top: int, text: str, ink: _Ink) -> None:
        """A line of text from its upper left corner on, where nothing else is."""
        part = self._words[top : top + face.height, left : left + len(text) * face.width]
        part[...] = ramp_of(ink)[face.draw(text)[:, : part.shape[1]]]

    def box(
        self, left: float, top: float, right: float, bottom: float, radius: float, ink: _Ink | NDArray[np.float32]
    ) -> None:
        """A box with round corners and smooth edges. `ink` is one colour, or a colour for each column of the canvas."""
        x0, x1 = max(0, int(left)), min(self.pixels.shape[1], int(right) + 1)
        y0, y1 = max(0, int(top)), min(self.pixels.shape[0], int(bottom) + 1)
        if x0 >= x1 or y0 >= y1:
            return
        radius = min(radius, (right - left) / 2, (bottom - top) / 2)
        # The distances of the pixel centres from a box that is smaller by the radius: I. Quilez, "2D distance
        # functions", rounded box.
        across = np.abs(np.arange(x0, x1, dtype=np.float32) + 0.5 - (left + right) / 2) - ((right - left) / 2 - radius)
        down = np.abs(np.arange(y0, y1, dtype=np.float32) + 0.5 - (top + bottom) / 2) - ((bottom - top) / 2 - radius)
        across, down = np.maximum(across, 0), np.maximum(down, 0)
        colours = _opaque(ink) if isinstance(ink, tuple) else _opaque(ink[x0:x1])
        # Between the corners each row has one coverage, which is whole in all but a few.
        rim, width = int(radius) + 2, x1 - x0
        rims = ((0, rim), (width - rim, width)) if width > 2 * rim else ((0, width),)
        for start, end in rims:
            outside = np.hypot(across[start:end], down[:, np.newaxis])
            paint = colours[start:end] if colours.ndim > 1 else colours
            self._blend(x0 + start, y0, np.clip(radius + 0.5 - outside, 0, 1), paint)
        if width <= 2 * rim:
            return
        paint = colours[rim:-rim] if colours.ndim > 1 else colours
        shares = np.clip(radius + 0.5 - down, 0, 1)
        whole = np.flatnonzero(shares == 1)
        if len(whole):
            words = np.rint(paint).astype(np.uint8).view(np.uint32).reshape(-1)
            self._words[y0 + whole[0] : y0 + whole[-1] + 1, x0 + rim : x1 - rim] = words
        for row in np.flatnonzero((shares > 0) & (shares < 1)):
            self._blend(x0 + rim, y0 + int(row), np.full((1, width - 2 * rim), shares[row], np.float32), paint)

    def _blend(self, left: int, top: int, share: NDArray[np.float32], colours: NDArray[np.float32]) -> None:
        height, width = share.shape
        part = self.pixels[top : top + height, left : left + width]
        share = share[: part.shape[0], : part.shape[1], np.newaxis]
        part[...] = part + (colours - part) * share + np.float32(0.5)


def _opaque(ink: _Ink | NDArray[np.float32]) -> NDArray[np.float32]:
    """A colour, or a row of colours, with full alpha."""
    colours = np.asarray(ink, np.float32)
    return np.concatenate([colours, np.full((*colours.shape[:-1], 1), 255, np.float32)], axis=-1)


@dataclass(frozen=True, slots=True)
class _BandDrawing:
    """Draws one band on a canvas of its size."""

    canvas: _PanelPixels
    face: Face
    cells: _Cells
    layout: PanelLayout

    def draw(self, band: Band) -> None:
        cells, layout = self.cells, self.layout
        if band.is_chosen:
            thick = max(2, cells.column // 4)
            at = (PAD * cells.column - thick) / 2
            self.canvas.box(at, cells.row * 0.2, at + thick, band.rows * cells.row - cells.row * 0.2, thick, ACCENT)
        is_bar = band.part in ("hue", "saturation", "brightness")
        ink = ACCENT if band.is_chosen else _DIM if is_bar else _TEXT
        self._text(layout.label, 0, _shortened(band.label, layout.label_columns), ink)
        for row, value in enumerate(band.values[: band.rows]):
            right = layout.columns - PAD
            self._text(right - len(value), row, value, ACCENT if band.is_asking else _DIM if is_bar else _TEXT)
        match band.part:
            case "slider" | "menu":
                self._slider(band.at[0])
            case "toggle" | "button":
                self._switch(bool(band.at[0]))
            case "xy":
                self._pad(band.at, band.rows)
            case "color":
                self._colours(band.colours, 0.62)
            case "lamps":
                self._lamps(band.colours)
            case _:
                self._colours(band.colours, 0.34)
                self._knob(self._across(band.at[0]), cells.row / 2, cells.row * 0.22, _TEXT)

    def _text(self, column: int, row: int, text: str, ink: _Ink) -> None:
        top = row * self.cells.row + _middle(self.face, self.cells)
        self.canvas.text(self.face, column * self.cells.column, top, text, ink)

    @property
    def _ends(self) -> tuple[float, float]:
        """The left and right end of the track, where knobs stop."""
        column, layout = self.cells.column, self.layout
        return (layout.track + 0.5) * column, (layout.track + layout.track_columns - 0.5) * column

    def _across(self, at: float) -> float:
        left, right = self._ends
        return left + min(max(at, 0.0), 1.0) * (right - left)

    def _slider(self, at: float) -> None:
        left, right = self._ends
        middle, half = self.cells.row / 2, max(1.5, self.cells.row * 0.06)
        x = self._across(at)
        self.canvas.box(left - half, middle - half, right + half, middle + half, half, _GROOVE)
        self.canvas.box(left - half, middle - half, x, middle + half, half, ACCENT)
        self._knob(x, middle, self.cells.row * 0.22, _TEXT)

    def _knob(self, x: float, y: float, radius: float, ink: _Ink) -> None:
        self.canvas.box(x - radius - 2, y - radius - 2, x + radius + 2, y + radius + 2, radius + 2, GROUND[:3])
        self.canvas.box(x - radius, y - radius, x + radius, y + radius, radius, ink)

    def _switch(self, is_on: bool) -> None:
        left = self.layout.track * self.cells.column
        middle, half = self.cells.row / 2, self.cells.row * 0.26
        width = 4 * half
        self.canvas.box(left, middle - half, left + width, middle + half, half, ACCENT if is_on else _GROOVE)
        x = left + width - half if is_on else left + half
        inner = half * 0.72
        self.canvas.box(x - inner, middle - inner, x + inner, middle + inner, inner, GROUND[:3] if is_on else _TEXT)

    def _pad(self, at: Sequence[float], rows: int) -> None:
        row, column = self.cells.row, self.cells.column
        left, right = self.layout.track * column, (self.layout.track + self.layout.track_columns) * column
        top, bottom = row * 0.12, rows * row - row * 0.12
        self.canvas.box(left, top, right, bottom, row * 0.15, _FIELD)
        x, y = self._across(at[0]), (0.5 + min(max(at[1], 0.0), 1.0) * (rows - 1)) * row
        thin = max(0.5, row / 80)
        self.canvas.box(left, y - thin, right, y + thin, 0, _LINE)
        self.canvas.box(x - thin, top, x + thin, bottom, 0, _LINE)
        self._knob(x, y, row * 0.24, ACCENT)

    def _lamps(self, colours: Sequence[Colour]) -> None:
        """Squares side by side, with gaps between them where there is room."""
        if not colours:
            return
        column, row = self.cells.column, self.cells.row
        left, right = self.layout.track * column, (self.layout.columns - PAD) * column
        # Few lamps are no broad bars.
        wide = min((right - left) / len(colours), 2.0 * column)
        along = (np.arange(self.canvas.pixels.shape[1], dtype=np.float32) + 0.5 - left) / wide
        inks = np.array(colours, np.float32)[np.clip(along, 0, len(colours) - 1).astype(int)] * 255
        inks[inks.max(1) < max(_FIELD)] = _FIELD  # a lamp that is dark is seen to be there
        if wide >= 4:
            inks[along % 1 < 1.5 / wide] = GROUND[:3]
        self.canvas.box(left, row * 0.2, left + wide * len(colours), row * 0.8, 2, inks)

    def _colours(self, colours: Sequence[Colour], height: float) -> None:
        column, row = self.cells.column, self.cells.row
        left, right = self._ends
        stops = np.array(colours if len(colours) > 1 else [*colours, *colours], np.float32) * 255
        along = (np.arange(self.canvas.pixels.shape[1], dtype=np.float32) + 0.5 - left) / (right - left)
        places = np.linspace(0, 1, len(stops))
        inks = np.stack([np.interp(along, places, stops[:, channel]) for channel in range(3)], axis=1)
        half = row * height / 2
        self.canvas.box(left - column / 2, row / 2 - half, right + column / 2, row / 2 + half, row * 0.15,
                        inks.astype(np.float32))  # fmt: skip
