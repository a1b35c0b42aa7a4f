"""An editor without a window: a client of the language server with the profile of a real editor, and `weft lsp` as its
process."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.uris import from_fs_path
from pytest_lsp import client_capabilities
from pytest_lsp.client import make_test_lsp_client

from weft.editor.positions import TextPositions

T = TypeVar("T")

# What clients said when their editors were recorded; that of Helix is in its source, of which this is the part that a
# server looks at.
PROFILES = ("visual_studio_code", "neovim", "emacs", "helix")

_PATIENCE = 110.0


def _capabilities(profile: str) -> types.ClientCapabilities:
    if profile != "helix":
        return client_capabilities(profile)
    return types.ClientCapabilities(
        general=types.GeneralClientCapabilities(position_encodings=[
            types.PositionEncodingKind.Utf8, types.PositionEncodingKind.Utf32, types.PositionEncodingKind.Utf16
        ]),
        text_document=types.TextDocumentClientCapabilities(
            completion=types.CompletionClientCapabilities(
                completion_item=types.ClientCompletionItemOptions(snippet_support=True)
            ),
            rename=types.RenameClientCapabilities(prepare_support=True),
            publish_diagnostics=types.PublishDiagnosticsClientCapabilities(version_support=True),
        ),
    )  # fmt: skip


class Editor:
    """Opens and edits texts, and asks about places in them. A place is given by what is there: `"a = si‸n(1)"`."""

    def __init__(self, folder: Path, profile: str = PROFILES[0], *options: str) -> None:
        self.folder = folder
        self._loop = asyncio.new_event_loop()
        self._versions: dict[str, int] = {}
        self.texts: dict[str, str] = {}
        self.capabilities = _capabilities(profile)
        self.client = make_test_lsp_client()
        self.now(self.client.start_io(sys.executable, "-m", "weft", "lsp", *options, cwd=str(folder)))
        parameters = types.InitializeParams(
            capabilities=self.capabilities, root_uri=from_fs_path(str(folder)), process_id=os.getpid()
        )
        self.server = self.now(self.client.initialize_session(parameters))

    def now(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of something that the client does."""
        return self._loop.run_until_complete(asyncio.wait_for(work, _PATIENCE))

    def close(self) -> None:
        server = self.client._server
        if server is not None and server.returncode is None and not (server.stdin and server.stdin.is_closing()):
            self.now(self.client.shutdown_session())
        self.now(self.client.stop())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    @property
    def process(self) -> int:
        """The number of the server's process."""
        assert self.client._server is not None
        return self.client._server.pid

    @property
    def analysts(self) -> list[int]:
        """The numbers of the processes that analyse."""
        threads = Path(f"/proc/{self.process}/task").iterdir()
        return [int(pid) for each in threads for pid in (each / "children").read_text().split()]

    # --- texts ---

    def uri(self, name: str) -> str:
        found = name if ":" in name else from_fs_path(str(self.folder / name))
        assert found is not None
        return found

    def open(self, name: str, text: str) -> None:
        self.texts[name], self._versions[name] = text, 0
        document = types.TextDocumentItem(self.uri(name), "weft", 0, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(document))

    def edit(self, name: str, text: str) -> None:
        self.texts[name] = text
        self._versions[name] += 1
        document = types.VersionedTextDocumentIdentifier(self._versions[name], self.uri(name))
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    def shut(self, name: str) -> None:
        del self.texts[name]
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(self.document(name)))

    def document(self, name: str) -> types.TextDocumentIdentifier:
        return types.TextDocumentIdentifier(self.uri(name))

    # --- places ---

    def at(self, name: str, marked: str) -> types.Position:
        """The place of the `‸` in a piece of a text, which occurs there once."""
        before, _, after = marked.partition("‸")
        text = self.texts[name]
        assert text.count(before + after) == 1, marked
        return TextPositions(text, self.encoding).position(text.index(before + after) + len(before))

    @property
    def encoding(self) -> str:
        return str(getattr(self.server.capabilities.position_encoding, "value", "utf-16"))

    def shown(self, name: str, place: types.Range) -> str:
        """The text at a place."""
        positions = TextPositions(self.texts[name], self.encoding)
        return self.texts[name][positions.offset(place.start) : positions.offset(place.end)]

    def edited(self, name: str, edits: Sequence[types.TextEdit]) -> str:
        """A text after some edits."""
        text, positions = self.texts[name], TextPositions(self.texts[name], self.encoding)
        in_order = sorted(edits, key=lambda each: positions.offset(each.range.start))
        for each in reversed(in_order):
            text = text[: positions.offset(each.range.start)] + each.new_text + text[positions.offset(each.range.end) :]
        return text

    def where(self, kind: type[T], name: str, marked: str) -> T:
        """The parameters of a question about a place."""
        return kind(self.document(name), self.at(name, marked))  # type: ignore[call-arg] -- all of them take these

    def completed(self, name: str, marked: str) -> dict[str, types.CompletionItem]:
        """What may be typed at a place, by its label."""
        found = self.now(self.client.text_document_completion_async(self.where(types.CompletionParams, name, marked)))
        assert isinstance(found, types.CompletionList)
        if found.item_defaults is not None:
            place = found.item_defaults.edit_range
            assert isinstance(place, types.Range)
            for item in found.items:
                item.text_edit = types.TextEdit(place, item.text_edit_text or item.label)
        return {item.label: item for item in found.items}

    def hovered(self, name: str, marked: str) -> str:
        """What is said about a place."""
        found = self.now(self.client.text_document_hover_async(self.where(types.HoverParams, name, marked)))
        return found.contents.value if found else ""

    # --- diagnostics ---

    def settle(self) -> None:
        """Waits until all is said about the texts as they are."""
        self.now(self.client.protocol.send_request_async("weft/settled", None))

    def diagnostics(self, name: str) -> Sequence[types.Diagnostic]:
        """All that is said about a file."""
        self.settle()
        return list(self.client.diagnostics.get(self.uri(name), ()))

    def codes(self, name: str) -> list[tuple[object, int, int]]:
        """The code, line and column of each diagnostic."""
        return [(d.code, d.range.start.line, d.range.start.character) for d in self.diagnostics(name)]
