"""A process that learns one model at a time: ``python -m quercus.server.growth.learner_process URL``.

Its grower writes what to learn to its standard input, a line of JSON each, and reads the trees from its standard
output: a line of JSON, and as many bytes as that line says. It ends with its grower, and may be killed at any moment:
it writes nothing to the store.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import queue
import signal
from typing import Any, BinaryIO, Final

from quercus.server.growth.child_process import end_with_parent, keep_small, private_output
from quercus.server.growth.relearning import LearningTask, ReplacedError, learn_model
from quercus.server.plugins import choose_inherited_plugins
from quercus.server.telemetry import logs
from quercus.specification.server import LOG_LEVELS
from quercus.storage import NotFound, Store

_log = logging.getLogger("quercus.server.growth.learner_process")  # also when it is run as __main__
NICENESS: Final = 5  # more than the grower's, whose trees follow the log and have priority


def run_tasks(store: Store, tasks: queue.SimpleQueue[LearningTask], answers: BinaryIO) -> None:
    """Learn for ever."""
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
        answers.write(json.dumps(said | {"bytes": len(data)}).encode() + b"\n" + data)
        answers.flush()


def main() -> None:
    """Run learning tasks until the grower ends."""
    parser = argparse.ArgumentParser(prog="quercus-learner")
    parser.add_argument("url")
    parser.add_argument("--log-level", default="info")
    parser.add_argument("--log-format", default="human")
    arguments = parser.parse_args()
    logs.set_up_logging(arguments.log_level, arguments.log_format)
    choose_inherited_plugins()
    tasks: queue.SimpleQueue[LearningTask] = queue.SimpleQueue()

    def on_line(line: str) -> None:
        if line in LOG_LEVELS:
            logs.set_level(line)
        else:
            tasks.put(LearningTask(**json.loads(line)))

    end_with_parent(on_line)
    answers = private_output()
    keep_small()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the server decides
    os.nice(NICENESS)
    run_tasks(Store.open(arguments.url), tasks, answers)


if __name__ == "__main__":
    main()
