"""Starts, watches and always ends the processes of the demo.

Each runs in a session of its own, so that Ctrl-C reaches only the demo, which then ends them in order. Each ends when
the pipe to its standard input breaks, so that even a killed demo leaves none behind.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

TERMINATE_S = 15.0
"""Seconds that a process may take to end when asked to."""
LAST_WORDS_S = 2.0
"""Seconds to listen to a process that has ended: its own children may still hold its output."""
LOG_TAIL_LINES = 12


class DemoFailure(Exception):  # noqa: N818  (how a demo ends)
    """A failure of the demo; its text names the log."""


class ManagedProcess:
    """One process; its output, line by line, goes to a log and to a listener.

    Parameters
    ----------
    name : name of the process for people.
    arguments : of `quercus.cli.demo.parts`.
    log : file for its output and its errors.
    listener : called with each line of the process's standard output, in a thread.
    changed : set when it prints a line, and when it ends.
    may_end : True if the process may end before the demo.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        log: Path,
        *,
        listener: Callable[[str], None],
        changed: threading.Event,
        may_end: bool,
    ) -> None:
        self.name, self.log, self.may_end = name, log, may_end
        self._listener, self._changed = listener, changed
        log.unlink(missing_ok=True)
        # without the settings for the user's own servers, and without a proxy for loopback
        kept = {each: value for each, value in os.environ.items() if not each.startswith("QUERCUS_")}
        with log.open(
            "ab"
        ) as errors:  # append mode: its standard error and the lines read below share the file
            self.process = subprocess.Popen(  # noqa: S603  (our own modules, and no shell)
                [sys.executable, "-m", "quercus.cli.demo.parts", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
                errors="replace",
                env=kept | {"PYTHONUNBUFFERED": "1", "NO_COLOR": "1", "no_grpc_proxy": "127.0.0.1"},
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read_lines, name=f"quercus-demo-{name}", daemon=True)
        self._reader.start()

    def _read_lines(self) -> None:
        with self.log.open("a", encoding="utf-8") as log:
            for line in self.process.stdout or ():
                log.write(line)
                log.flush()
                self._listener(line.rstrip("\n"))
                self._changed.set()
        self.process.wait()
        self._changed.set()

    @property
    def exit_code(self) -> int | None:
        """Exit code; None while it runs or while its last lines are not read yet."""
        return None if self._reader.is_alive() else self.process.returncode

    def send_line(self, line: str) -> None:
        """Write a line to its standard input; if it is gone, `check` finds that by its exit code."""
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.write(line + "\n")
                self.process.stdin.flush()

    def terminate(self) -> None:
        """Ask it to end."""
        self.may_end = True
        if self.process.poll() is None:
            self.process.terminate()

    def join(self, timeout_s: float) -> bool:
        """Wait until it has ended and its output is read; return whether it has."""
        self._reader.join(timeout_s)
        return self.exit_code is not None

    def check(self) -> None:
        """Raise ``DemoFailure`` when it ended with an error, or ended when it should not."""
        code = self.process.poll()
        if code is None or (code == 0 and self.may_end):
            return
        self.join(LAST_WORDS_S)
        how = "ended too early" if code == 0 else f"failed with exit code {code}"
        raise self.make_failure(how if code >= 0 else f"was killed by signal {-code}")

    def make_failure(self, what: str) -> DemoFailure:
        """Return the failure of this process, with the end of its log."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:]
        tail = "".join(f"\n    {line}" for line in lines) or "\n    (it wrote nothing)"
        return DemoFailure(f"{self.name} {what}; its log, {self.log}, ends:{tail}")


class ProcessGroup:
    """All processes of a demo; leaving the block ends those that still run.

    Parameters
    ----------
    folder : folder of their logs.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._parts: list[ManagedProcess] = []
        self._changed = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            for part in self._parts:
                part.terminate()
            until = time.monotonic() + TERMINATE_S
            for part in self._parts:
                part.join(max(0.0, until - time.monotonic()))
        finally:  # also when Ctrl-C comes a second time
            for part in self._parts:
                if part.process.poll() is None:
                    part.process.kill()
                part.process.wait()

    def start(
        self,
        name: str,
        *arguments: str,
        listener: Callable[[str], None] = lambda _: None,
        may_end: bool = True,
    ) -> ManagedProcess:
        """Start a part of the demo."""
        log = self._folder / f"{name}.log"
        part = ManagedProcess(name, arguments, log, listener=listener, changed=self._changed, may_end=may_end)
        self._parts.append(part)
        return part

    def check(self) -> None:
        """Raise ``DemoFailure`` for the first process that failed; the server comes before those that depend on it."""
        for part in self._parts:
            part.check()

    def wait(self, done: Callable[[], bool], until: float, slice_s: float = 0.2) -> bool:
        """Return whether ``done``; if not, wait for something to happen, at most ``slice_s``.

        Raises
        ------
        DemoFailure
            When a process failed, or ``until`` (of ``time.monotonic``) has passed.
        """
        self.check()
        if done():
            return True
        if time.monotonic() > until:
            raise DemoFailure(f"the demo ran out of time; the logs of its processes are in {self._folder}")
        self._changed.wait(slice_s)
        self._changed.clear()
        return False

    def end_process(self, part: ManagedProcess, until: float) -> None:
        """Ask one process to end and wait for it, up to ``until`` (of ``time.monotonic``).

        Raises
        ------
        DemoFailure
            When it does not, or ends with an error.
        """
        part.terminate()
        if not part.join(max(0.0, until - time.monotonic())):
            raise part.make_failure("did not end when it was asked to")
        part.check()
