"""A server in a process of its own, and the files that tests push to it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from support import command_line
from support.forked import ForkedProcess

QUERCUS = str(Path(sys.executable).with_name("quercus"))
START_S = 60.0
STOP_S = 30.0

TABLE_T = """X,Y,class
a,e,x
a,e,s
a,e,x
a,e,x
b,e,s
b,e,s
b,e,s
b,e,s
c,e,s
c,e,s
c,e,s
c,e,s
a,d,x
a,d,x
a,d,x
a,d,x
b,d,x
c,d,o
c,d,o
c,d,s
c,d,o
"""
CONTOURS_T = """o,s,x
.8,.3,.3
.2,1,.7
.1,.1,1
.3,0,1
.7,1,.7
.5,1,0
.7,1,.3
1,1,1
0,1,0
0,1,0
0,1,0
.4,1,0
.2,.2,1
0,0,1
.3,0,1
0,0,1
.6,.6,1
1,0,0
1,.2,0
.5,.8,.4
.7,.3,0
"""


class Serving:
    """``quercus serve`` on a store of its own.

    Parameters
    ----------
    folder
        Where the store lies; a second server on it finds what the first one stored.
    port
        0: any free one.
    flags
        More flags of ``quercus serve``.
    stderr, before
        Where its log goes, and a command that runs it. With either of them it starts as a user starts it, else it is
        forked from a process that has imported the libraries.
    store
        URL of a store elsewhere.
    settings
        More settings, by environment variables. Where no tree is looked at, ``grower=False`` halves what a start costs.
    """

    def __init__(
        self,
        folder: Path,
        port: int = 0,
        *flags: str,
        stderr: IO[str] | int = subprocess.DEVNULL,
        before: Sequence[str] = (),
        store: str = "",
        **settings: object,
    ) -> None:
        self.store = store or f"sqlite:///{folder / 'quercus.db'}"
        flags = ("--store", self.store, "--port", str(port), *flags)
        environment = os.environ | {f"QUERCUS_{name.upper()}": str(value) for name, value in settings.items()}
        self.process: subprocess.Popen[str] | ForkedProcess
        if before or stderr != subprocess.DEVNULL:
            command = [*before, QUERCUS, "serve", *flags]
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment
            )
        else:
            self.process = ForkedProcess(command_line.run, "serve", *flags, environment=environment)
        self.address = self._wait_for_address()

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def _wait_for_address(self) -> str:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], START_S)
        line = self.process.stdout.readline() if ready else ""
        if not line.startswith("listening on "):
            self.kill()
            raise AssertionError(f"the server did not start: {line!r}")
        return line.removeprefix("listening on ").strip()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, and wait for the graceful end."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self._ended()

    def kill(self) -> None:
        """SIGKILL, as by a power cut."""
        self.process.kill()
        self._ended()

    def _ended(self) -> int:
        code = self.process.wait(timeout=STOP_S)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code
