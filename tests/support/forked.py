"""Processes forked from one that has imported all libraries, since imports are most of the cost of a start."""

import atexit
import io
import multiprocessing
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

LIBRARIES = [
    "google.protobuf.timestamp_pb2", "google.rpc.error_details_pb2", "grpc", "numpy", "pydantic", "quercus.client",
    "quercus.client.client", "quercus.files", "quercus.server.app", "rich.console", "rich.progress", "rich.table",
    "typer.main", "typer.rich_utils",
]  # fmt: skip
"""Without the command line itself: with its modules come consoles, which are as wide as the environment says."""
_forking = multiprocessing.get_context("forkserver")
_forking.set_forkserver_preload(LIBRARIES)
_STREAMS = (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_WRONLY), ("stderr", "w", os.O_WRONLY))


def _run(
    folder: Path, function: Callable[..., object], arguments: Any, environment: dict[str, str], cwd: str
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    for number, (name, mode, flags) in enumerate(_STREAMS):
        file = os.open(folder / name, flags)
        os.dup2(file, number)
        os.close(file)
        raw = io.FileIO(number, mode, closefd=False)
        buffered = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
        setattr(sys, name, io.TextIOWrapper(buffered, environment.get("PYTHONIOENCODING", "utf-8")))
    try:
        function(*arguments)
    finally:
        atexit._run_exitfuncs()  # a forked process would leave them out
        sys.stdout.flush()


class ForkedProcess:
    """A process of its own in this environment and folder; as `subprocess.Popen`.

    Parameters
    ----------
    function, arguments
        Runs there; both are pickled.
    environment
        Its environment variables.
    stdin
        What it reads.
    """

    def __init__(
        self,
        function: Callable[..., object],
        *arguments: object,
        environment: dict[str, str] | None = None,
        stdin: str = "",
    ) -> None:
        self._folder = folder = Path(tempfile.mkdtemp(prefix="quercus-process-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        (folder / "stdin").write_text(stdin)
        (folder / "stderr").touch()
        os.mkfifo(folder / "stdout")
        reading = os.open(folder / "stdout", os.O_RDONLY | os.O_NONBLOCK)  # does not wait for who writes
        os.set_blocking(reading, True)
        self.stdout = os.fdopen(reading)
        self._unread = b""  # by `readline`, behind the line before
        given = (folder, function, arguments, dict(environment or os.environ), str(Path.cwd()))
        self._process = _forking.Process(target=_run, args=given)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return the exit code, or ``None`` while it runs."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(
                ProcessLookupError
            ):  # it ended, and the fork server knows it before this process does
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float) -> int:
        """Wait for the end, and return the exit code; unread output is lost."""
        self._process.join(timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(str(self._process.name), timeout)
        self.stdout.close()
        return code

    def readline(self, timeout: float) -> str:
        """Return the next line that it prints; "" if it ends, or is silent for so long."""
        until = time.monotonic() + timeout
        while b"\n" not in self._unread:
            has_ended = self.poll() is not None  # its last output has arrived by now
            if select.select([self.stdout], [], [], 0.1)[0]:
                found = os.read(self.stdout.fileno(), 65_536)
                self._unread += found
                if not found:
                    break
            elif has_ended:
                break
            elif time.monotonic() > until:
                return ""
        line, end, self._unread = self._unread.partition(b"\n")
        return (line + end).decode()

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Wait for the end, and return standard output and standard error."""
        until = time.monotonic() + timeout
        late = threading.Timer(timeout, self.kill)
        late.start()
        try:
            first = self.readline(timeout)
            printed = first + self._unread.decode() + self.stdout.read() if first else ""
        finally:
            late.cancel()
        self.wait(timeout)
        if time.monotonic() > until:
            raise subprocess.TimeoutExpired(str(self._process.name), timeout)
        return printed, self.errors()

    def errors(self) -> str:
        """Return its standard error so far."""
        return (self._folder / "stderr").read_text()
