"""Child processes for growth: they end with their parent, and return freed memory to the system."""

from __future__ import annotations

import argparse
import ctypes
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO, Final

from quercus.server.plugins import choose_inherited_plugins
from quercus.server.telemetry import logs
from quercus.storage import StorageError, Store

_log = logging.getLogger(__name__)

LOOK: Final = "look"
"""The line that makes a grower poll the store at once."""

PR_SET_PDEATHSIG: Final = 1  # <linux/prctl.h>
END_S: Final = 5.0
"""Longest time, in seconds, that a killed process takes to end."""


def private_output() -> BinaryIO:
    """Reserve standard output for answers to the parent; from now on, prints go to standard error."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return output


def end_with_parent(hear: Callable[[str], None]) -> None:
    """End this process when its standard input ends; on Linux, the kernel also ends it, even if it is suspended.

    Parameters
    ----------
    hear : called with each line of standard input, in a thread.
    """
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent ended before the request took effect
            os._exit(0)

    def watch_parent() -> None:
        for line in sys.stdin:
            hear(line.strip())
        os._exit(0)

    threading.Thread(target=watch_parent, name="quercus-parent", daemon=True).start()


def begin_child(program: str, niceness: int, hear: Callable[[str], None]) -> tuple[str, BinaryIO]:
    """Set up a child process that reads a store for the server; for `hear` see `end_with_parent`.

    Returns
    -------
    str, BinaryIO : the URL of the store, from the command line, and the stream for answers to the parent.
    """
    parser = argparse.ArgumentParser(prog=program)
    parser.add_argument("url")
    parser.add_argument("--log-level", default="info")
    parser.add_argument("--log-format", default="human")
    arguments = parser.parse_args()
    logs.set_up_logging(arguments.log_level, arguments.log_format)
    choose_inherited_plugins()
    end_with_parent(hear)
    output = private_output()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the server decides
    os.nice(niceness)
    return arguments.url, output


def open_store(url: str) -> Store:
    """Open the store of the server, which made it: a store made now would hide the one that is put back.

    If it is away, end this process, whose parent starts another later.
    """
    try:
        return Store.open(url, create=False)
    except StorageError as error:
        _log.error("the store cannot be opened: %s", error)
        sys.exit(1)


def write_answer(output: BinaryIO, said: Mapping[str, Any], data: bytes) -> None:
    """Write an answer: a line of JSON with the number of bytes that follow, and these bytes."""
    output.write(json.dumps({**said, "bytes": len(data)}).encode() + b"\n" + data)
    output.flush()


class ChildProcess(ABC):
    """A child process of the grower. A thread reads its output, so that one that hangs delays nobody.

    Parameters
    ----------
    command : command that starts the process.
    news : set when there is news of the process, such as its end.

    Attributes
    ----------
    has_ended : whether it has ended, or is no longer usable.
    """

    def __init__(self, command: Sequence[str], news: threading.Event) -> None:
        self.has_ended = False
        self._news = news
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
        self._reader = threading.Thread(target=self._read_output, name="quercus-child", daemon=True)
        self._reader.start()

    @abstractmethod
    def _read_output(self) -> None:
        """Read its output until it ends."""

    def send_line(self, line: str) -> None:
        """Write a line to the process's standard input; do nothing if it has ended."""
        with suppress(BrokenPipeError, ValueError):
            if self.process.stdin is not None:
                os.write(self.process.stdin.fileno(), f"{line}\n".encode())

    def join(self) -> None:
        """Wait until the process has ended."""
        self._reader.join(END_S)


M_TRIM_THRESHOLD: Final = -1  # numbers of <malloc.h>
M_MMAP_THRESHOLD: Final = -3
LARGE_BYTES: Final = 256 * 1024
TRIM_BYTES: Final = 1024 * 1024


def keep_small() -> bool:
    """Make the C library map each array of 256 KiB or more separately, so that freeing it returns its memory.

    By default, glibc raises that threshold to the size of freed arrays, up to 32 MiB. Arrays for one level of a tree,
    which live for milliseconds, then leave holes in a heap that cannot shrink: 54 MB of 117 after a million rows. The
    cost of mapping is the clearing of pages, a few per cent of the time of growth.

    Returns
    -------
    bool
        Whether the C library accepted both settings; only glibc does.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # musl has no mallopt, and Windows has no such library
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)) and bool(mallopt(M_TRIM_THRESHOLD, TRIM_BYTES))
