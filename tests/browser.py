"""A headless Chromium for tests, driven by its DevTools protocol over two pipes, and a
server for the built book.
"""

import atexit
import fcntl
import gzip
import json
import os
import re
import select
import shutil
import subprocess
import tempfile
import time
from functools import cache
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

BOOK = Path(__file__).resolve().parents[1] / "book" / "_build" / "html"
PREFIX = "/annotated-transformer/"  # where the book lies on its server
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
# Sidebars have slid to their places, and colours have changed.
SETTLED = """
Promise.all(document.getAnimations().filter((each) =>
  each.timeline === document.timeline
    && isFinite(each.effect.getComputedTiming().endTime)
).map((each) => each.finished)).then(() => 0)
"""
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe"
).split()


class Chromium:
    """The one process whose windows all tests open; each answers under its own name."""

    def __init__(self) -> None:
        self.profile = tempfile.mkdtemp()
        self.number, self.waiting = 0, b""
        self.windows: dict[str, Browser] = {}
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
        atexit.register(self.close)

    def close(self) -> None:
        """End the process, and leave nothing of it."""
        self.process.kill()
        self.process.wait()
        for end in self.ends:
            os.close(end)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method: str, session: str, timeout: float, about: dict) -> Any:
        """The result of one command of the protocol, to a window or to the process."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": about}
        if session:
            message["sessionId"] = session
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
        window = self.windows.get(message.get("sessionId", ""))
        if window:
            window.note(message.get("method"), message.get("params", {}))
        return message


@cache
def chromium() -> Chromium:
    """The process, started when a test first needs it."""
    return Chromium()


class Browser:
    """A window of its own, with no cookies or storage from another, as a context
    manager.

    `requests` holds the addresses that its pages asked for, `received` the bytes that
    came over the line for them, and `errors` what went to the console as an error.
    """

    def __init__(self, width: int = 1280, height: int = 900):
        self.size, self.session, self.received = (width, height), "", 0
        self.loaded = False
        self.requests: list[str] = []
        self.errors: list[str] = []

    def __enter__(self) -> "Browser":
        self.process = chromium()
        self.context = self.call("Target.createBrowserContext")
        target = self.call("Target.createTarget", url="about:blank", **self.context)
        found = self.call("Target.attachToTarget", **target, flatten=True)
        self.session = found["sessionId"]
        self.process.windows[self.session] = self
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.resize(*self.size)
        return self

    def __exit__(self, *_: object) -> None:
        del self.process.windows[self.session]
        self.session = ""
        self.call("Target.disposeBrowserContext", **self.context)

    def resize(self, width: int, height: int) -> None:
        """Make the window this large, a telephone's if it is narrow."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )

    def call(self, method: str, timeout: float = 300, **about: Any) -> Any:
        """The result of one command of the protocol."""
        return self.process.call(method, self.session, timeout, about)

    def note(self, method: str | None, about: dict[str, Any]) -> None:
        """Keep what an event says of requests and errors."""
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif method == "Network.loadingFinished":
            self.received += int(about["encodedDataLength"])
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

    def settle(self) -> None:
        """Wait until nothing moves any more."""
        self.run(SETTLED)

    def press(self, key: str) -> None:
        """Press and release a key, such as Tab or ArrowRight."""
        codes = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowRight": 39}
        code = codes[key]
        about = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        text = {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **about, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def submit(self, text: str) -> None:
        """Type a text where the cursor is, press Enter and wait for the next page."""
        self.call("Input.insertText", text=text)
        self.loaded = False
        self.press("Enter")
        while not self.loaded:
            self.process.receive(time.monotonic() + 120)


class Served(SimpleHTTPRequestHandler):
    """The book as a web server sends it: texts compressed, connections kept."""

    protocol_version = "HTTP/1.1"

    def __init__(self, *arguments: Any):
        super().__init__(*arguments, directory=str(BOOK))

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        name = re.split("[?#]", self.path)[0].removeprefix(PREFIX.rstrip("/"))
        path = Path(self.translate_path(name))
        if not path.is_file():
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Length", str(len(as_sent(path))))
        if is_text(path):
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(as_sent(path))


def is_text(path: Path) -> bool:
    """Whether a server compresses a file."""
    return path.suffix in {".html", ".css", ".js", ".svg", ".json"}


@cache
def as_sent(path: Path) -> bytes:
    """A file as it goes over the line."""
    data = path.read_bytes()
    return gzip.compress(data, 6) if is_text(path) else data
