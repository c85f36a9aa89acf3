"""A real mosquitto on a free loopback port, with a configuration of its own; it ends with the test."""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

START_S = 20.0


def mosquitto() -> str:
    """Return the program; where it is missing, skip, or fail in continuous integration."""
    found = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
    if found is not None:
        return found
    text = "mosquitto is missing: apt-get install -y --no-install-recommends mosquitto"
    if os.environ.get("CI") == "true":
        pytest.fail(text)
    pytest.skip(text)


class RunningBroker:
    """A broker that keeps sessions; ``url`` is where it listens."""

    def __init__(self, folder: Path) -> None:
        program = mosquitto()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"mqtt://127.0.0.1:{self.port}"
        config = folder / "mosquitto.conf"
        # without a user of its own it would look for one that may not be there
        user = "user root\n" if os.geteuid() == 0 else ""
        config.write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\n{user}persistence false\n"
            "max_queued_messages 0\nmax_inflight_messages 100\nlog_dest none\n"
        )
        self._process = subprocess.Popen([program, "-c", str(config)])
        until = time.monotonic() + START_S
        while not self._answers():
            assert self._process.poll() is None, "mosquitto ended"
            assert time.monotonic() < until, "mosquitto does not answer"

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=0.2).close()
        except OSError:
            return False
        return True

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(timeout=10)
