"""The processes of growth: they end with the one that started them, and return freed memory."""

from __future__ import annotations

import argparse
import ctypes
import json
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

LOOK: Final = "look"
"""The line that tells a grower to look at the store now."""

PR_SET_PDEATHSIG: Final = 1  # <linux/prctl.h>
END_S: Final = 5.0
"""Longest time, in seconds, that a killed process takes to end."""


def private_output() -> BinaryIO:
    """Take standard output for the parent alone; what anybody prints goes to standard error from now on."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return output


def end_with_parent(hear: Callable[[str], None]) -> None:
    """End this process when its standard input ends; on Linux the kernel ends it too, even when it is stopped.

    Parameters
    ----------
    hear : called with each line of standard input, in a thread.
    """
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the kernel knew
            os._exit(0)

    def watch_parent() -> None:
        for line in sys.stdin:
            hear(line.strip())
        os._exit(0)

    threading.Thread(target=watch_parent, name="quercus-parent", daemon=True).start()


def begin_child(program: str, niceness: int, hear: Callable[[str], None]) -> tuple[str, BinaryIO]:
    """Begin a process that reads a store for the server, see `end_with_parent` for `hear`.

    Returns
    -------
    str, BinaryIO : the URL of the store, of its command line, and its output, which the server reads.
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


def write_answer(output: BinaryIO, said: Mapping[str, Any], data: bytes) -> None:
    """Write an answer: a line of JSON, with the number of bytes that follow it, and these."""
    output.write(json.dumps({**said, "bytes": len(data)}).encode() + b"\n" + data)
    output.flush()


class ChildProcess(ABC):
    """A process of the grower, whose output a thread reads: one that stops in the middle of it stops nobody else.

    Parameters
    ----------
    command : command that starts it.
    news : set when it has something to tell, such as its end.

    Attributes
    ----------
    has_ended : whether it has ended, or is of no use any more.
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
        """Write a line to its standard input; one that has just ended hears nothing."""
        with suppress(BrokenPipeError, ValueError):
            if self.process.stdin is not None:
                os.write(self.process.stdin.fileno(), f"{line}\n".encode())

    def join(self) -> None:
        """Wait until it is gone."""
        self._reader.join(END_S)


M_TRIM_THRESHOLD: Final = -1  # numbers of <malloc.h>
M_MMAP_THRESHOLD: Final = -3
LARGE_BYTES: Final = 256 * 1024
TRIM_BYTES: Final = 1024 * 1024


def keep_small() -> bool:
    """Make the C library map each array of 256 KiB or more separately, so that freeing it returns its memory.

    By itself glibc raises that size to what was freed last, up to 32 MiB. Arrays of a level of the tree, which live
    for milliseconds, then leave holes in a heap that cannot shrink: 54 MB of 117 after a million rows. What a freed
    array costs again is the clearing of its pages, some hundredths of the time of growth.

    Returns
    -------
    bool
        Whether the C library took both settings; others than glibc do without.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # musl has no mallopt, Windows no such library
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)) and bool(mallopt(M_TRIM_THRESHOLD, TRIM_BYTES))
