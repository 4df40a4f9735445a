"""A page in headless Chromium, driven through the pipe of its DevTools protocol: what a person would do, without a driver."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_KEYS = {"ArrowDown": 40, "ArrowUp": 38, "Enter": 13, "Tab": 9, "Home": 36, "End": 35, "PageDown": 34, "Escape": 27}


class Chromium:
    """One tab.

    Args:
        executable: by default the first of its usual names on the path.

    Raises:
        FileNotFoundError: there is none.
    """

    def __init__(self, executable: str | None = None) -> None:
        found = executable or next(filter(None, map(shutil.which, _NAMES)), None)
        if found is None:
            raise FileNotFoundError("there is no Chromium on the path; install Debian's package chromium")
        self._folder = tempfile.mkdtemp(prefix="chromium-")
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        # the protocol is spoken on descriptors 3 and 4
        shell = f'exec 3<&{to_read} 4>&{to_write}; exec "$0" "$@"'
        switches = [
            "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
            "--disable-dev-shm-usage", f"--user-data-dir={self._folder}", "--remote-debugging-pipe", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            ["bash", "-c", shell, found, *switches], pass_fds=(to_read, to_write), stderr=subprocess.DEVNULL
        )
        os.close(to_read)
        os.close(to_write)
        self._buffer = b""
        self._number = 0
        self.problems: list[str] = []
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.do(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._send("Browser.close")
        self._process.wait(20)
        shutil.rmtree(self._folder, ignore_errors=True)

    def do(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Send a command to the tab and return its result."""
        return self._send(method, self._session, **arguments)

    def open(self, address: str) -> None:
        """Open an address and wait until the page is loaded."""
        self.do("Page.navigate", url="about:blank")
        self.do("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def eval(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.do("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']['exception'].get('description')}")
        return answer["result"].get("value")

    def wait(self, expression: str, seconds: float = 30.0) -> float:
        """Wait until an expression is true; return how many seconds it took."""
        begun = time.perf_counter()
        while not self.eval(expression):
            if time.perf_counter() - begun > seconds:
                raise TimeoutError(f"{expression} is not true after {seconds} s")
            time.sleep(0.02)
        return time.perf_counter() - begun

    def press(self, key: str) -> None:
        """Press a key where the focus is."""
        for kind in ("rawKeyDown", "keyUp"):
            self.do("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=_KEYS[key])

    def type(self, text: str) -> None:
        """Type text where the focus is."""
        self.do("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Click with the mouse in the middle of the first element that a CSS selector finds."""
        box = self.eval(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}});"
            " const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.do("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def choose(self, selector: str, label: str) -> None:
        """Choose the option of a select by its label."""
        self.eval(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            f" e.value = [...e.options].find((o) => o.label === {json.dumps(label)}).value;"
            " e.dispatchEvent(new Event('change', {bubbles: true})); })()"
        )

    def look(self, width: int, height: int, *, dark: bool = False, phone: bool = False) -> None:
        """Set the window's size and the colour scheme."""
        self.do("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.do("Emulation.setEmulatedMedia", features=[scheme])

    def screenshot(self, path: Path, selector: str | None = None) -> None:
        """Write a picture of an element, or of what is in the window."""
        arguments: dict[str, Any] = {}
        if selector is not None:
            x, y, width, height = self.eval(
                f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
                " return [b.x + scrollX, b.y + scrollY, b.width, b.height]; })()"
            )
            clip = {"x": x, "y": y, "width": width, "height": min(height, 8000), "scale": 1}
            arguments = {"clip": clip, "captureBeyondViewport": True}
        path.write_bytes(base64.b64decode(self.do("Page.captureScreenshot", **arguments)["data"]))

    def _send(self, method: str, session: str | None = None, **arguments: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": arguments}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        return self._answer(lambda one: one.get("id") == self._number)

    def _answer(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            message = self._next()
            if message.get("method") == "Runtime.exceptionThrown":
                self.problems.append(str(message["params"]["exceptionDetails"]))
            if message.get("method") == "Log.entryAdded" and message["params"]["entry"]["level"] in ("error", "warning"):
                self.problems.append(message["params"]["entry"]["text"])
            if wanted(message):
                if "error" in message:
                    raise RuntimeError(str(message["error"]))
                result: dict[str, Any] = message.get("result", {})
                return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            read = os.read(self._read, 2**20)
            if not read:
                raise RuntimeError("Chromium ended")
            self._buffer += read
        one, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(one)
        return message
