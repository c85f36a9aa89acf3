"""The keyboard of `quercus label`, on a terminal that shows what it is sent and answers no queries."""

import os
import pty
import select
import subprocess
import sys
import time

import pytest

READS_KEYS = """
from quercus.cli.terminal import open_keyboard
with open_keyboard(lambda: None, lambda quietly: None) as keys:
    print("READY", flush=True)
    print([keys.read_key() for _ in range(4)], flush=True)
"""
OPENS_S = 30.0


@pytest.mark.parametrize("kind", ["xterm-256color", "dumb", "no-such-terminal"])
def test_a_silent_terminal_is_asked_nothing(kind: str) -> None:
    master, slave = pty.openpty()
    environment = os.environ | {"TERM": kind}
    with subprocess.Popen(
        [sys.executable, "-c", READS_KEYS], stdin=slave, stdout=slave, env=environment, start_new_session=True
    ) as process:
        try:
            os.close(slave)
            shown = _read_until(master, b"READY")
            assert b"\x1b" not in shown  # each question of the terminal would be waited for, 5 s
            os.write(master, b"a\x1b[A\x1b[1;5C\x1bOPb\r\x7f")  # arrows and function keys are not keys
            assert b"['a', 'b', '\\n', '\\x7f']" in _read_until(master, b"]")
        finally:
            process.kill()
            os.close(master)


def _read_until(master: int, words: bytes) -> bytes:
    deadline, text = time.monotonic() + OPENS_S, b""
    while words not in text:
        assert select.select([master], [], [], max(0.0, deadline - time.monotonic()))[0], text
        text += os.read(master, 65_536)
    return text
