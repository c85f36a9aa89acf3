"""One worker of a server: a process that its parent starts with the worker's number.

The first line of its standard input is its brief. The end of the input, which means that the parent has ended, has the
effect of SIGTERM. On standard output, the worker reports that it accepts calls, or why it cannot start.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from quercus.server.app import SWITCH_S, run_event_loop, run_server
from quercus.server.config import Config
from quercus.server.growth.child_process import private_output
from quercus.server.plugins import choose_plugins
from quercus.server.telemetry.logs import set_up_logging
from quercus.server.wire.errors import BadStart
from quercus.server.workers.board import Board, Post


def main() -> None:
    """Run a worker until SIGTERM or the end of its parent."""
    output, parent = private_output(), os.getppid()
    brief = json.loads(sys.stdin.buffer.readline())
    try:
        index = int(sys.argv[1])
        board = Board(brief["count"], brief["board"], index, bytes.fromhex(brief["key"]))
        post = Post(index, board, Path(brief["folder"]))
        config = Config(**brief["config"] | {"log_level": board.level or brief["config"]["log_level"]})
        set_up_logging(config.log_level, config.log_format)
        choose_plugins(config.plugins)
        sys.setswitchinterval(SWITCH_S)
        run_event_loop(run_server(config, lambda _: _say(output, {"ready": True}), post, _watch_parent))
        if os.getppid() != parent and post.folder is not None:  # otherwise the parent removes it
            shutil.rmtree(post.folder, ignore_errors=True)
    except BadStart as error:
        _say(output, {"failed": str(error)})
        sys.exit(1)


def _say(output: BinaryIO, message: dict[str, Any]) -> None:
    output.write(json.dumps(message).encode() + b"\n")
    output.flush()


def _watch_parent(end: Callable[[], object]) -> None:
    def watch() -> None:
        # unbuffered, because a process cannot end while a thread reads a buffer
        while os.read(sys.stdin.fileno(), 1024):
            pass
        end()

    threading.Thread(target=watch, name="quercus-parent", daemon=True).start()


if __name__ == "__main__":
    main()
