"""The language server: what it tells an editor, and when it asks the processes that analyse."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import replace
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcContentModified, JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from weft import __version__
from weft.editor.analyst import AnalysisError, Analyst
from weft.editor.documents import Document
from weft.editor.editor_streams import EditorStreams
from weft.editor.live_documents import LiveDocuments
from weft.editor.positions import TextPositions
from weft.editor.questions import (
    TOKEN_MODIFIERS, TOKEN_TYPES, AnalystSetup, Correction, Diagnosis, Finding, RefusedRequestError
)
from weft.permissions import Permissions
from weft.syntax.scanner import ENDING

# Seconds without an edit after which all that `weft check` says is found out.
_PAUSE = 0.12

# The code of the protocol for a request that is refused for a reason.
_REQUEST_FAILED = -32803

WHY = "weft.why"
"""The command that says why a pixel or a sample has its value."""

# Answered when all is published that is to be found out about the texts so far.
_SETTLED = "weft/settled"

# The processes whose answers may come late.
_PATIENT = ("forecast", "why")

# The questions whose answers are of use while one types on.
_WHILE_TYPING = frozenset({"proposals", "signatures"})

# What may hold text from other files.
_INCLUDES = "#include"


class EditorServer(LanguageServer):
    """Keeps the texts of an editor, and publishes their diagnostics. Three processes analyse: one answers the editor's
    questions, one builds each text as it is typed, and one does in pauses what takes longer. A fourth says why a pixel
    is as it is, when a user asks."""

    def __init__(self, permissions: Permissions) -> None:
        # With each change the whole text comes, so that the two sides cannot come to differ.
        super().__init__("weft", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
        self.documents: dict[str, Document] = {}
        self._permissions = permissions
        self._analysts: dict[str, Analyst] = {}
        self._diagnoses: dict[str, tuple[Document, Diagnosis]] = {}
        """What is known of each open document, and the document of which it is known."""
        self._published: dict[str, tuple[int | None, Sequence[types.Diagnostic]]] = {}
        """What the editor was told, and for which version of a text."""
        self._waiting: dict[str, None] = {}
        """The documents that are to be built, the latest at the end."""
        self._building: asyncio.Task[None] | None = None
        self._forecasts: dict[str, asyncio.Task[None]] = {}
        self._asked: dict[asyncio.Task[Any], tuple[Document, str]] = {}
        """The questions about documents that are not answered yet: each with its document, and its method."""
        self._hurry = asyncio.Event()
        """Set while a request waits for everything that can be found out."""
        self.live = LiveDocuments(self.documents, self._costs, self._curves, self._refresh_hints)
        self.leave: Callable[[], None] = lambda: None
        """Ends what the editor writes, as if it had left."""

    def analyst(self, role: str) -> Analyst:
        """The process for one kind of questions."""
        if role not in self._analysts:
            self._analysts[role] = Analyst(AnalystSetup(self.encoding, self._permissions, role in _PATIENT))
        return self._analysts[role]

    async def ask(self, method: str, *arguments: object, role: str = "answer") -> Any:
        """The answer to a question of the editor; None if there is none. Raises JsonRpcException for a request that is
        refused."""
        try:
            return await self.analyst(role).ask(self.documents, method, *arguments)
        except RefusedRequestError as refusal:
            raise JsonRpcException(str(refusal), _REQUEST_FAILED) from refusal
        except AnalysisError as failure:
            self._log(f"{method}: the analysis {failure}")
            return None

    async def ask_about(self, uri: str, method: str, *arguments: object) -> Any:
        """The answer to a question about a document as it is; see `ask`. Nobody waits for one that is out of date: once
        the text has changed, the question is refused at once. One that is asked while one types is refused when the
        same is asked about a later text. Raises JsonRpcContentModified then. About a text that is not open, or not any
        more, there is nothing to say."""
        if uri not in self.documents:
            return None
        if method in _WHILE_TYPING:
            self._outdate(uri, lambda document, asked: asked == method and document is not self.documents[uri])
        asking = asyncio.get_running_loop().create_task(self.ask(method, uri, *arguments))
        self._asked[asking] = self.documents[uri], method
        try:
            return await asking
        except asyncio.CancelledError:
            if asking in self._asked:  # the editor has cancelled it
                raise
            raise JsonRpcContentModified from None
        finally:
            self._asked.pop(asking, None)

    def _outdate(self, uri: str, is_old: Callable[[Document, str], bool]) -> None:
        """Refuses questions about a document that are not answered yet."""
        for asking, (document, method) in [*self._asked.items()]:
            if document.uri == uri and is_old(document, method):
                del self._asked[asking]
                asking.cancel()

    async def _costs(self, uri: str) -> Mapping[int, float]:
        """What the statements of a document cost; nothing if that is not known."""
        try:
            found = await self.analyst("forecast").ask(self.documents, "costs", uri)
        except (AnalysisError, RefusedRequestError):
            return {}
        return found if isinstance(found, dict) else {}

    async def _curves(self, uri: str, now: float, given: Mapping[str, float]) -> Mapping[int, Sequence[float]]:
        """What strands of a document have been lately; nothing if that is not known."""
        try:
            found = await self.analyst("forecast").ask(self.documents, "curves", uri, now, given)
        except (AnalysisError, RefusedRequestError):
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def folders(self) -> list[str]:
        """The folders that the editor works in."""
        found = [to_fs_path(uri) for uri in self.workspace.folders]
        return [path for path in found or [self.workspace.root_path] if path]

    async def _refresh_hints(self) -> None:
        """Has an editor that can do so ask for what is beside the lines."""
        workspace = self.client_capabilities.workspace
        if workspace is not None and workspace.inlay_hint is not None and workspace.inlay_hint.refresh_support:
            with suppress(JsonRpcException):
                await self.workspace_inlay_hint_refresh_async(None)

    @property
    def encoding(self) -> str:
        """How the editor counts columns."""
        return self.workspace.position_encoding or types.PositionEncodingKind.Utf16

    def shutdown(self) -> None:
        """Ends the reading, for which the end of the threads waits. A signal that asks for the end comes here, too."""
        self.leave()
        super().shutdown()  # type: ignore[no-untyped-call]

    def end(self) -> None:
        """Ends the processes."""
        for analyst in self._analysts.values():
            analyst.end()

    def say_why_not(self, answer: Mapping[str, Any]) -> None:
        """Tells the performer why a text does not play."""
        words = answer.get("problem")
        for found in answer.get("diagnostics", ()):
            if found.get("severity") == "error":
                words = f"line {found['line']}: {found['message']}" if found.get("line") else found["message"]
                break
        self.window_show_message(types.ShowMessageParams(types.MessageType.Warning, f"not played: {words}"))

    def _log(self, message: str) -> None:
        self.window_log_message(types.LogMessageParams(types.MessageType.Warning, message))

    # --- texts ---

    def put(self, uri: str, text: str, version: int | None) -> None:
        """Takes a text that was opened or edited."""
        if (before := self.documents.get(uri)) is not None and before.text != text:
            self.live.point(uri, _first_difference(before.text, text), is_edit=True)
        self.documents[uri] = Document(uri, text, version)
        self._outdate(uri, lambda _, method: method not in _WHILE_TYPING)
        self._check(uri, *self._including(uri))

    def drop(self, uri: str) -> None:
        """Forgets a text that was closed."""
        self.documents.pop(uri, None)
        self._outdate(uri, lambda *_: True)
        self._diagnoses.pop(uri, None)
        self._waiting.pop(uri, None)
        if (task := self._forecasts.pop(uri, None)) is not None:
            task.cancel()
        self._check(*self._including(uri))
        self._publish()

    def look_again(self) -> None:
        """Checks what may have changed on the disk."""
        self._check(*self.documents)

    def _including(self, uri: str) -> list[str]:
        """The other documents whose meaning may depend on a document."""
        return [each for each, document in self.documents.items() if each != uri and _INCLUDES in document.text]

    # --- diagnostics ---

    def _check(self, *uris: str) -> None:
        for uri in uris:
            self._waiting.pop(uri, None)
        self._waiting |= dict.fromkeys(reversed(uris))  # the first one is built first
        for uri in uris:
            if (task := self._forecasts.pop(uri, None)) is not None:
                task.cancel()
        if self._building is None or self._building.done():
            self._building = _begun(self._build())

    async def _build(self) -> None:
        """Builds the documents that wait, until there is none."""
        while self._waiting:
            uri, _ = self._waiting.popitem()
            await self._diagnose(uri, "build", "diagnose")
            self._forecasts[uri] = _begun(self._forecast(uri))

    async def _forecast(self, uri: str) -> None:
        """Finds out in a pause what takes longer."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._hurry.wait(), _PAUSE)
        await self._learn(uri)
        await self._diagnose(uri, "forecast", "forecast")

    async def settled(self) -> None:
        """Waits until all is published that is to be found out about the texts as they are."""
        self._hurry.set()
        while work := [each for each in (self._building, *self._forecasts.values()) if each and not each.done()]:
            await asyncio.wait(work)
        self._hurry.clear()

    async def _diagnose(self, uri: str, role: str, method: str) -> None:
        """Publishes what is found about a document, unless it has changed in the meantime."""
        document = self.documents.get(uri)
        if document is None:
            return
        try:
            found = await self.analyst(role).ask(self.documents, method, uri)
            assert isinstance(found, Diagnosis)
        except AnalysisError as failure:
            found = Diagnosis({uri: [_unanswered(str(failure))]})
        if self.documents.get(uri) is document:
            if role == "build" and uri in self._diagnoses:
                found = _with_warnings(found, document, *self._diagnoses[uri])
            self._diagnoses[uri] = document, found
            self._publish()

    async def _learn(self, uri: str) -> None:
        """Has the process that answers questions know what the last build shows of a document."""
        document = self.documents.get(uri)
        facts = await self.ask("facts", uri, role="build") if document is not None else None
        if facts is not None and self.documents.get(uri) is document:
            await self.ask("learn", uri, facts)

    def findings(self, uri: str) -> list[Finding]:
        """What is known about a file: by itself if it is open, and as part of others."""
        found = [*self._of(uri, uri)]
        for other in self._diagnoses:
            if other != uri:
                found += [each for each in self._of(other, uri) if each not in found]
        return found

    def corrections(self, params: types.CodeActionParams) -> Iterator[tuple[Finding, Correction]]:
        """What corrects the mistakes in a range, if the text is still the one that has them."""
        uri, wanted = params.text_document.uri, params.range
        known = self._diagnoses.get(uri)
        if known is None or self.documents.get(uri) is not known[0]:
            return
        for each in known[1].findings.get(uri, ()):
            place = each.shown.range
            if each.correction is not None and place.start <= wanted.end and wanted.start <= place.end:
                yield each, each.correction

    def _of(self, checked: str, uri: str) -> Sequence[Finding]:
        known = self._diagnoses.get(checked)
        return () if known is None else known[1].findings.get(uri, ())

    def _publish(self) -> None:
        """Tells the editor what has changed."""
        about = {uri for _, diagnosis in self._diagnoses.values() for uri in diagnosis.findings}
        for uri in about | self._published.keys():
            document = self.documents.get(uri)
            version = document.version if document else None
            found = [each.shown for each in self.findings(uri)]
            if self._published.get(uri) == (version, found):
                continue
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))
            self._published[uri] = version, found
            if uri not in about:
                del self._published[uri]


