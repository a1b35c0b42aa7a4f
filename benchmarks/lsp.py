"""How soon an editor knows: from a change of the text to its diagnostics, and from a question to its answer.

    .venv/bin/python -m benchmarks.lsp [--statements 200] [--edits 60] [--seed 1] [--all] [--memory]

Each generated patch is opened in a server of its own and edited like a performer edits. Right after each change comes
what an editor asks while one types: completion, after `me@` and for a name. Help follows once the diagnostics are
there. Times are those of a client that does nothing else: they include both ways through the pipes, and JSON. On Linux,
the time of the processor that the server and its processes took meanwhile is said, too: other work does not change it.

With --memory, one patch is edited, and what the server and its processes keep is said every hundred edits.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.generated import STYLES, GeneratedPatch, edits, patch, percentile, worst

_URI = "file:///benchmark.weft"
_STYLES = ("evening", "pipes", "spindles", "shapes")

_DIAGNOSTICS, _FIELD, _NAME = "diagnostics", "completion of a field", "completion of a name"

# What VS Code says that it knows of completion, as far as the server asks.
_CAPABILITIES = {"textDocument": {"completion": {"completionList": {"itemDefaults": ["editRange"]}}}}

# The longest that is waited for an answer, in seconds.
_PATIENCE = 60.0


class Client:
    """Speaks to `weft lsp`, one message after another."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "weft", "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._number = 0
        self._version = -1
        """The last version of the text with diagnostics."""
        self.ask("initialize", {"processId": os.getpid(), "rootUri": None, "capabilities": _CAPABILITIES})
        self.tell("initialized", {})

    def close(self) -> None:
        self.ask("shutdown", None)
        self.tell("exit", None)
        self._server.communicate(timeout=_PATIENCE)

    def tell(self, method: str, parameters: object) -> None:
        self._send({"method": method, "params": parameters})

    def ask(self, method: str, parameters: object) -> Any:
        """The answer to a question."""
        number = self.begin(method, parameters)
        while True:
            message = self._receive()
            if message.get("id") == number and "method" not in message:
                return message

    def begin(self, method: str, parameters: object) -> int:
        """Asks a question whose answer is waited for later."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": parameters})
        return self._number

    def published(self, version: int) -> None:
        """Waits until there are diagnostics of a version of the text."""
        while self._version < version:
            self._receive()

    def _send(self, message: Mapping[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._server.stdin is not None
        self._server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._server.stdin.flush()

    def _receive(self) -> Mapping[str, Any]:
        assert self._server.stdout is not None
        length = 0
        while line := self._server.stdout.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name == b"Content-Length" else length
        found: Mapping[str, Any] = json.loads(self._server.stdout.read(length))
        if found.get("method") == "textDocument/publishDiagnostics":
            self._version = max(self._version, found["params"].get("version") or 0)
        return found


    def processes(self) -> list[int]:
        """The server and the processes that it has started."""
        found, left = [], [self._server.pid]
        while left:
            found.append(left.pop())
            with suppress(OSError):
                for task in Path(f"/proc/{found[-1]}/task").iterdir():
                    left += map(int, (task / "children").read_text().split())
        return found

    def processor(self) -> float:
        """The milliseconds of processor time that they have used; 0 where the system does not say."""
        spent = 0
        for process in self.processes():
            with suppress(OSError):
                for task in Path(f"/proc/{process}/task").iterdir():
                    spent += int((task / "schedstat").read_text().split()[0])
        return spent / 1e6

    def memory(self) -> list[float]:
        """The megabytes that each of them keeps by itself."""
        kept = []
        for process in self.processes():
            with suppress(OSError):
                lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
                kept.append(sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024)
        return kept


def watched(made: GeneratedPatch, count: int) -> None:
    """Says how the memory of the server grows over some edits."""
    client = Client()
    document = {"uri": _URI, "languageId": "weft", "version": 0, "text": made.text}
    client.tell("textDocument/didOpen", {"textDocument": document})
    for version, edit in enumerate(islice(edits(made.text), count), 1):
        changed = {"textDocument": {"uri": _URI, "version": version}, "contentChanges": [{"text": edit.text}]}
        client.tell("textDocument/didChange", changed)
        client.published(version)
        if version % 100 == 0:
            client.ask("weft/settled", None)
            kept = client.memory()
            print(f"{version:5} edits: {sum(kept):.1f} MB ({', '.join(f'{each:.1f}' for each in kept)})", flush=True)
    client.close()


def measured(made: GeneratedPatch, count: int) -> dict[str, list[float]]:
    """The milliseconds that each kind of answer took."""
    took: defaultdict[str, list[float]] = defaultdict(list)
    client = Client()
    document = {"uri": _URI, "languageId": "weft", "version": 0, "text": made.text}
    client.tell("textDocument/didOpen", {"textDocument": document})
    client.ask("weft/settled", None)
    for turn, edit in enumerate(islice(edits(made.text), count)):
        typed = {_DIAGNOSTICS: edit.text, _FIELD: f"{edit.text}\nx = me@", _NAME: f"{edit.text}\nx = s"}
        for version, (kind, text) in enumerate(typed.items(), 3 * turn + 1):
            began, spent = time.perf_counter(), client.processor()
            changed = {"textDocument": {"uri": _URI, "version": version}, "contentChanges": [{"text": text}]}
            client.tell("textDocument/didChange", changed)
            if kind != _DIAGNOSTICS:
                lines = text.split("\n")
                place = {"line": len(lines) - 1, "character": len(lines[-1])}
                client.ask("textDocument/completion", {"textDocument": {"uri": _URI}, "position": place})
                took[kind].append((time.perf_counter() - began) * 1e3)
                took[f"{kind} (processor)"].append(client.processor() - spent)
            client.published(version)
            if kind == _DIAGNOSTICS:
                took[kind].append((time.perf_counter() - began) * 1e3)
                took[f"{kind} (processor)"].append(client.processor() - spent)
        began = time.perf_counter()
        place = {"line": len(lines) // 2, "character": 1}
        client.ask("textDocument/hover", {"textDocument": {"uri": _URI}, "position": place})
        took["help"].append((time.perf_counter() - began) * 1e3)
        client.ask("weft/settled", None)
    client.close()
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--statements", type=int, default=200, help="of each patch")
    parser.add_argument("--edits", type=int, default=60, help="of each patch")
    parser.add_argument("--seed", type=int, default=1, help="of the generated patches")
    parser.add_argument("--all", action="store_true", help="patches of all styles")
    parser.add_argument("--memory", action="store_true", help="what the server keeps, over EDITS edits")
    asked = parser.parse_args()
    if asked.memory:
        watched(patch(_STYLES[0], asked.statements, asked.seed), asked.edits)
        return
    every: defaultdict[str, list[float]] = defaultdict(list)
    by_patch: defaultdict[str, dict[str, list[float]]] = defaultdict(dict)
    print(f"load of the machine before: {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    for style in STYLES if asked.all else _STYLES:
        made = patch(style, asked.statements, asked.seed)
        for kind, times in measured(made, asked.edits).items():
            every[kind] += times
            by_patch[kind][made.name] = times
    for kind, times in every.items():
        shares = ", ".join(f"p{round(share * 100)} {percentile(times, share):.1f}" for share in (0.5, 0.95, 0.99))
        print(f"{kind:34} {shares} ms of {len(times)}; {worst(by_patch[kind], 'patch')}")
    print(f"load of the machine after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
