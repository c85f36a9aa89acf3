"""A process that learns one model at a time: ``python -m quercus.server.growth.learner_process URL``.

Its grower writes tasks to its standard input, each a line of JSON, and reads the trees from its standard output: a line
of JSON, and as many bytes as that line says. It ends with its grower, and may be killed at any moment, because it
writes nothing to the store.
"""

from __future__ import annotations

import json
import logging
import queue
from typing import Any, BinaryIO, Final

from quercus.server.growth.child_process import begin_child, keep_small, open_store, write_answer
from quercus.server.growth.relearning import LearningTask, ReplacedError, learn_model
from quercus.server.telemetry import logs
from quercus.specification.server import LOG_LEVELS
from quercus.storage import NotFound, Store

_log = logging.getLogger("quercus.server.growth.learner_process")  # also when it is run as __main__
NICENESS: Final = 5  # on top of the grower's, whose trees follow the log and have priority


def run_tasks(store: Store, tasks: queue.SimpleQueue[LearningTask], answers: BinaryIO) -> None:
    """Run learning tasks for ever."""
    while True:
        task = tasks.get()
        said: dict[str, Any] = {}
        data = b""
        try:
            learned = learn_model(store, task)
            data = learned.snapshot
            said |= {"nodes": learned.nodes, "report": learned.report.hex(), "cost_s": learned.cost_s}
        except (NotFound, ReplacedError):
            said["trouble"] = f"model {task.model} is gone"
        except Exception as error:
            _log.exception("model %s cannot be learned", task.model)
            said["trouble"] = f"{type(error).__name__}: {error}"
        write_answer(answers, said, data)


def main() -> None:
    """Run learning tasks until the grower ends."""
    tasks: queue.SimpleQueue[LearningTask] = queue.SimpleQueue()

    def on_line(line: str) -> None:
        if line in LOG_LEVELS:
            logs.set_level(line)
        else:
            tasks.put(LearningTask(**json.loads(line)))

    url, answers = begin_child("quercus-learner", NICENESS, on_line)
    keep_small()
    run_tasks(open_store(url), tasks, answers)


if __name__ == "__main__":
    main()
