"""Programs as messages, without the pieces that the other process has already.

Most of a program is the same from save to save, and its pieces never change once they are made: subgraphs, kernels and
their code. So they are pickled one by one. A piece that the receiver got with an earlier message is replaced by its
key, a hash of its bytes. Messages arrive in the order in which they were sent, so both sides know the same pieces
without asking. A new process knows none. Long parts of a piece, such as machine code and the layout of its arguments,
are pieces themselves, because code with other constants shares them.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any, TypeAlias, TypeVar

from weft.codegen.kernel import Unit

K = TypeVar("K")
T = TypeVar("T")

Key: TypeAlias = bytes

MOST_KNOWN = 128
"""The number of pieces that both sides usually know: those of some dozens of saves, or all of one larger program."""

# Objects of these types are pieces from this length on, wherever they are.
_LONG: Mapping[type, int] = {bytes: 4096, str: 4096, tuple: 64}


@dataclass(frozen=True)
class Parcel:
    """A pickled message, with keys in place of its `pieces`. The pieces are pickled as well, or None if the receiver
    knows them. A piece comes before those that contain it."""

    content: bytes
    pieces: Mapping[Key, bytes | None]


def pieces_of(units: Iterable[Unit]) -> list[object]:
    """The pieces of units: everything that takes long to send, and is often the same as before."""
    each = (
        (unit.subgraph, unit.kernel, *unit.points.values(), unit.feeds, unit.films, unit.code) for unit in units
    )
    return [piece for pieces in each for piece in pieces if piece is not None]


class _LastUsed(dict[K, T]):
    """The keys that were used last. Both sides of a connection forget the same pieces."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def use(self, used: Mapping[K, T]) -> None:
        """Adds what a message used, or moves it to the end."""
        for key, each in used.items():
            self.pop(key, None)
            self[key] = each
        for key in list(self)[: max(0, len(self) - max(self._most, len(used)))]:
            del self[key]


class Packer:
    """Packs messages for one process. That process has to get all of them, in this order."""

    def __init__(self, most: int = MOST_KNOWN) -> None:
        """`most` is the number of pieces that both sides know."""
        self._sent = _LastUsed[Key, None](most)
        self._keys = _LastUsed[int, tuple[Key, object]](most)
        """The keys of pieces by identity, so that a known piece is not pickled again."""

    def pack(self, message: object, pieces: Iterable[object]) -> Parcel:
        """A message that refers to these pieces. Raises whatever pickling raises; then nothing has changed."""
        packing = _Packing(self._sent, self._keys)
        for piece in pieces:
            packing.add(piece)
        parcel = Parcel(packing.pickled(message), packing.pieces)
        self._keys.use(packing.keys)
        self._sent.use(dict.fromkeys(packing.pieces))
        return parcel


class _Packing:
    """The pieces of one message: their `keys`, by identity, and the bytes that are sent of each. `sent` are those that
    the receiver has, and `known` the keys of earlier messages."""

    def __init__(self, sent: Container[Key], known: Mapping[int, tuple[Key, object]]) -> None:
        self._sent, self._known = sent, known
        self.keys: dict[int, tuple[Key, object]] = {}
        self.pieces: dict[Key, bytes | None] = {}

    def add(self, piece: object) -> Key:
        """Adds a piece, after its parts. Returns its key."""
        if (known := self._known.get(id(piece))) is not None and known[0] in self._sent:
            key = known[0]
            self.pieces[key] = None
        else:
            data = self.pickled(piece)
            key = hashlib.sha256(data).digest()
            self.pieces[key] = None if key in self._sent else data
        self.keys[id(piece)] = key, piece
        return key

    def pickled(self, what: object) -> bytes:
        """An object in bytes, with keys in place of the pieces in it."""
        content = BytesIO()
        _Pickler(content, what, self).dump(what)
        return content.getvalue()


class Unpacker:
    """Unpacks the messages of one `Packer`."""

    def __init__(self, most: int = MOST_KNOWN) -> None:
        """`most` is that of the packer."""
        self._known = _LastUsed[Key, object](most)

    def unpack(self, parcel: Parcel) -> Any:
        """The message. Raises KeyError, or whatever unpickling raises; later messages may then be unreadable."""
        pieces = dict[Key, object]()
        for key, data in parcel.pieces.items():
            pieces[key] = self._known[key] if data is None else _Unpickler(data, pieces).load()
        self._known.use(pieces)
        return _Unpickler(parcel.content, pieces).load()


class _Pickler(pickle.Pickler):
    """Writes an object with keys in place of the pieces in it."""

    def __init__(self, file: BytesIO, whole: object, packing: _Packing) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._whole = whole
        self._keys, self._add = packing.keys, packing.add

    def persistent_id(self, obj: Any) -> Key | None:
        if (known := self._keys.get(id(obj))) is not None:
            return known[0]
        least = _LONG.get(type(obj))
        return None if least is None or len(obj) < least or obj is self._whole else self._add(obj)


class _Unpickler(pickle.Unpickler):
    """Reads an object, with the pieces in place of their keys."""

    def __init__(self, content: bytes, pieces: Mapping[Key, object]) -> None:
        super().__init__(BytesIO(content))
        self._pieces = pieces

    def persistent_load(self, key: Key) -> object:
        return self._pieces[key]
