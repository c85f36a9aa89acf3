"""Single keys from a person's terminal."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ESCAPE, ENTER, BACKSPACE, END = "\x1b", "\n", "\x7f", ""
_SIGNAL_S = 0.2
"""How soon a signal is acted on that another thread received."""
_SEQUENCE_S = 0.05
"""Bytes that follow an escape within this time belong to it: an arrow key, not the Escape key."""


class Keys:
    """Reads keys one at a time, without Enter and without echo; use inside :func:`keys`."""

    def __init__(self, descriptor: int, on_return: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._on_return = on_return
        self.returned = (
            False  # set by a signal handler, which must not print: it may have interrupted a print
        )

    def read(self) -> str:
        """The next key: a character, ``ESCAPE``, ``ENTER``, ``BACKSPACE``, or ``END`` when the terminal is gone.

        Arrow and function keys are swallowed: they mean nothing here.
        """
        while True:
            key = self._character()
            if key == ESCAPE and self._more():
                while self._more():
                    os.read(self._descriptor, 1)
                continue
            return {"\r": ENTER, "\x08": BACKSPACE, "\x04": END}.get(key, key)

    def forget(self) -> None:
        """Drop what was typed and not read yet."""
        import termios  # noqa: PLC0415  (as in `keys`)

        termios.tcflush(self._descriptor, termios.TCIFLUSH)

    def line(self, echo: str = "") -> str | None:
        """A line typed with echo; ``None`` when it is given up with Escape or the terminal is gone."""
        text = ""
        _show(echo)
        while (key := self.read()) != ENTER:
            if key in (ESCAPE, END):
                _show("\n")
                return None
            if key == BACKSPACE:
                if text:
                    text = text[:-1]
                    _show("\b \b")
            elif key.isprintable():
                text += key
                _show(key)
        _show("\n")
        return text

    def _more(self) -> bool:
        return bool(select.select([self._descriptor], [], [], _SEQUENCE_S)[0])

    def _character(self) -> str:
        while not select.select([self._descriptor], [], [], _SIGNAL_S)[0] or self.returned:
            # a signal may reach another thread: its handler runs when this one comes back
            if self.returned:
                self.returned = False
                self._on_return()
        raw = os.read(self._descriptor, 1)
        first = raw[0] if raw else 0
        length = 4 if first >= 0xF0 else 3 if first >= 0xE0 else 2 if first >= 0xC0 else 1
        while raw and len(raw) < length:
            more = os.read(self._descriptor, length - len(raw))
            if not more:
                break
            raw += more
        return raw.decode("utf-8", errors="replace")


def _show(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


@contextmanager
def keys(on_return: Callable[[], None]) -> Iterator[Keys]:
    """The keyboard of a terminal, in single-key mode; the mode before is restored whatever happens.

    Parameters
    ----------
    on_return
        Called where the next key is waited for, once the program goes on after it was stopped (Ctrl-Z, then fg).
        The shell had the terminal meanwhile, so the mode is set again before.
    """
    import termios  # noqa: PLC0415  (there is none on Windows, where every other command works)
    import tty  # noqa: PLC0415

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    keyboard = Keys(descriptor, on_return)

    def take_back(*_: object) -> None:
        tty.setcbreak(descriptor)
        keyboard.returned = True

    handler = signal.signal(signal.SIGCONT, take_back)
    try:
        tty.setcbreak(descriptor)
        yield keyboard
    finally:
        signal.signal(signal.SIGCONT, handler)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
