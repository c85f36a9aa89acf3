"""A process that replays one log for one row: ``python -m quercus.server.growth.replay_process URL``.

The server writes the task to its standard input, a line of JSON, and reads a line of JSON from its standard output, and
as many bytes of the response as that line says. It ends with the server, and may be killed at any moment, because it
writes nothing to the store.
"""

from __future__ import annotations

import json
import logging
import queue
from typing import Any, Final

from quercus.server.growth.child_process import begin_child, write_answer
from quercus.server.growth.relearning import ReplacedError
from quercus.server.growth.replaying import ReplayTask, explain_row
from quercus.storage import FailedPrecondition, NotFound, Store

_log = logging.getLogger("quercus.server.growth.replay_process")  # also when it is run as __main__
NICENESS: Final = 10  # more than that of growth, which has priority


def main() -> None:
    """Run one replay."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    url, answers = begin_child("quercus-replay", NICENESS, lines.put)
    task = ReplayTask(**json.loads(lines.get()))
    said: dict[str, Any] = {}
    data = b""
    try:
        data = explain_row(Store.open(url, create=False), task).SerializeToString()
    except (NotFound, ReplacedError):
        said["gone"] = True
    except FailedPrecondition as error:
        said["refused"] = str(error)
    except Exception as error:
        _log.exception("the log of model %s cannot be replayed", task.model)
        said["trouble"] = f"{type(error).__name__}: {error}"
    write_answer(answers, said, data)


if __name__ == "__main__":
    main()
