"""Editors that are closed at the end of a test."""

from __future__ import annotations

import pytest

from tests.support.editor import PROFILES, Editor


@pytest.fixture
def editor(tmp_path):
    made = Editor(tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One editor for all tests of a file."""
    made = Editor(tmp_path_factory.mktemp("shared"))
    yield made
    made.close()


@pytest.fixture(scope="module", params=PROFILES)
def any_editor(request, tmp_path_factory):
    """An editor with the profile of each of those that are known."""
    made = Editor(tmp_path_factory.mktemp(request.param), request.param)
    yield made
    made.close()
