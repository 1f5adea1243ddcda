"""A page in Chromium without a window, for the tests of the calculator: DevTools messages through two pipes, no further package."""

import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-pipe",
]


class Page:
    """One tab; `send` is a DevTools command, `run` evaluates JavaScript and awaits its promise."""

    def __init__(self, reader, writer):
        self.reader, self.writer, self.read, self.count, self.session, self.errors = reader, writer, b"", 0, None, []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.send("Runtime.enable")
        self.send("Page.enable")

    def send(self, method, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        message |= {"sessionId": self.session} if self.session else {}
        self.writer.write(json.dumps(message).encode() + b"\0")
        self.writer.flush()
        while True:
            reply = self._read()
            if reply.get("method") == "Runtime.exceptionThrown":
                self.errors.append(reply["params"]["exceptionDetails"])
            if reply.get("id") == self.count:
                assert "error" not in reply, reply
                return reply["result"]

    def _read(self):
        while b"\0" not in self.read:
            assert select.select([self.reader], [], [], 60)[0], "the browser is silent"
            more = self.reader.read(1 << 16)
            assert more, "the browser has ended"
            self.read += more
        message, _, self.read = self.read.partition(b"\0")
        return json.loads(message)

    def run(self, script):
        done = self.send("Runtime.evaluate", expression=f"(async () => {{{script}}})()", awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")


@contextmanager
def page():
    """Start the browser, with a profile of its own, and yield a page."""
    (to_read, to_write), (from_read, from_write) = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # the browser reads its file 3 and writes its file 4
        command = ["bash", "-c", f'exec "$0" "$@" 3<&{to_read} 4>&{from_write}', CHROMIUM, *FLAGS, f"--user-data-dir={folder}"]
        process = subprocess.Popen(
            command, pass_fds=(to_read, from_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(to_read)
        os.close(from_write)
        try:
            with open(from_read, "rb", buffering=0) as reader, open(to_write, "wb") as writer:
                yield Page(reader, writer)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
