"""Pixels that are pointed at while a patch plays, and what is said about them over the picture.

A process of its own answers. A thread starts it and waits for it, so that a frame only looks whether there is an
answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

from weft.backends.base import Env
from weft.child import Child
from weft.permissions import Permissions
from weft.runtime.compiling.worker import LoadResult
from weft.runtime.hands.clock import Moment
from weft.runtime.inspect.pixel_process import PIXEL_EXPLAINER, PixelAnswer, PixelQuestion
from weft.runtime.program.program import LoadedProgram
from weft.runtime.screens.screen import ExplainedPixel, Screen

# Seconds between two looks at a process that has not answered, and the processor time that an answer may take.
_GLANCE = 0.2
_PATIENCE = 30.0

_WAITING = ((("dim", "computing…"),),)


class PixelQuestions:
    """Asks about the pixels at which a user points on a screen, and shows the answers there."""

    def __init__(self, permissions: Permissions) -> None:
        self._permissions = permissions
        self._questions: SimpleQueue[PixelQuestion | None] = SimpleQueue()
        self._answers: SimpleQueue[tuple[PixelQuestion, PixelAnswer | str]] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._asked: PixelQuestion | None = None
        """The latest question, if its answer is to be shown."""
        self._is_shown = False
        self._child: Child | None = None

    def follow(self, screen: Screen, entered: LoadResult | None, env: Callable[[LoadedProgram], Env]) -> None:
        """Takes what is pointed at on the screen, and shows what has been answered. Once a frame. `env` gives the
        environment of the program that plays."""
        pointing = screen.take_pointing()
        if pointing is not None and not pointing.is_on:
            self.forget(screen)
        elif pointing is not None and entered is not None and entered.loaded is not None:
            now = env(entered.loaded)
            moment = Moment(now.tick, now.abstime, now.dt, dict(now.inputs))
            self._ask(PixelQuestion(
                entered.saved.name or entered.loaded.compiled.file, entered.saved.data, now.size, pointing.window,
                pointing.x, pointing.y, moment, self._permissions, pointing.columns, pointing.rows,
            ))  # fmt: skip
            self._show(screen, ExplainedPixel(pointing.window, pointing.x, pointing.y, _WAITING))
        if self._asked is not None:
            self._take_answer(screen)

    def _take_answer(self, screen: Screen) -> None:
        with suppress(Empty):
            while True:
                question, answer = self._answers.get_nowait()
                if question is not self._asked:
                    continue
                self._show(screen, _shown(question, answer))

    def _show(self, screen: Screen, pixel: ExplainedPixel | None) -> None:
        self._is_shown = pixel is not None
        screen.explain(pixel)

    def forget(self, screen: Screen) -> None:
        """Shows nothing any more, because another text plays, or because the user has had enough of it."""
        self._asked = None
        if self._is_shown:
            self._show(screen, None)

    def close(self) -> None:
        """Ends the process, and the thread that waits for it. May be called twice."""
        self._questions.put(None)
        child = self._child
        if child is not None:
            with suppress(OSError):
                child.kill()

    def _ask(self, question: PixelQuestion) -> None:
        self._asked = question
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="weft-why", daemon=True)
            self._thread.start()
        self._questions.put(question)

    # --- by the thread ---

    def _serve(self) -> None:
        """Has one question after another answered; of several that wait, the last."""
        while (question := self._questions.get()) is not None:
            while not self._questions.empty():
                latest = self._questions.get()
                if latest is None:
                    return
                question = latest
            self._answers.put((question, self._answer(question)))

    def _answer(self, question: PixelQuestion) -> PixelAnswer | str:
        try:
            if self._child is None or self._child.poll() is not None:
                self._child = Child(PIXEL_EXPLAINER)
            child = self._child
            began = child.spent
            child.connection.send(question)
            while not child.connection.poll(_GLANCE):
                if child.spent - began > _PATIENCE:
                    child.end()
                    return "this takes too long to compute"
            answer: PixelAnswer = child.connection.recv()
            return answer
        except (EOFError, OSError) as failure:
            if self._child is not None:
                self._child.end()
            return f"what computes this has ended ({failure or 'without a reason'})"


def _shown(question: PixelQuestion, answer: PixelAnswer | str) -> ExplainedPixel:
    """What is shown of an answer, or of the reason why there is none."""
    if isinstance(answer, str):
        return ExplainedPixel(question.window, question.x, question.y, ((("dim", answer),),))
    rows = tuple(tuple((str(word.role), word.text) for word in row) for row in answer.rows)
    return ExplainedPixel(question.window, answer.x, answer.y, rows)
