"""Programs as messages, without what the other process has already.

Most of a program is what it was a save ago, and its pieces never change once they are made: subgraphs, kernels and
their code. So they are pickled one by one, and a piece that the receiver got with an earlier message is left out: its
key, a hash of its bytes, stands for it. Messages arrive in the order in which they were sent, so both sides know the
same pieces without asking. A new process knows none.
"""

from __future__ import annotations

import hashlib
import pickle
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Generic, TypeAlias, TypeVar

from weft.codegen.kernel import Unit

T = TypeVar("T")

Key: TypeAlias = bytes

MOST_KNOWN = 128
"""How many pieces both sides usually know: those of some dozens of saves, or all of one larger program."""


@dataclass(frozen=True)
class Parcel:
    """A pickled message, with keys in the place of its `pieces`. These are pickled as well, or None if the receiver
    knows them."""

    content: bytes
    pieces: Mapping[Key, bytes | None]


def pieces_of(units: Iterable[Unit]) -> list[object]:
    """What units are made of: all that takes long to send, and is often the same as before."""
    each = (
        (unit.subgraph, unit.kernel, *unit.points.values(), unit.feeds, unit.films, unit.code) for unit in units
    )
    return [piece for pieces in each for piece in pieces if piece is not None]


class _Known(Generic[T]):
    """The pieces of the latest messages, by key. The two sides of a connection forget the same ones."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._pieces: OrderedDict[Key, T] = OrderedDict()

    def __contains__(self, key: Key) -> bool:
        return key in self._pieces

    def __getitem__(self, key: Key) -> T:
        return self._pieces[key]

    def add(self, pieces: Mapping[Key, T]) -> None:
        """Adds the pieces of a message, those that were known before included."""
        for key, piece in pieces.items():
            self._pieces[key] = piece
            self._pieces.move_to_end(key)
        while len(self._pieces) > max(self._most, len(pieces)):
            self._pieces.popitem(last=False)


class Packer:
    """Packs messages for one process, which has to get all of them, in this order."""

    def __init__(self, most: int = MOST_KNOWN) -> None:
        """`most` is the number of pieces that both sides know."""
        self._known = _Known[None](most)
        self._last: Mapping[int, tuple[Key, object]] = {}
        """The pieces of the last message by identity, so that they need not be pickled again to find their keys."""

    def pack(self, message: object, pieces: Iterable[object]) -> Parcel:
        """A message that refers to these pieces. Raises what pickling raises; then nothing has changed."""
        found, packed = dict[int, tuple[Key, object]](), dict[Key, bytes | None]()
        for piece in pieces:
            if id(piece) in self._last:
                found[id(piece)] = self._last[id(piece)]
                packed[found[id(piece)][0]] = None
            else:
                data = pickle.dumps(piece, pickle.HIGHEST_PROTOCOL)
                key = hashlib.sha256(data).digest()
                found[id(piece)] = key, piece
                packed[key] = None if key in self._known else data
        content = BytesIO()
        _Pickler(content, {place: key for place, (key, _) in found.items()}).dump(message)
        self._last = found
        self._known.add(dict.fromkeys(packed))
        return Parcel(content.getvalue(), packed)


class Unpacker:
    """Unpacks the messages of one `Packer`."""

    def __init__(self, most: int = MOST_KNOWN) -> None:
        """`most` is that of the packer."""
        self._known = _Known[object](most)

    def unpack(self, parcel: Parcel) -> Any:
        """The message. Raises KeyError, or what unpickling raises; then later ones may be unreadable, too."""
        pieces = {
            key: self._known[key] if data is None else pickle.loads(data) for key, data in parcel.pieces.items()
        }
        self._known.add(pieces)
        return _Unpickler(parcel.content, pieces).load()


class _Pickler(pickle.Pickler):
    """Writes keys in the place of the objects with these identities."""

    def __init__(self, file: BytesIO, keys: Mapping[int, Key]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._keys = keys

    def persistent_id(self, obj: object) -> Key | None:
        return self._keys.get(id(obj))


class _Unpickler(pickle.Unpickler):
    """Reads these pieces in the place of their keys."""

    def __init__(self, content: bytes, pieces: Mapping[Key, object]) -> None:
        super().__init__(BytesIO(content))
        self._pieces = pieces

    def persistent_load(self, key: Key) -> object:
        return self._pieces[key]
