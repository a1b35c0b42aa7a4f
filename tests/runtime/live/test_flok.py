"""Several people play one patch: clients of a hub over WebSockets, and a bridge that feeds `weft run -` as the one of
Flok does."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tornado")

from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application
from tornado.websocket import WebSocketClientConnection, WebSocketHandler, websocket_connect

from tests.support.performance import PATIENCE

TEXT = "me<width> = 32\nme<height> = 18\n\nshade<v> = me@x\n\n\ndisplay(shade@v, 0.25, 0)\n\n"
INTO, OUT = "session:jam:target:weft:in", "session:jam:target:weft:out"


class Hub(WebSocketHandler):
    """Passes on what is published to who has subscribed to it."""

    def initialize(self, subscribers: defaultdict[str, list[Hub]]) -> None:
        self._subscribers = subscribers

    def on_message(self, message: str | bytes) -> None:
        said = json.loads(message)
        topic = said["payload"]["topic"]
        if said["type"] == "subscribe":
            self._subscribers[topic].append(self)
        else:
            for each in self._subscribers[topic]:
                each.write_message(json.dumps({"topic": topic, "payload": said["payload"]["msg"]}))

    def on_close(self) -> None:
        for each in self._subscribers.values():
            each[:] = [other for other in each if other is not self]


class Client:
    """Whoever is connected to the hub."""

    def __init__(self, connection: WebSocketClientConnection) -> None:
        self._connection = connection

    @classmethod
    async def connected(cls, address: str, topic: str) -> Client:
        made = cls(await websocket_connect(address))
        await made._say("subscribe", topic=topic)
        return made

    def close(self) -> None:
        self._connection.close()

    async def publish(self, topic: str, **message: object) -> None:
        await self._say("publish", topic=topic, msg=message)

    async def _say(self, kind: str, **payload: object) -> None:
        await self._connection.write_message(json.dumps({"type": kind, "payload": payload}))

    async def hear(self) -> dict[str, Any]:
        heard = await asyncio.wait_for(self._connection.read_message(), PATIENCE)
        assert heard is not None
        found: dict[str, Any] = json.loads(heard)["payload"]
        return found

    async def wait_for(self, event: str) -> dict[str, Any]:
        """The next event of the performance with this name."""
        while True:
            for line in (await self.hear())["body"]:
                found: dict[str, Any] = json.loads(line)
                if found["event"] == event:
                    return found


async def bridge(address: str, folder: Path) -> None:
    """Feeds a performance with what is evaluated, each text at once and without the white space around it, and
    publishes what it says, until it ends or the task is cancelled."""
    client = await Client.connected(address, INTO)
    with (folder / "errors").open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "weft", "run", "-", "--headless", "--no-audio", "--events", "-", cwd=folder,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=errors,
        )  # fmt: skip
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None

    async def publish() -> None:
        while line := await stdout.readline():
            await client.publish(OUT, target="weft", type="stdout", body=[line.decode().rstrip()])

    publishing = asyncio.create_task(publish())
    try:
        while True:
            stdin.write(f"{(await client.hear())['body'].strip()}\n\n".encode())
            await stdin.drain()
    finally:
        publishing.cancel()
        process.kill()
        await process.wait()
        client.close()


async def played_together(folder: Path) -> None:
    subscribers = defaultdict[str, list[Hub]](list)
    server = HTTPServer(Application([("/pubsub", Hub, {"subscribers": subscribers})]))
    listening, port = bind_unused_port()
    server.add_socket(listening)
    address = f"ws://127.0.0.1:{port}/pubsub"
    ann, bob = [await Client.connected(address, OUT) for _ in range(2)]
    bridging = asyncio.create_task(bridge(address, folder))
    try:
        for each in (ann, bob):
            await each.wait_for("started")
        await ann.publish(INTO, body=TEXT, userName="ann")
        first = await bob.wait_for("swap")
        await bob.publish(INTO, body=TEXT.replace("shade@v", "shad"), userName="bob")
        (mistake,) = (await ann.wait_for("error"))["diagnostics"]
        assert (mistake["line"], mistake["code"]) == (7, "unknown-strand")
        await bob.publish(INTO, body=TEXT.replace("0.25", "0.75"), userName="bob")
        swaps = [await ann.wait_for("swap"), await bob.wait_for("swap")]
        # She hears of her own text, too, but for what she has heard while she waited for the mistake.
        assert first["hash"] != swaps[1]["hash"]
        assert swaps[0]["hash"] == swaps[1]["hash"]
    finally:
        bridging.cancel()
        await asyncio.gather(bridging, return_exceptions=True)
        for each in (ann, bob):
            each.close()
        server.stop()
        await server.close_all_connections()


def test_two_people_play_one_patch(tmp_path: Path) -> None:
    asyncio.run(played_together(tmp_path))