def _first_difference(one: str, other: str) -> int:
    """The line, from 0, at which two texts begin to differ."""
    lines = zip(one.split("\n"), other.split("\n"), strict=False)
    return next((at for at, (here, there) in enumerate(lines) if here != there), other.count("\n"))


def _begun(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(work)


def _with_warnings(found: Diagnosis, document: Document, earlier: Document, known: Diagnosis) -> Diagnosis:
    """What was found at once about a text without errors, with the warnings of the one before about lines that are the
    same. They would come again a moment later, and must not flicker."""
    about = found.findings.get(document.uri, ())
    if any(each.shown.severity == types.DiagnosticSeverity.Error for each in about):
        return found
    lines, before = document.text.split("\n"), earlier.text.split("\n")
    kept = [
        each for each in known.findings.get(document.uri, ())
        if each.shown.severity == types.DiagnosticSeverity.Warning and each not in about
        and lines[(line := each.shown.range.start.line) : line + 1] == before[line : line + 1]
    ]  # fmt: skip
    return replace(found, findings={**found.findings, document.uri: [*about, *kept]})


def _unanswered(reason: str) -> Finding:
    nowhere = types.Position(0, 0)
    words = f"the analysis of this text {reason}\nit is tried again at the next edit; this is a bug in weft"
    return Finding(types.Diagnostic(
        types.Range(nowhere, nowhere), words, severity=types.DiagnosticSeverity.Error, code="internal", source="weft"
    ))  # fmt: skip


def _texts(server: EditorServer) -> None:
    """Registers what the editor says about texts."""

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        server.put(document.uri, document.text, document.version)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        server.put(uri, server.workspace.get_text_document(uri).source, params.text_document.version)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        server.drop(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(_params: types.DidSaveTextDocumentParams) -> None:
        server.look_again()

    @server.feature(types.INITIALIZED)
    async def begun(_params: types.InitializedParams) -> None:
        server.live.begin()
        workspace = server.client_capabilities.workspace
        files = workspace.did_change_watched_files if workspace else None
        if files is not None and files.dynamic_registration:
            options = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(f"**/*{ENDING}")])
            watching = types.Registration("weft-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
            with suppress(JsonRpcException):  # of an editor that says it would, and does not
                await server.client_register_capability_async(types.RegistrationParams([watching]))

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def watched(_params: types.DidChangeWatchedFilesParams) -> None:
        server.look_again()

    @server.feature(_SETTLED)
    async def settled(_params: None) -> bool:
        await server.settled()
        return True


def _places(server: EditorServer) -> None:
    """Registers the questions about places in texts."""

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> Any:
        uri, position = params.text_document.uri, params.position
        found = await server.ask_about(uri, "hover", position)
        now = server.live.value_at(uri, position, server.encoding)
        if now is not None and isinstance(found, types.Hover) and isinstance(found.contents, types.MarkupContent):
            found.contents.value += f"\n\nNow: {now}"
        return found

    completion = types.CompletionOptions(trigger_characters=["@", "#", '"', "/", "<", "."], resolve_provider=True)

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, completion)
    async def proposals(params: types.CompletionParams) -> Any:
        known = server.client_capabilities.text_document
        lists = known.completion.completion_list if known and known.completion else None
        shares_place = "editRange" in ((lists and lists.item_defaults) or ())
        found = await server.ask_about(params.text_document.uri, "proposals", params.position, shares_place)
        return found or types.CompletionList(is_incomplete=False, items=[])

    @server.feature(types.COMPLETION_ITEM_RESOLVE)
    async def explained(params: types.CompletionItem) -> Any:
        return await server.ask("explained", params) or params

    signature = types.SignatureHelpOptions(trigger_characters=["(", ","], retrigger_characters=[":"])

    @server.feature(types.TEXT_DOCUMENT_SIGNATURE_HELP, signature)
    async def signatures(params: types.SignatureHelpParams) -> Any:
        return await server.ask_about(params.text_document.uri, "signatures", params.position)

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def definition(params: types.DefinitionParams) -> Any:
        return await server.ask_about(params.text_document.uri, "definition", params.position)

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    async def references(params: types.ReferenceParams) -> Any:
        with_definition = params.context.include_declaration
        return await server.ask_about(params.text_document.uri, "references", params.position, with_definition)

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    async def highlights(params: types.DocumentHighlightParams) -> Any:
        server.live.point(params.text_document.uri, params.position.line)
        return await server.ask_about(params.text_document.uri, "highlights", params.position)

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    async def may_rename(params: types.PrepareRenameParams) -> Any:
        return await server.ask_about(params.text_document.uri, "may_rename", params.position)

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    async def rename(params: types.RenameParams) -> Any:
        return await server.ask_about(params.text_document.uri, "rename", params.position, params.new_name)

    @server.feature(types.TEXT_DOCUMENT_SELECTION_RANGE)
    async def selections(params: types.SelectionRangeParams) -> Any:
        return await server.ask_about(params.text_document.uri, "selections", params.positions)

    actions = types.CodeActionOptions([types.CodeActionKind.QuickFix])

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, actions)
    def corrections(params: types.CodeActionParams) -> list[types.CodeAction]:
        return [_action(params.text_document.uri, *each) for each in server.corrections(params)]


