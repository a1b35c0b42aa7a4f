"""Diagnostics as one types: those of `weft check`, at the places where the editor has them."""

from __future__ import annotations

import gc
import random
from itertools import islice

import pytest
from lsprotocol import types

from benchmarks.generated import edits as typed, patch
from tests.support.edits import session
from tests.support.mutations import mutated, programs
from weft.contexts import context_table
from weft.editor.checks import Checker
from weft.editor.documents import Document, Documents
from weft.editor.protocol import _with_warnings
from weft.editor.questions import Diagnosis, Finding
from weft.errors import Diagnostic, Source, WeftError
from weft.graph.scope import Scope
from weft.media.sampled import header_if_whole
from weft.permissions import DEFAULT_PERMISSIONS
from weft.runtime.compiling.stages import Request, analyse
from weft.runtime.inspect.forecast import check


def told(editor, name):
    """What the editor shows of a text, as `weft check` would say it."""
    return [
        (d.severity, d.code, d.message, d.range.start.line, d.range.start.character) for d in editor.diagnostics(name)
    ]


def expected(editor, name):
    """What `weft check` says."""
    source = Source(str(editor.folder / name), editor.texts[name])
    return [as_shown(each) for each in check(source, context_table(), header_if_whole)]


def as_shown(found: Diagnostic):
    severity = types.DiagnosticSeverity.Error if found.severity == "error" else types.DiagnosticSeverity.Warning
    message = found.message + (f"\n{found.hint}" if found.hint else "")
    line, column = found.span.source.position(found.span.start) if found.span else (1, 1)
    return severity, found.code, message, line - 1, column - 1


def test_mistakes_show_and_go_in_any_editor(any_editor):
    any_editor.open("a.weft", "a = sin(me@x\ndisplay(a, b)\n")
    assert any_editor.codes("a.weft") == [("unclosed-bracket", 0, 12), ("unknown-strand", 1, 11)]
    any_editor.edit("a.weft", "a = sin(me@x)\ndisplay(a)\n")
    assert any_editor.codes("a.weft") == []
    any_editor.edit("a.weft", "a = sqrt(me@x - 3)\ndisplay(a)\n")
    assert any_editor.codes("a.weft") == [("not-a-number", 1, 0)]
    any_editor.shut("a.weft")
    any_editor.open("b.weft", "")
    any_editor.settle()
    assert list(any_editor.client.diagnostics[any_editor.uri("a.weft")]) == []


def test_a_place_counts_the_units_of_the_editor(any_editor):
    """𝄞 is two units of UTF-16, four of UTF-8 and one character."""
    any_editor.open("places.weft", '/* 𝄞é */ a = b\r\ndisplay(c)\r// \u2028\ncompute(d)')
    encoding = any_editor.server.capabilities.position_encoding
    column = {"utf-8": 17, "utf-16": 14, "utf-32": 13}[getattr(encoding, "value", encoding)]
    assert any_editor.codes("places.weft") == [
        ("unknown-strand", 0, column), ("unknown-strand", 1, 8), ("unknown-strand", 3, 8)
    ]


def test_the_session_of_an_evening_has_the_diagnostics_of_check(shared):
    assert edits(shared, 20, 11) > 1


@pytest.mark.long
@pytest.mark.parametrize("part", range(100))  # each of which ends in time on a busy machine, too
def test_a_thousand_edits_have_the_diagnostics_of_check(shared, part):
    edits(shared, 10, part)


def edits(editor, count, seed):
    """Edits a text this many times. Returns how often there was something to say about it."""
    chance = random.Random(seed)
    texts = [patch(style, 25, 4).text for style in ("evening", "pipes", "loops")]
    texts += [text for path, text in programs("patches").items() if path.stem in ("beat", "bells", "trails", "remap")]
    editor.open("session.weft", "")
    done, wrong = 0, 0
    while done < count:
        for text in session(chance.choice(texts), chance, 9):
            shown = mutated(text, chance) if chance.random() < 0.1 else text
            editor.edit("session.weft", shown)
            wanted = expected(editor, "session.weft")
            assert told(editor, "session.weft") == wanted, shown
            done += 1
            wrong += bool(wanted)
    return wrong


