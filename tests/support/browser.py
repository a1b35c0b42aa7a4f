"""Real browsers: Chromium without a window, which is told what to do through a pipe (its DevTools protocol), and
Firefox on a display (its Marionette protocol)."""

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((path for name in _NAMES if (path := shutil.which(name)) is not None), None)

# No sandbox, since tests may run as root; the card is a program, and nothing is fetched.
_FLAGS = (
    "--headless=new", "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    "--remote-debugging-pipe", "--mute-audio",
    "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
)  # fmt: skip


# Sound begins by itself.
_AT_ONCE = "--autoplay-policy=no-user-gesture-required"


class Browser:
    """A browser with one tab."""

    def __init__(self, profile: str, wants_gesture: bool = False) -> None:
        """If it `wants_gesture`, sound does not begin by itself."""
        assert CHROMIUM is not None
        to_read, write = os.pipe()
        self._read, to_write = os.pipe()
        # A long command is written whole, even if a signal comes while it is.
        self._commands = os.fdopen(write, "wb")
        # The browser reads commands from descriptor 3, and writes answers to 4.
        begin = (
            "import fcntl, os, sys; "
            "ends = [fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3]]; "
            "os.dup2(ends[0], 3); os.dup2(ends[1], 4); os.execv(sys.argv[3], sys.argv[3:])"
        )
        command = [sys.executable, "-c", begin, str(to_read), str(to_write), CHROMIUM, *_FLAGS]
        self.process = subprocess.Popen(
            [*command, *(() if wants_gesture else (_AT_ONCE,)), f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_read)
        os.close(to_write)
        self._left = b""
        self._count = 0
        self._session = ""
        self._loaded = False
        self._script: str | None = None
        self.said: list[str] = []
        """What the page has written to its console."""
        targets = self._ask("Target.getTargets")["targetInfos"]
        page = next(each["targetId"] for each in targets if each["type"] == "page")
        self._session = self._ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        self._ask("Page.enable")
        self._ask("Runtime.enable")

    def open(self, address: str) -> None:
        """Opens an address, and waits until it is loaded."""
        self.said.clear()
        self._loaded = False
        self._ask("Page.navigate", url=address)
        while not self._loaded:
            self._note(self._next())

    def before_pages(self, script: str | None) -> None:
        """Has each page begin with this script; None: with none."""
        if self._script is not None:
            self._ask("Page.removeScriptToEvaluateOnNewDocument", identifier=self._script)
        found = self._ask("Page.addScriptToEvaluateOnNewDocument", source=script) if script is not None else {}
        self._script = found.get("identifier")

    def title(self, ends: str, seconds: float = 120.0) -> str:
        """The title of the page, as soon as it begins with this."""
        return str(self.until(f"document.title.startsWith({json.dumps(ends)}) && document.title", seconds))

    def until(self, condition: str, seconds: float = 120.0) -> Any:
        """The value of an expression, as soon as it is true."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            found = self.value(condition)
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError(f"{condition} did not become true; title: {self.value('document.title')}; {self.said}")

    def value(self, expression: str) -> Any:
        """The value of an expression in the page; waits for a promise."""
        found = self._ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise AssertionError(found["exceptionDetails"]["exception"].get("description", found))
        return found["result"].get("value")

    def press(self, code: str, key: str) -> None:
        """Presses a key and releases it."""
        for kind in ("keyDown", "keyUp"):
            self._ask("Input.dispatchKeyEvent", type=kind, code=code, key=key)

    def pointer(self, kind: str, x: float, y: float) -> None:
        """A move of the mouse (`mouseMoved`), or its left button (`mousePressed`, `mouseReleased`)."""
        self._ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def size(self, width: int, height: int) -> None:
        """Sets the size of the window's inside."""
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def reduce_motion(self, reduced: bool) -> None:
        """Says whether the visitor's system asks for less motion."""
        value = "reduce" if reduced else "no-preference"
        self._ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": value}])

    def screenshot(self, path: Path) -> None:
        """What the window shows, as a PNG."""
        path.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot", format="png")["data"]))

    def close(self) -> None:
        """Ends the browser."""
        if self.process.poll() is None:
            self._session = ""
            try:
                self._ask("Browser.close")
                self.process.wait(10)
            except (OSError, AssertionError, subprocess.TimeoutExpired):
                self.process.kill()
                self.process.wait()
        self._commands.close()
        os.close(self._read)

    def _ask(self, method: str, **params: Any) -> Any:
        self._count += 1
        session = {"sessionId": self._session} if self._session else {}
        command = {"id": self._count, "method": method, "params": params, **session}
        self._commands.write(json.dumps(command).encode() + b"\0")
        self._commands.flush()
        while True:
            answer = self._next()
            if answer.get("id") == self._count:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self._note(answer)

    def _note(self, event: Any) -> None:
        match event.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Runtime.consoleAPICalled":
                words = (each.get("value", each.get("description")) for each in event["params"]["args"])
                self.said.append(" ".join(map(str, words)))
            case "Runtime.exceptionThrown":
                details = event["params"]["exceptionDetails"]
                self.said.append(details.get("exception", {}).get("description", details["text"]))

    def _next(self) -> Any:
        while b"\0" not in self._left:
            part = os.read(self._read, 1 << 20)
            assert part, "the browser has ended"
            self._left += part
        message, _, self._left = self._left.partition(b"\0")
        return json.loads(message)


@contextmanager
def chromium(wants_gesture: bool = False) -> Iterator[Browser]:
    """A browser with a profile of its own, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="weft-browser-", ignore_cleanup_errors=True) as profile:
        browser = Browser(profile, wants_gesture)
        try:
            yield browser
        finally:
            browser.close()


FIREFOX = next((path for name in ("firefox-esr", "firefox") if (path := shutil.which(name)) is not None), None)

# A software renderer counts as a card, sound begins at once, and nothing is fetched.
_PREFERENCES = """\
user_pref("marionette.port", 0);
user_pref("webgl.force-enabled", true);
user_pref("media.autoplay.default", 0);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("app.update.enabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
"""


class Firefox:
    """Firefox in a window on the display that there is, told what to do by its Marionette protocol."""

    def __init__(self, profile: Path) -> None:
        assert FIREFOX is not None
        (profile / "user.js").write_text(_PREFERENCES)
        self.process = subprocess.Popen(
            [FIREFOX, "--marionette", "--no-remote", "--profile", str(profile)],
            env={**os.environ, "LIBGL_ALWAYS_SOFTWARE": "1"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._count = 0
        self._socket = socket.create_connection(("127.0.0.1", self._port(profile)))
        self._file = self._socket.makefile("rb")
        self._next()
        self._ask("WebDriver:NewSession", capabilities={})

    def _port(self, profile: Path) -> int:
        """The port that it has written to its profile."""
        file, limit = profile / "MarionetteActivePort", time.monotonic() + 60
        while not (file.exists() and file.read_text()):
            assert self.process.poll() is None, "Firefox has ended"
            assert time.monotonic() < limit, "Firefox does not begin"
            time.sleep(0.05)
        return int(file.read_text())

    def open(self, address: str) -> None:
        """Opens an address, and waits until it is loaded."""
        self._ask("WebDriver:Navigate", url=address)

    def title(self, begin: str, seconds: float = 120.0) -> str:
        """The title of the page, as soon as it begins with this."""
        limit = time.monotonic() + seconds
        while not (found := str(self._ask("WebDriver:GetTitle")["value"])).startswith(begin):
            assert time.monotonic() < limit, found
            time.sleep(0.05)
        return found

    def until(self, condition: str, seconds: float = 60.0) -> Any:
        """The value of an expression in the page, as soon as it is true."""
        limit = time.monotonic() + seconds
        script = f"const {{ weft }} = window.wrappedJSObject ?? window; return {condition}"
        while not (found := self._ask("WebDriver:ExecuteScript", script=script, args=[])["value"]):
            assert time.monotonic() < limit, condition
            time.sleep(0.05)
        return found

    def close(self) -> None:
        """Ends the browser."""
        self._socket.close()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _ask(self, command: str, **params: Any) -> Any:
        self._count += 1
        message = json.dumps([0, self._count, command, params]).encode()
        self._socket.sendall(f"{len(message)}:".encode() + message)
        _, _, problem, found = self._next()
        assert problem is None, (command, problem)
        return found

    def _next(self) -> Any:
        length = b""
        while (digit := self._file.read(1)) != b":":
            assert digit, "Firefox has ended"
            length += digit
        return json.loads(self._file.read(int(length)))


@contextmanager
def firefox() -> Iterator[Firefox]:
    """Firefox with a profile of its own, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="weft-firefox-", ignore_cleanup_errors=True) as profile:
        browser = Firefox(Path(profile))
        try:
            yield browser
        finally:
            browser.close()
