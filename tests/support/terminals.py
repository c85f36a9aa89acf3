"""A program on a terminal of its own: keys go in through a pty, the screen comes out."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import termios
import time

from integration.client.serving import QUERCUS

WAIT_S = 90.0
GLANCE_S = 0.3
"""A person looks before pressing; keys within 0.25 s of a new query do not count."""
PROMPT = "q quit"
"""The last words of the line of keys."""


class Screen:
    """``quercus`` with some arguments, at a terminal.

    Parameters
    ----------
    arguments
        Of the command line.
    server
        Address of the server.
    size
        Columns and lines.
    term
        Kind of the terminal. It answers no queries.
    """

    def __init__(
        self, *arguments: str, server: str, size: tuple[int, int] = (110, 50), term: str = "xterm"
    ) -> None:
        self._master, slave = pty.openpty()
        self._shells_mode = termios.tcgetattr(slave)
        environment = os.environ | {
            "QUERCUS_SERVER": server,
            "TERM": term,
            "COLUMNS": str(size[0]),
            "LINES": str(size[1]),
        }
        self._process = subprocess.Popen(
            [QUERCUS, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            start_new_session=True,
        )
        os.close(slave)
        self._text = ""

    def expect(self, words: str) -> str:
        """Read until ``words`` are on the screen; give all that came before and drop it."""
        deadline = time.monotonic() + WAIT_S
        while words not in self._text:
            ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"{words!r} did not appear; on the screen: {self._text[-3000:]}")
            try:
                raw = os.read(self._master, 65536)
            except OSError:  # the program ended
                raw = b""
            if not raw:
                raise AssertionError(
                    f"the program ended without {words!r}; on the screen: {self._text[-3000:]}"
                )
            self._text += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", raw.decode())
        before, _, self._text = self._text.partition(words)
        return before + words

    def press(self, keys: str, glance_s: float = GLANCE_S) -> None:
        """Look, and press keys."""
        time.sleep(glance_s)
        os.write(self._master, keys.encode())

    def stop_and_continue(self) -> None:
        """Stop and continue the process like Ctrl-Z and fg: the shell has the terminal meanwhile, in its own mode."""
        os.kill(self._process.pid, signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)
        termios.tcsetattr(self._master, termios.TCSANOW, self._shells_mode)
        os.kill(self._process.pid, signal.SIGCONT)

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self._process.send_signal(signal.SIGINT)

    def ended(self) -> int:
        """Wait for the end; return the exit code."""
        return self._process.wait(timeout=WAIT_S)

    def close(self) -> None:
        """End it, however it is."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._master)