def test_what_is_said_at_once_are_the_errors_of_a_check():
    """Before the pause in which all is found out."""
    chance, wrong = random.Random(3), 0
    for style in ("evening", "spindles", "pipes"):
        documents = Documents()
        checker = Checker(documents, context_table(), DEFAULT_PERMISSIONS)
        for text in session(patch(style, 30, 2).text, chance, 6):
            for shown in (text, mutated(text, chance)):
                documents.update({"file:///a.weft": Document("file:///a.weft", shown)})
                (findings,) = checker.diagnose("file:///a.weft").findings.values()
                found = [(d.shown.code, d.shown.message, d.shown.range.start.line) for d in findings]
                try:
                    alone = analyse(Request(Source("/a.weft", shown), context_table(), probe=header_if_whole)).warnings
                except WeftError as failure:
                    alone = failure.diagnostics
                assert found == [(code, message, line) for _, code, message, line, _ in map(as_shown, alone)], shown
                wrong += bool(found)
    assert wrong > 10


@pytest.fixture
def collected_by_hand():
    """Garbage is looked for when it is asked for, and among new objects. Otherwise a build would have those looked
    through again that the tests before have left."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("collected_by_hand")
def test_what_earlier_texts_have_left_is_dropped_in_pauses(monkeypatch):
    monkeypatch.setattr("weft.runtime.compiling.kept._MOST_ANEW", 1000)
    monkeypatch.setattr("weft.runtime.compiling.kept._MOST_TIMES", 1)
    documents, made = Documents(), patch("evening", 30, 1)
    checker = Checker(documents, context_table(), DEFAULT_PERMISSIONS)
    uri, scopes = "file:///a.weft", []
    for turn, edit in enumerate(islice(typed(made.text), 61)):
        documents.update({uri: Document(uri, edit.text)})
        checker.diagnose(uri)
        assert (checker.facts(uri) is None) == (edit.kind == "mistake")
        if turn % 20 == 0:
            gc.collect()
            scopes.append(sum(isinstance(each, Scope) for each in gc.get_objects()))
    assert max(scopes) < 9 * scopes[0]


def test_warnings_that_take_a_moment_do_not_flicker():
    """What is found at once keeps those about lines that are the same."""
    def found(severity, line, message):
        place = types.Range(types.Position(line, 0), types.Position(line, 1))
        return Finding(types.Diagnostic(place, message, severity))

    late, gone = (found(types.DiagnosticSeverity.Warning, line, "slow") for line in (0, 1))
    at_once = found(types.DiagnosticSeverity.Warning, 1, "a fade")
    before, after = Document("a", "one\ntwo\n"), Document("a", "one\nthree\n")
    known = Diagnosis({"a": [late, gone]})
    assert _with_warnings(Diagnosis({"a": [at_once]}), after, before, known).findings == {"a": [at_once, late]}
    wrong = Diagnosis({"a": [found(types.DiagnosticSeverity.Error, 1, "no")]})
    assert _with_warnings(wrong, after, before, known) is wrong


def test_the_unsaved_text_of_an_included_file_counts(shared):
    (shared.folder / "lib.weft").write_text("spindle f(x) :: v { v = x }\n")
    main = '#include "lib.weft"\ndisplay(f(me@x))\n'
    shared.open("main.weft", main)
    assert shared.codes("main.weft") == []
    shared.open("lib.weft", "spindle g(x) :: v { v = x }\n")
    assert shared.codes("main.weft") == [("unknown-call", 1, 8)]
    shared.edit("lib.weft", "spindle f(x) :: v { v = y }\n")
    assert shared.codes("lib.weft") == [("unknown-strand", 0, 24)]
    shared.shut("lib.weft")
    assert shared.codes("main.weft") == []


def test_a_mistake_in_an_included_file_shows_there(shared):
    (shared.folder / "lib2.weft").write_text("spindle f(x) :: v { v = y }\n")
    shared.open("main2.weft", '#include "lib2.weft"\ndisplay(f(me@x))\n')
    assert shared.codes("main2.weft") == []
    assert shared.codes("lib2.weft") == [("unknown-strand", 0, 24)]
    (shared.folder / "lib2.weft").write_text("spindle f(x) :: v { v = x }\n")
    shared.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([]))
    assert shared.codes("lib2.weft") == []


def test_a_text_without_a_file(shared):
    shared.open("untitled:Untitled-1", "display(a)\n")
    assert shared.codes("untitled:Untitled-1") == [("unknown-strand", 0, 8)]


def test_files_beside_the_patch_need_the_permission_of_the_command(shared, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "lib2.weft"
    elsewhere.write_text("a = me@x\n")
    shared.open("a.weft", f'#include "{elsewhere}"\ndisplay(a)\n')
    assert ("not-allowed", 0, 9) in shared.codes("a.weft")
