"""A real browser without a window: Chromium, driven over two pipes by its own protocol.

    with Browser(find_browser(), folder) as browser:
        page = browser.open(path, width=1200, dark=True)
        page.requests       # what it asked for, the page itself included
        page.complaints     # errors on its console, exceptions, what its policy forbids
        page.value("document.title")
        page.picture(folder / "page.png")

Pipes need no port and no library. Each page has a profile of its own that goes with the browser.

Source: Chrome DevTools Protocol; `--remote-debugging-pipe`
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
TIMEOUT_S = 60.0
_SWITCHES = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--hide-scrollbars",
)


_ON_3_AND_4 = """\
import fcntl, os, sys
ours = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
for number, descriptor in zip((3, 4), ours):
    os.dup2(descriptor, number)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Chromium reads commands from 3 and writes answers to 4."""


class BrowserMissing(Exception):
    """This machine has no browser that can be driven."""

    def __init__(self) -> None:
        super().__init__(f"none of {', '.join(NAMES)} is installed")


class BrowserFailed(Exception):
    """The browser ended, or did not answer."""


def find_browser() -> Path:
    """Find a Chromium.

    Raises:
        BrowserMissing: there is none.
    """
    for name in NAMES:
        if path := shutil.which(name):
            return Path(path)
    raise BrowserMissing


class Browser:
    """One browser process.

    Args:
        program: as `find_browser` gives it.
        folder: for its profile and its log.
    """

    def __init__(self, program: Path, folder: Path) -> None:
        self._program = program
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._number = 0
        self._unread = b""

    def __enter__(self) -> Self:
        their_input, self._output = os.pipe()
        self._input, their_output = os.pipe()
        command = [str(self._program), *_SWITCHES, f"--user-data-dir={self._folder / 'profile'}"]
        if os.geteuid() == 0:
            command.append("--no-sandbox")
        with (self._folder / "browser.log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _ON_3_AND_4, str(their_input), str(their_output), *command],
                pass_fds=(their_input, their_output),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        os.close(their_input)
        os.close(their_output)
        return self

    def __exit__(self, *_error: object) -> None:
        assert self._process is not None
        with suppress(BrowserFailed, OSError):
            self.command("Browser.close")
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._input)
        os.close(self._output)

    def open(self, path: Path, *, width: int = 1200, height: int = 900, dark: bool = False) -> Page:
        """Open a file in a tab of its own and wait until it is loaded."""
        target = self.command("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.command("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Network", "Runtime", "Log"):
            page.command(f"{domain}.enable")
        page.command("Performance.enable", {"timeDomain": "threadTicks"})  # CPU time
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.command("Emulation.setEmulatedMedia", {"features": [feature]})
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        page.command("Emulation.setDeviceMetricsOverride", metrics)
        page.command("Page.navigate", {"url": path.as_uri()})
        page.wait_for("Page.loadEventFired")
        return page

    def command(self, method: str, parameters: Mapping[str, Any] | None = None, page: Page | None = None) -> Any:
        """Give a command and return its result; what happens meanwhile is noted by `page`."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": dict(parameters or {})}
        if page is not None:
            message["sessionId"] = page.session
        os.write(self._output, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.next_message()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserFailed(f"{method}: {answer['error']}")
                return answer["result"]
            if page is not None and answer.get("sessionId") == page.session:
                page.note(answer)

    def next_message(self) -> dict[str, Any]:
        """Read one message."""
        until = time.monotonic() + TIMEOUT_S
        while b"\0" not in self._unread:
            readable, _, _ = select.select([self._input], [], [], max(until - time.monotonic(), 0))
            data = os.read(self._input, 1 << 20) if readable else b""
            if not data:
                log = (self._folder / "browser.log").read_text(errors="replace")[-2000:]
                raise BrowserFailed(f"{'it ended' if readable else 'no answer'}; its log ends with: {log}")
            self._unread += data
        text, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message


class Page:
    """One page; made by `Browser.open`."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self.session = session
        self.requests: list[str] = []
        """The addresses of everything it asked for."""
        self.complaints: list[str] = []
        """Errors of the page."""
        self._seen: list[str] = []

    def command(self, method: str, parameters: Mapping[str, Any] | None = None) -> Any:
        """Give a command about this page."""
        return self._browser.command(method, parameters, self)

    def wait_for(self, event: str) -> None:
        """Wait until something has happened."""
        while event not in self._seen:
            message = self._browser.next_message()
            if message.get("sessionId") == self.session:
                self.note(message)

    def value(self, expression: str) -> Any:
        """Evaluate an expression, and wait for it if it is a promise."""
        given = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        result = self.command("Runtime.evaluate", given)
        if "exceptionDetails" in result:
            raise BrowserFailed(f"{expression}: {result['exceptionDetails']['exception'].get('description')}")
        return result["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key and let it go: "Tab" or "Enter"."""
        code, text = {"Tab": (9, ""), "Enter": (13, "\r")}[key]
        given = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.command("Input.dispatchKeyEvent", {"type": "keyDown", "text": text, **given})
        self.command("Input.dispatchKeyEvent", {"type": "keyUp", **given})

    def turn(self, *, dark: bool) -> None:
        """Have the reader turn to dark, or to light."""
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", {"features": [feature]})

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """Write what it looks like as PNG; `whole`: beyond the window as well."""
        made = self.command("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole})
        path.write_bytes(base64.b64decode(made["data"]))

    def note(self, message: Mapping[str, Any]) -> None:
        """Note what has happened."""
        method, told = message.get("method", ""), message.get("params", {})
        self._seen.append(method)
        match method:
            case "Network.requestWillBeSent":
                self.requests.append(told["request"]["url"])
            case "Runtime.exceptionThrown":
                self.complaints.append(str(told["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if told["type"] in {"error", "warning", "assert"}:
                self.complaints.append(str(told["args"]))
            case "Log.entryAdded" if told["entry"]["level"] in {"error", "warning"}:
                self.complaints.append(told["entry"]["text"])
