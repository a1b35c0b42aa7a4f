"""The screen stays on while a patch plays: an X server whose screen saver begins after a second, and a desktop of the
tests, on a bus of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.ends import tied
from tests.support.windows import on_x11, screen_saver
from weft.runtime.screens.awake import kept_awake

Eventually = Callable[..., None]


@on_x11
@pytest.mark.usefixtures("display")
def test_no_screen_saver_begins_on_a_plain_x_server(
    eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    with screen_saver(after=1) as saver:
        eventually(lambda: saver.is_on)

        def is_held_off() -> bool:
            saver.end()
            time.sleep(1.5)
            return not saver.is_on

        with kept_awake():
            eventually(is_held_off, seconds=30)  # once the server has been asked
        eventually(lambda: saver.is_on)


class Desktop(threading.Thread):
    """What a desktop answers to those who want the screen to stay on."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        from jeepney.bus_messages import message_bus
        from jeepney.io.blocking import open_dbus_connection

        self.calls: list[tuple[str, tuple[object, ...]]] = []
        self._connection = open_dbus_connection(address)
        self._connection.send_and_get_reply(message_bus.RequestName("org.freedesktop.ScreenSaver"))
        self.start()

    def run(self) -> None:
        from jeepney import HeaderFields, MessageType, new_method_return

        while True:
            try:
                message = self._connection.receive()
            except OSError:  # the bus has gone
                self._connection.close()
                return
            if message.header.message_type is not MessageType.method_call:
                continue
            name = message.header.fields[HeaderFields.member]
            answer = ("u", (len(self.calls) + 7,)) if name == "Inhibit" else (None, ())
            self._connection.send(new_method_return(message, *answer))
            self.calls.append((name, message.body))


@pytest.fixture
def desktop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desktop]:
    pytest.importorskip("jeepney")
    program = shutil.which("dbus-daemon")
    if program is None:
        pytest.fail("this test needs dbus-daemon: apt install dbus")
    command = [program, "--session", "--nofork", "--print-address=1", f"--address=unix:path={tmp_path / 'bus'}"]
    with subprocess.Popen(tied(command), stdout=subprocess.PIPE, text=True) as bus:
        assert bus.stdout is not None
        address = bus.stdout.readline().strip()
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
        monkeypatch.delenv("DISPLAY", raising=False)
        desktop = Desktop(address)
        yield desktop
        bus.terminate()
        desktop.join()


@pytest.mark.skipif(sys.platform != "linux", reason="desktops on D-Bus are those of Linux")
def test_a_desktop_is_asked_and_told_when_it_is_over(desktop: Desktop, eventually: Eventually) -> None:
    with kept_awake():
        eventually(lambda: [name for name, _ in desktop.calls] == ["Inhibit"], seconds=30)
    eventually(lambda: desktop.calls[1:] == [("UnInhibit", (7,))], seconds=30)


def test_nothing_that_is_missing_is_an_error(monkeypatch: pytest.MonkeyPatch, eventually: Eventually) -> None:
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
    monkeypatch.setenv("DISPLAY", ":9999")
    with kept_awake():
        pass
    eventually(lambda: "weft-awake" not in {each.name for each in threading.enumerate()}, seconds=30)
