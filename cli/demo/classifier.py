"""A client that classifies the held-out rows over and over, and notes how right each tree version is.

Prints a line of JSON (:class:`ClassifierState`) for each new version, and a few a second. The line ``finish`` on its
standard input makes it wait for the tree of the whole log, classify once more and end; so does the demo's end,
at once.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from quercus.cli.demo.tables import read_table, row_numbers
from quercus.client.client import Client

EVERY_S = 0.04
"""Time between two requests: an eager client, not a benchmark."""
TELL_S = 0.25


@dataclass(frozen=True)
class ClassifierState:
    """The state of the classifier.

    Attributes
    ----------
    version : version of the tree that answered.
    as_of : sequence number up to which that tree knows the log.
    answers : answers of labellers among these.
    rows : instances among these.
    accuracy : share of held-out rows classified rightly.
    requests : requests made so far.
    median_ms, slowest_ms : time that requests took so far.
    final : whether the tree is that of the whole log.
    """

    version: int
    as_of: int
    answers: int
    rows: int
    accuracy: float
    requests: int
    median_ms: float
    slowest_ms: float
    final: bool = False


class DemoClassifier:
    """Classifies one set of rows and keeps the books.

    Parameters
    ----------
    client, model : whom to ask.
    file : CSV of the rows, with a column ``class``.
    """

    def __init__(self, client: Client, model: str, file: Path) -> None:
        self._client, self._model = client, model
        table = read_table(file)
        self._truth = [row.pop("class") for row in table]
        self._rows = [row_numbers(row) for row in table]
        self._times_ms: list[float] = []
        self._last: ClassifierState | None = None

    def classify(self, min_sequence: int = 0, final: bool = False) -> tuple[ClassifierState, bool]:
        """Classify all rows once; also tells whether the version is new."""
        started = time.perf_counter()
        answer = self._client.classify(self._model, self._rows, min_sequence=min_sequence)
        self._times_ms.append(1000 * (time.perf_counter() - started))
        new = self._last is None or self._last.version != answer.version
        if self._last is None or new:
            rows, answers = self._rows_and_answers(answer.as_of)
        else:
            rows, answers = self._last.rows, self._last.answers
        right = sum(map(str.__eq__, answer.labels, self._truth))
        self._last = ClassifierState(
            version=answer.version,
            as_of=answer.as_of,
            answers=answers,
            rows=rows,
            accuracy=right / len(self._truth),
            requests=len(self._times_ms),
            median_ms=statistics.median(self._times_ms),
            slowest_ms=max(self._times_ms),
            final=final,
        )
        return self._last, new

    def _rows_and_answers(self, as_of: int) -> tuple[int, int]:
        """Rows and answers in the log up to ``as_of``; the first statement about a row is its source's."""
        histories = [instance.history for instance in self._client.instances(self._model)]
        rows = sum(history[0].sequence <= as_of for history in histories)
        said = [each for history in histories for each in history[1:] if not each.refused]
        return rows, sum(each.sequence <= as_of for each in said)


def run_classifier(client: Client, model: str, file: Path, finish: threading.Event) -> None:
    """Classify until ``finish``, then once more by the tree of the whole log."""
    classifier = DemoClassifier(client, model, file)
    told = -TELL_S
    while not finish.wait(EVERY_S):
        reading, new = classifier.classify()
        if new or time.monotonic() - told >= TELL_S:
            told = time.monotonic()
            _print_reading(reading)
    grown = client.wait_grown(model, timeout_s=None)
    _print_reading(classifier.classify(grown.sequence_grown, final=True)[0])


def _print_reading(reading: ClassifierState) -> None:
    print(json.dumps(asdict(reading)), flush=True)


def _finish_when_told() -> threading.Event:
    finish = threading.Event()

    def listen_for_finish() -> None:
        if sys.stdin.readline().strip() == "finish":
            finish.set()
        else:
            os._exit(1)  # the demo is gone

    threading.Thread(target=listen_for_finish, name="quercus-parent", daemon=True).start()
    return finish


def main() -> None:
    """Classify until told to finish."""
    parser = argparse.ArgumentParser(prog="quercus-classifier")
    parser.add_argument("server")
    parser.add_argument("model")
    parser.add_argument("file", type=Path)
    given = parser.parse_args()
    finish = _finish_when_told()
    with Client(given.server) as client:
        run_classifier(client, given.model, given.file, finish)


if __name__ == "__main__":
    main()
