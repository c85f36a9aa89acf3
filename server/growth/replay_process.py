"""A process that replays one log for one row: ``python -m quercus.server.growth.replay_process URL``.

The server writes what to replay to its standard input, a line of JSON, and reads a line of JSON from its standard
output, and as many bytes of the response as that line says. It ends with the server, and may be killed at any moment:
it writes nothing to the store.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import queue
import signal
from typing import Any, Final

from quercus.server.growth.child_process import end_with_parent, private_output
from quercus.server.growth.relearning import ReplacedError
from quercus.server.growth.replaying import ReplayTask, explain_row
from quercus.server.plugins import choose_inherited_plugins
from quercus.server.telemetry import logs
from quercus.storage import FailedPrecondition, NotFound, Store

_log = logging.getLogger("quercus.server.growth.replay_process")  # also when it is run as __main__
NICENESS: Final = 10  # more than that of growth, which must not wait for it


def main() -> None:
    """Replay once."""
    parser = argparse.ArgumentParser(prog="quercus-replay")
    parser.add_argument("url")
    parser.add_argument("--log-level", default="info")
    parser.add_argument("--log-format", default="human")
    arguments = parser.parse_args()
    logs.set_up_logging(arguments.log_level, arguments.log_format)
    choose_inherited_plugins()
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    end_with_parent(lines.put)
    answers = private_output()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the server decides
    os.nice(NICENESS)
    task = ReplayTask(**json.loads(lines.get()))
    said: dict[str, Any] = {}
    data = b""
    try:
        data = explain_row(Store.open(arguments.url), task).SerializeToString()
    except (NotFound, ReplacedError):
        said["gone"] = True
    except FailedPrecondition as error:
        said["refused"] = str(error)
    except Exception as error:
        _log.exception("the log of model %s cannot be replayed", task.model)
        said["trouble"] = f"{type(error).__name__}: {error}"
    answers.write(json.dumps(said | {"bytes": len(data)}).encode() + b"\n" + data)
    answers.flush()


if __name__ == "__main__":
    main()
