"""Questions about a text that has changed since are answered at once, and wait for nothing."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcContentModified, JsonRpcException, JsonRpcRequestCancelled

TEXT = "speed = 2\nslow = sin(me@time * speed)\ndisplay(slow)\n"


@pytest.fixture
def stopped(shared):
    """An editor with a text; nothing that it asks about it is answered until other processes take the place of those
    that stand still."""
    shared.open("a.weft", TEXT)
    assert shared.codes("a.weft") == []
    assert help_about(shared) is not None
    for number in shared.analysts:
        os.kill(number, signal.SIGSTOP)
    yield shared
    shared.shut("a.weft")


def help_about(editor):
    asked = editor.where(types.HoverParams, "a.weft", "me@time * sp‸eed")
    return editor.now(editor.client.text_document_hover_async(asked))


def completion(editor, marked):
    return editor.client.text_document_completion_async(editor.where(types.CompletionParams, "a.weft", marked))


def begun(editor, *questions):
    """Questions that are sent, and not waited for."""
    async def sent():
        found = [asyncio.ensure_future(each) for each in questions]
        await asyncio.sleep(0)
        return found

    return editor.now(sent())


def test_a_question_about_a_text_that_has_changed_is_refused(stopped):
    text, client = stopped.document("a.weft"), stopped.client
    asked = begun(
        stopped, client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(text)),
        client.text_document_formatting_async(types.DocumentFormattingParams(text, types.FormattingOptions(2, True))),
        client.text_document_hover_async(stopped.where(types.HoverParams, "a.weft", "slow = s‸in")),
    )  # fmt: skip
    stopped.edit("a.weft", f"// more\n{TEXT}")
    for each in asked:
        with pytest.raises(JsonRpcException) as refused:
            stopped.now(each)
        assert refused.value.code == JsonRpcContentModified.CODE
    assert help_about(stopped) is not None


def test_completion_is_refused_once_it_is_asked_again(stopped):
    """While nothing else is asked, what was asked about an earlier text is still of use."""
    first, second = begun(stopped, completion(stopped, "display(s‸l"), completion(stopped, "display(sl‸o"))
    stopped.edit("a.weft", TEXT.replace("display(slow)", "display(slow + sp)"))
    (third,) = begun(stopped, completion(stopped, "slow + s‸p"))
    for each in (first, second):
        with pytest.raises(JsonRpcException) as refused:
            stopped.now(each)
        assert refused.value.code == JsonRpcContentModified.CODE
    stopped.edit("a.weft", TEXT.replace("display(slow)", "display(slow + spe)"))
    assert "speed" in [item.label for item in stopped.now(third).items]


def test_a_question_that_the_editor_cancels_is_not_waited_for(stopped):
    (asked,) = begun(stopped, completion(stopped, "display(s‸l"))
    (number,) = stopped.client.protocol._request_futures
    stopped.client.cancel_request(types.CancelParams(number))
    with pytest.raises(JsonRpcException) as refused:
        stopped.now(asked)
    assert refused.value.code == JsonRpcRequestCancelled.CODE
    assert "slow" in [item.label for item in stopped.now(completion(stopped, "display(s‸l")).items]


def test_about_a_text_that_is_not_open_there_is_nothing_to_say(shared):
    shared.open("b.weft", TEXT)
    at, texts = shared.where(types.HoverParams, "b.weft", "me@time * sp‸eed"), shared.document("b.weft")
    shared.shut("b.weft")
    shared.client.log_messages.clear()
    assert shared.now(shared.client.text_document_hover_async(at)) is None
    tokens = shared.now(shared.client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(texts)))
    assert list(tokens.data) == []
    assert [message.message for message in shared.client.log_messages] == []