def _action(uri: str, found: Finding, correction: Correction) -> types.CodeAction:
    text = correction.text.strip()
    is_empty = correction.range.start == correction.range.end
    return types.CodeAction(
        f"add {text}" if is_empty else f"write {text}", types.CodeActionKind.QuickFix, [found.shown],
        is_preferred=correction.is_sure,
        edit=types.WorkspaceEdit(changes={uri: [types.TextEdit(correction.range, correction.text)]}),
    )  # fmt: skip


def _whole(server: EditorServer) -> None:
    """Registers the questions about whole texts."""

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def outline(params: types.DocumentSymbolParams) -> Any:
        return await server.ask_about(params.text_document.uri, "outline")

    @server.feature(types.WORKSPACE_SYMBOL)
    async def symbols(params: types.WorkspaceSymbolParams) -> Any:
        # In pauses, or beside them: many files may have to be read.
        return await server.ask("symbols", params.query, server.folders, role="forecast")

    @server.feature(types.TEXT_DOCUMENT_FOLDING_RANGE)
    async def folds(params: types.FoldingRangeParams) -> Any:
        return await server.ask_about(params.text_document.uri, "folds")

    legend = types.SemanticTokensLegend(TOKEN_TYPES, TOKEN_MODIFIERS)

    @server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, legend)
    async def tokens(params: types.SemanticTokensParams) -> Any:
        return types.SemanticTokens(await server.ask_about(params.text_document.uri, "tokens") or [])

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    async def style(params: types.DocumentFormattingParams) -> Any:
        return await server.ask_about(params.text_document.uri, "style")

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_COLOR)
    async def colours(params: types.DocumentColorParams) -> Any:
        return await server.ask_about(params.text_document.uri, "colours") or []

    @server.feature(types.TEXT_DOCUMENT_COLOR_PRESENTATION)
    async def picked(params: types.ColorPresentationParams) -> Any:
        found = await server.ask_about(params.text_document.uri, "picked", params.range, params.color) or []
        await _turn_colour(server, params.text_document.uri, params.range, found)
        return found

    @server.command(WHY)
    async def why(uri: str, place: dict[str, Any]) -> Any:
        # It takes seconds, for which no other question should wait.
        return await server.ask("why", uri, place, role="why")

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_LINK)
    async def links(params: types.DocumentLinkParams) -> Any:
        return await server.ask_about(params.text_document.uri, "links")


