"""A headless Chromium that a test drives: Debian's package `chromium`, over pipes, without a driver or a network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """One page. Speaks the DevTools protocol: JSON messages, each ended by a zero byte."""

    def __init__(self, folder: Path):
        commands, self._out = os.pipe()
        self._in, answers = os.pipe()
        # The protocol is spoken over descriptors 3 and 4.
        shell = f'exec "$0" "$@" 3<&{commands} 4>&{answers}'
        options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--remote-debugging-pipe",
            "--window-size=1000,700",
            f"--user-data-dir={folder}",
            "about:blank",
        ]
        assert CHROMIUM is not None
        self._process = subprocess.Popen(
            ["bash", "-c", shell, CHROMIUM, *options], pass_fds=(commands, answers), stderr=subprocess.DEVNULL
        )
        os.close(commands)
        os.close(answers)
        self._pending = b""
        self._count = 0
        self._session: str | None = None
        self.problems: list[dict] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._out)
        os.close(self._in)
        self._process.terminate()
        self._process.wait(30)

    def ask(self, method: str, **parameters: object) -> dict:
        """Sends a command and waits for its answer."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return answer["result"]

    def _read(self) -> dict:
        while b"\0" not in self._pending:
            part = os.read(self._in, 1 << 16)
            assert part, "the browser has ended"
            self._pending += part
        text, self._pending = self._pending.split(b"\0", 1)
        message = json.loads(text)
        if message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.problems.append(message["params"])
        return message

    def open(self, page: Path) -> None:
        """Shows a file, scripts included."""
        self.ask("Page.navigate", url=page.resolve().as_uri())
        self.value("new Promise((done) => document.readyState === 'complete' ? done() : (onload = done))")

    def value(self, expression: str) -> object:
        """What an expression is in the page; promises are waited for."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def click(self, element: str) -> None:
        """Presses the mouse where a person would: on the middle of what an expression gives."""
        box = self.value(f"(({element}).getBoundingClientRect().toJSON())")
        assert isinstance(box, dict)
        at = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **at)

    def type(self, text: str) -> None:
        """Types into what has the focus."""
        self.ask("Input.insertText", text=text)
