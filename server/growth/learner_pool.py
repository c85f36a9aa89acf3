"""The learners of a grower: processes that learn from all evidence while the grower continues.

There are a few processes, each of which learns one model at a time. Models wait for a process in order of arrival, and
then join the end of the queue again, so that no model keeps another from learning. A process is killed as soon as its
result is no longer wanted.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import IO, Final

from quercus.server.growth.child_process import ChildProcess
from quercus.server.growth.heartbeat import LearningQueue
from quercus.server.growth.relearning import LearnedTrees, LearningTask
from quercus.server.telemetry import logs

LEARNERS: Final = 4
"""Most processes that learn at once. Each holds the evidence of its model; the system shares out the cores."""

IDLE_LEARNERS: Final = 1
"""Number of idle processes that stay for the next model, which saves a second of startup."""


class LearningFailedError(Exception):
    """A model could not be learned; the message says why."""


@dataclass(eq=False)
class RunningTask:
    """A task under way.

    Attributes
    ----------
    task : the learning task.
    outcome : result of the task; None until it has ended.
    """

    task: LearningTask
    outcome: LearnedTrees | LearningFailedError | None = None

    def get_outcome(self) -> LearnedTrees:
        """Return the learned trees; raise ``LearningFailedError`` if there are none."""
        if isinstance(self.outcome, LearnedTrees):
            return self.outcome
        raise self.outcome or LearningFailedError("it has not ended yet")


class _LearnerProcess(ChildProcess):
    def __init__(self, command: Sequence[str], news: threading.Event) -> None:
        self.learning: RunningTask | None = None
        super().__init__(command, news)

    def start_learning(self, learning: RunningTask) -> None:
        self.learning = learning
        self.send_line(json.dumps(asdict(learning.task)))
        if self.has_ended:  # its reader thread may have noticed before there was a task to end
            self._finish_learning(LearningFailedError("the learner has ended"))

    def kill(self) -> None:
        """Kill the process, whose outcome is no longer wanted."""
        self.learning = None
        self.has_ended = True
        self.process.kill()

    def _read_output(self) -> None:
        with self.process as process:
            while process.stdout is not None and (outcome := _read_answer(process.stdout)) is not None:
                self._finish_learning(outcome)
            self.has_ended = True
            process.kill()  # it has closed its output, so it is of no more use
        self._finish_learning(LearningFailedError(f"the learner ended with code {process.returncode}"))

    def _finish_learning(self, outcome: LearnedTrees | LearningFailedError) -> None:
        learning, self.learning = self.learning, None
        if learning is not None:
            learning.outcome = outcome
        self._news.set()


class LearnerPool:
    """Processes that learn; they are started when there is something to learn.

    Parameters
    ----------
    url : URL of the store.
    log_format : format of the processes' logs.
    most : most processes at once.
    """

    def __init__(self, url: str, log_format: str = "human", most: int = LEARNERS) -> None:
        self._url = url
        self._log_format = log_format
        self._most = most
        self._waiting: deque[RunningTask] = deque()
        self._running: list[RunningTask] = []
        self._processes: list[_LearnerProcess] = []
        self._news = threading.Event()

    @property
    def pids(self) -> list[int]:
        """The ids of the processes."""
        return [each.process.pid for each in self._processes]

    def learning_queue(self) -> LearningQueue:
        """Return the models that are being learned, and those that wait for a process, in order."""
        learning = tuple(each.task.model for each in self._running if each.outcome is None)
        return LearningQueue(learning, tuple(each.task.model for each in self._waiting))

    def queue_task(self, task: LearningTask) -> RunningTask:
        """Learn a model as soon as a process is free."""
        learning = RunningTask(task)
        self._waiting.append(learning)
        self._assign_waiting()
        return learning

    def cancel_task(self, learning: RunningTask) -> None:
        """Stop a task at once."""
        if learning in self._waiting:
            self._waiting.remove(learning)
        if learning in self._running:
            self._running.remove(learning)
        for each in self._processes:
            if each.learning is learning:
                each.kill()
        self._assign_waiting()

    def collect_ended(self) -> set[int]:
        """Return the keys of models whose tasks have ended since the last call, and start waiting tasks."""
        self._news.clear()
        done = [learning for learning in self._running if learning.outcome is not None]
        self._running = [learning for learning in self._running if learning.outcome is None]
        self._assign_waiting()
        return {learning.task.key for learning in done}

    def wait_for_news(self, timeout_s: float) -> bool:
        """Wait until a task ends or `end_wait` is called; return False if the time runs out first."""
        return self._news.wait(timeout_s)

    def end_wait(self) -> None:
        """End the present wait for news, or the next one. Thread-safe."""
        self._news.set()

    def set_log_level(self, level: str) -> None:
        """Set the log level of the processes."""
        for each in self._processes:
            each.send_line(level)

    def close(self) -> None:
        """End all processes."""
        self._waiting.clear()
        for each in self._processes:
            each.kill()
        for each in self._processes:
            each.join()

    def _assign_waiting(self) -> None:
        self._processes = [each for each in self._processes if not each.has_ended]
        idle = [each for each in self._processes if each.learning is None]
        while self._waiting and (idle or len(self._processes) < self._most):
            learning = self._waiting.popleft()
            self._running.append(learning)
            try:
                if not idle:
                    options = ["--log-level", logs.current_level(), "--log-format", self._log_format]
                    command = [sys.executable, "-m", "quercus.server.growth.learner_process", self._url]
                    idle.append(_LearnerProcess([*command, *options], self._news))
                    self._processes.append(idle[0])
            except OSError as error:  # out of memory or of processes, perhaps only for now
                learning.outcome = LearningFailedError(f"no learner can be started: {error}")
                self._news.set()
                continue
            idle.pop().start_learning(learning)
        for each in idle[IDLE_LEARNERS:]:
            each.kill()


def _read_answer(answers: IO[bytes]) -> LearnedTrees | LearningFailedError | None:
    """Read one answer of a learner; None at the end, even if that is within an answer."""
    try:
        said = json.loads(answers.readline())
        data = answers.read(said["bytes"])
    except ValueError:
        return None
    if len(data) < said["bytes"]:
        return None
    if trouble := said.get("trouble"):
        return LearningFailedError(trouble)
    return LearnedTrees(data, said["nodes"], bytes.fromhex(said["report"]), said["cost_s"])
