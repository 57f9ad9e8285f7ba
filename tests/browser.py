"""A real browser without a window, spoken to over a pipe in Chromium's DevTools protocol."""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import sys

# A browser reads from 3 and writes to 4; either may be where the other pipe happens to be.
_LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for end, place in zip(ends, (3, 4)):
    os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])
"""

NAMES = ("chromium", "chromium-browser", "google-chrome")


def found():
    """The browser on this machine, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """A page in a browser: asks for expressions, and remembers whatever went wrong."""

    def __init__(self, sent, received):
        self._sent, self._received = sent, received
        self._count, self._rest, self._session = 0, b"", None
        self.errors = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page", "Network"):
            self.call(f"{domain}.enable")
        self.requests = []

    def call(self, method, **parameters):
        """The result of a method; messages that come before it are looked at."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._sent, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self):
        while b"\0" not in self._rest:
            part = os.read(self._received, 1 << 20)
            assert part, "the browser has ended"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        answer = json.loads(message)
        told = answer.get("params", {})
        match answer.get("method"):
            case "Runtime.exceptionThrown":
                self.errors.append(told["exceptionDetails"])
            case "Log.entryAdded" if told["entry"]["level"] in ("error", "warning"):
                self.errors.append(told["entry"]["text"])
            case "Runtime.consoleAPICalled" if told["type"] in ("error", "warning", "assert"):
                self.errors.append(told["args"])
            case "Network.requestWillBeSent":
                self.requests.append(told["request"]["url"])
        return answer

    def open(self, path):
        """Loads a file and waits until it says that it is ready."""
        self.call("Page.navigate", url=f"file://{path}")
        self.ask(
            "new Promise((done) => { const look = () => document.body && document.body.dataset.ready "
            "|| document.querySelector('[role=alert]') ? done(1) : setTimeout(look, 20); look(); })"
        )

    def ask(self, expression):
        """The value of an expression, awaited."""
        given = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        answer = self.call("Runtime.evaluate", **given)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key):
        """A key, pressed and let go."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=key if len(key) == 1 else "")

    def resize(self, width, height, scheme="light"):
        """Another size of the window, and another wish of its user."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        wish = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=wish)

    def picture(self):
        """The whole page as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"])


@contextlib.contextmanager
def opened(profile):
    """A page of a new browser, whose profile is the folder `profile`."""
    theirs_in, sent = os.pipe()
    received, theirs_out = os.pipe()
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            _LAUNCH,
            str(theirs_in),
            str(theirs_out),
            found(),
            *flags,
            f"--user-data-dir={profile}",
        ],
        pass_fds=(theirs_in, theirs_out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Page(sent, received)
    finally:
        process.terminate()
        process.wait()
        os.close(sent)
        os.close(received)
