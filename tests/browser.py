"""A headless Chromium for tests, driven by its DevTools protocol over two pipes."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe"
).split()


class Browser:
    """One window, as a context manager.

    `requests` holds the addresses that its pages asked for, and `errors` what went to
    the console as an error.
    """

    def __init__(self, width: int = 1280, height: int = 900):
        self.size, self.number = (width, height), 0
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.waiting, self.session = b"", ""

    def __enter__(self) -> "Browser":
        self.profile = tempfile.mkdtemp()
        (ours_in, theirs_out), (theirs_in, ours_out) = os.pipe(), os.pipe()
        # Chromium reads commands from file 3 and writes answers to file 4; numbers from
        # 10 are out of the way of both.
        reads, writes = (
            fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs_in, theirs_out)
        )

        def hand_over() -> None:
            os.dup2(reads, 3)
            os.dup2(writes, 4)

        self.process = subprocess.Popen(
            [str(CHROMIUM), *FLAGS, f"--user-data-dir={self.profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=hand_over,
        )
        for end in (theirs_in, theirs_out, reads, writes):
            os.close(end)
        self.ends = ours_in, ours_out
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        found = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = found["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.resize(*self.size)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for end in self.ends:
            os.close(end)
        shutil.rmtree(self.profile, ignore_errors=True)

    def resize(self, width: int, height: int) -> None:
        """Make the window this large, a telephone's if it is narrow."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )

    def call(self, method: str, timeout: float = 300, **parameters: Any) -> Any:
        """The result of one command of the protocol."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.ends[1], json.dumps(message).encode() + b"\0")
        until = time.monotonic() + timeout
        while True:
            found = self.receive(until)
            if found.get("id") == self.number:
                assert "error" not in found, found["error"]
                return found["result"]

    def receive(self, until: float) -> dict[str, Any]:
        """The next message, an event or an answer."""
        while b"\0" not in self.waiting:
            left = until - time.monotonic()
            ready = select.select([self.ends[0]], [], [], max(0, left))[0]
            if not ready:
                raise TimeoutError("the browser doesn't answer")
            data = os.read(self.ends[0], 1 << 20)
            assert data, "the browser has ended"
            self.waiting += data
        text, self.waiting = self.waiting.split(b"\0", 1)
        message = json.loads(text)
        self.note(message.get("method"), message.get("params", {}))
        return message

    def note(self, method: str | None, about: dict[str, Any]) -> None:
        """Keep what an event says of requests and errors."""
        if method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(about["exceptionDetails"])[:2000])
        elif method == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.errors.append(about["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and about["type"] == "error":
            self.errors.append(json.dumps(about["args"])[:2000])

    def open(self, url: str) -> None:
        """Go to a page and wait until it has loaded."""
        self.call("Page.navigate", url=url)
        self.wait(f"location.href === {json.dumps(url)}")
        self.wait("document.readyState === 'complete'")

    def run(self, expression: str, timeout: float = 300) -> Any:
        """The value of a piece of JavaScript, or what its promise comes to."""
        found = self.call(
            "Runtime.evaluate",
            timeout,
            expression=expression,
            awaitPromise=True,
            returnByValue=True,
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, condition: str, timeout: float = 120) -> None:
        """Wait until a piece of JavaScript is true."""
        until = time.monotonic() + timeout
        while not self.run(condition):
            if time.monotonic() > until:
                raise TimeoutError(condition)
            time.sleep(0.05)

    def press(self, key: str) -> None:
        """Press and release a key, such as Tab or ArrowRight."""
        codes = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowRight": 39}
        code = codes[key]
        about = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        text = {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **about, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def picture(self, path: str) -> None:
        """Write what the window shows as a PNG."""
        from base64 import b64decode

        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        with open(path, "wb") as file:
            file.write(b64decode(data))