async def _turn_colour(
    server: EditorServer, uri: str, place: types.Range, found: Sequence[types.ColorPresentation]
) -> None:
    """Has a performance show a colour while it is picked."""
    document = server.documents.get(uri)
    if document is None or not found or found[0].text_edit is None or server.live.linked(uri) is None:
        return
    positions = TextPositions(document.text, server.encoding)
    start, end = positions.offset(place.start), positions.offset(place.end)
    new = f"{document.text[:start]}{found[0].text_edit.new_text}{document.text[end:]}"
    await server.live.turn(uri, new, range(place.start.line, place.end.line + 1))


def _played(server: EditorServer) -> None:
    """Registers what has to do with performances."""

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    def beside(params: types.InlayHintParams) -> list[types.InlayHint]:
        return server.live.hints(params.text_document.uri, server.encoding)

    @server.command("weft.evaluate")
    async def evaluate(uri: str) -> Any:
        answer = await server.live.evaluate(uri)
        if not answer.get("ok"):
            server.say_why_not(answer)
        return answer

    @server.command("weft.turn")
    async def turn(uri: str, position: types.Position, value: float) -> Any:
        return await server.live.turn_number(uri, position, value, server.encoding)


def serve(permissions: Permissions) -> None:
    """Serves an editor over stdin and stdout until it leaves."""
    server = EditorServer(permissions)
    for register in (_texts, _places, _whole, _played):
        register(server)
    if os.environ.get("WEFT_DEBUG") != "1":
        logging.getLogger("pygls").setLevel(logging.CRITICAL)  # it logs tracebacks
    with EditorStreams() as streams, redirect_stdout(sys.stderr), suppress(ValueError):
        server.leave = streams.leave
        try:
            server.start_io(streams.stdin, streams.stdout)
        finally:
            server.end()
