"""Single keys from a person's terminal."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.cells import cell_len

if TYPE_CHECKING:
    from blessed import Terminal

ESCAPE, ENTER, BACKSPACE, END = "\x1b", "\n", "\x7f", ""
_SIGNAL_S = 0.2
"""Maximum delay, in seconds, before a signal that another thread received is handled."""
_SEQUENCE_S = 0.05
"""Bytes that follow an escape within this time, in seconds, belong to it: an arrow key, not the Escape key."""
_NAMED = {
    "KEY_ESCAPE": ESCAPE,
    "KEY_ENTER": ENTER,
    "KEY_BACKSPACE": BACKSPACE,
    "KEY_DELETE": BACKSPACE,
    "KEY_CTRL_D": END,
}


class Keys:
    """Reads keys one at a time, without Enter and without echo; use inside :func:`open_keyboard`."""

    def __init__(
        self, terminal: Terminal, on_return: Callable[[], None], on_tick: Callable[[bool], None]
    ) -> None:
        self._terminal = terminal
        self._on_return, self._on_tick = on_return, on_tick
        self.pressed_at = time.monotonic()  # the last key
        # set by a signal handler, which must not print: it may have interrupted a print
        self.returned = False

    def read_key(self, *, quietly: bool = False) -> str:
        """Return the next key: a character, ``ESCAPE``, ``ENTER``, ``BACKSPACE``, or ``END`` if the terminal is gone.

        Arrow and function keys are ignored. ``quietly``: show nothing, because a line is being typed.
        """
        while True:
            # a signal may reach another thread: its handler runs when this one returns to Python
            try:
                key = self._terminal.inkey(timeout=_SIGNAL_S, esc_delay=_SEQUENCE_S)
            except EOFError:
                return END
            if key:
                self.pressed_at = time.monotonic()
            if self.returned:
                self.returned = False
                self._on_return()
            self._on_tick(quietly)
            if key.name in _NAMED:
                return _NAMED[key.name]
            if key and not key.is_sequence:
                return str(key)

    def drop_typed(self) -> None:
        """Discard keys that were typed but not read yet."""
        self._terminal.flushinp()

    def read_line(self, echo: str = "", most: int = sys.maxsize) -> str | None:
        """Read a line of at most ``most`` characters with echo; ``None`` if Escape cancels it or the terminal is gone.

        Further characters are ignored and not shown.
        """
        text = ""
        _write_out(echo)
        while (key := self.read_key(quietly=True)) != ENTER:
            if key in (ESCAPE, END):
                _write_out("\n")
                return None
            if key == BACKSPACE:
                _write_out("\b \b" * cell_len(text[-1:]))
                text = text[:-1]
            elif key.isprintable() and len(text) < most:
                text += key
                _write_out(key)
        _write_out("\n")
        return text


def _write_out(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


@contextmanager
def open_keyboard(on_return: Callable[[], None], on_tick: Callable[[bool], None]) -> Iterator[Keys]:
    """Yield the keyboard of a terminal in single-key mode; the previous mode is always restored.

    Parameters
    ----------
    on_return
        Called while waiting for the next key, when the program continues after a stop (Ctrl-Z, then fg).
        The shell used the terminal during the stop, so the mode is set again before the call.
    on_tick
        Called after each key, and several times a second while none is pressed: it may show notices, unless its
        argument is true, because a line is being typed.
    """
    import tty  # noqa: PLC0415  (there is none on Windows, where every other command works)

    from blessed import Terminal  # noqa: PLC0415  (only this command needs it)

    # Nothing is styled, so the terminal is not asked for its capabilities: some do not reply to such queries
    terminal = Terminal(force_styling=None)
    keyboard = Keys(terminal, on_return, on_tick)

    def take_back(*_: object) -> None:
        tty.setcbreak(sys.stdin)
        keyboard.returned = True

    handler = signal.signal(signal.SIGCONT, take_back)
    try:
        with terminal.cbreak():
            yield keyboard
    finally:
        signal.signal(signal.SIGCONT, handler)
