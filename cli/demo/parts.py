"""The processes of the demo: ``python -m quercus.cli.demo.parts PART ARGUMENTS``.

A part is ``sensor``, ``classifier``, ``comparison``, or a command of ``quercus``. Each ends when its standard input
does, so that none outlives the demo. Classifier and comparison report in lines of JSON.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from quercus.cli.demo.data import read_rows
from quercus.client.client import Client
from quercus.client.unseen import PushReport

BATCH_ROWS = 8
EVERY_S = 0.04
"""Time between two requests of the classifier: a busy client, not a benchmark."""
TELL_S = 0.25


def push_rows(server: str, model: str, file: str, rows_per_s: str) -> None:
    """Push the rows of a file without labels, as if they were measured now; its column ``id`` names the instances."""
    ids, rows = read_rows(Path(file), "id")

    def paced_rows() -> Iterator[dict[str, float]]:
        for row in rows:
            yield row
            time.sleep(1 / float(rows_per_s))

    def show_progress(report: PushReport) -> None:
        print(f"{report.rows} of {len(rows)} rows acknowledged", flush=True)

    with Client(server) as client:
        client.push(model, paced_rows(), ids=ids, batch_rows=BATCH_ROWS, on_progress=show_progress)


@dataclass(frozen=True)
class ClassifierState:
    """The state of the classifier.

    Attributes
    ----------
    version : version of the tree that answered.
    as_of : sequence number up to which that tree knows the log.
    answers : answers of labellers among these.
    rows : instances among these.
    accuracy : share of held-out rows classified correctly.
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


def run_classifier(finish: threading.Event, server: str, model: str, file: str) -> None:
    """Classify the held-out rows again and again; after ``finish``, once more by the tree of the whole log.

    Its state is printed for each new version, and a few times a second.
    """
    truth, rows = read_rows(Path(file), "class")
    times_ms: list[float] = []
    told, last = -TELL_S, None
    with Client(server) as client:
        while last is None or not last.final:
            is_final = finish.wait(EVERY_S)
            least = client.wait_grown(model, timeout_s=None).sequence_grown if is_final else 0
            started = time.perf_counter()
            answer = client.classify(model, rows, min_sequence=least)
            times_ms.append(1000 * (time.perf_counter() - started))
            is_new = last is None or last.version != answer.version
            if last is None or is_new:  # a row's first statement comes from its source
                histories = [instance.history for instance in client.instances(model)]
                rows_known = sum(history[0].sequence <= answer.as_of for history in histories)
                said = [each for history in histories for each in history[1:] if not each.refused]
                answers_known = sum(each.sequence <= answer.as_of for each in said)
            last = ClassifierState(
                version=answer.version,
                as_of=answer.as_of,
                answers=answers_known,
                rows=rows_known,
                accuracy=sum(map(str.__eq__, answer.labels, truth)) / len(truth),
                requests=len(times_ms),
                median_ms=statistics.median(times_ms),
                slowest_ms=max(times_ms),
                final=is_final,
            )
            if is_new or is_final or time.monotonic() - told >= TELL_S:
                told = time.monotonic()
                print(json.dumps(asdict(last)), flush=True)


def listen_to_demo() -> threading.Event:
    """Return an event that a line on standard input sets; stop this process, as SIGTERM would, when the input ends."""
    finish = threading.Event()

    def listen() -> None:
        while os.read(0, 4096):
            finish.set()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=listen, name="quercus-parent", daemon=True).start()
    return finish


def main() -> None:
    """Run a part of the demo."""
    part, *arguments = sys.argv[1:]
    finish = listen_to_demo()
    if part == "sensor":
        push_rows(*arguments)
    elif part == "classifier":
        run_classifier(finish, *arguments)
    elif part == "comparison":
        from quercus.cli.demo.comparison import compare  # noqa: PLC0415  (scikit-learn)

        compare(*map(int, arguments))
    else:
        from quercus.cli.main import main as quercus  # noqa: PLC0415

        sys.argv[:] = ["quercus", part, *arguments]
        quercus()


if __name__ == "__main__":
    main()
