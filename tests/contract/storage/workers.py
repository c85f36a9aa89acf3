"""Processes that use a store as servers and growers do; started by `test_store_processes`.

Usage: python workers.py append|label|grow|remove|archive|rebuild URL NAME [...]; each prints lines, flushed, that the
test reads.
"""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from quercus.belief.codec import encode
from quercus.belief.label import ClassSet
from quercus.labelling.shapes import Shapes
from quercus.storage import AgendaEntry, EventKind, FailedPrecondition, Idle, KnownModel, Store, Words
from quercus.storage.archive.rebuilding import rebuild_models
from quercus.storage.archive.writing import archive_model

LABEL = encode(ClassSet(1))
BATCH_SIZES = 5, 1000
"""Rows of the batches that `append` writes, in turns: SQLite inserts the few and the many by different statements."""


def say(**words: object) -> None:
    print(json.dumps(words), flush=True)


def append(url: str, name: str, first: str) -> None:
    """Append batches of `BATCH_SIZES` until killed; acknowledge each."""
    with Store.open(url) as store:
        number = int(first)
        while True:
            size = BATCH_SIZES[number % len(BATCH_SIZES)]
            batch = f"{name}-{number}"
            ids = [f"{batch}-{row}" for row in range(size)]
            ack = store.append_instances("m", ids, np.full((size, 2), number), [LABEL] * size)
            say(sequence=ack.committed_sequence, batch=batch, rows=size)
            number += 1


def label(url: str, name: str) -> None:
    """Lease, then answer, refuse or release, until the budget is spent."""
    with Store.open(url) as store:
        turn = 0
        while True:
            leased = store.lease("m", name, 2, 60.0)
            if leased.idle is Idle.BUDGET_SPENT:
                return
            for query in leased.queries:
                start = time.monotonic()
                turn += 1
                model = store.get_model("m")
                say(out=model.queries_answered + model.queries_leased)
                end = time.monotonic()
                if turn % 5 == 0:
                    store.answer("m", query.number, query.token, Words(None), KnownModel(8))
                elif turn % 3 == 0:
                    store.release("m", query.number, query.token)
                else:
                    store.answer("m", query.number, query.token, Words(LABEL, 1.0), KnownModel(8))
                say(number=query.number, start=start, end=end)


def grow(url: str, name: str) -> None:
    """Publish an agenda of all that is not settled, whenever the log has grown, until the budget is spent."""
    with Store.open(url) as store:
        while True:
            model = store.get_model("m")
            events = store.read_events("m")
            settled = {e.instance for e in events if e.kind in (EventKind.ANSWER, EventKind.REFUSAL)}
            asked = [e.sequence for e in events if e.kind is EventKind.INSTANCE and e.sequence not in settled]
            agenda = [AgendaEntry(instance, b"", b"%d" % len(events)) for instance in asked[:20]]
            store.publish("m", as_of=len(events), snapshot=name.encode(), agenda=agenda)
            if model.queries_answered >= model.budget:
                return


def remove(url: str, name: str) -> None:
    """Delete a model, a row at a time."""
    with Store.open(url) as store:
        store.delete_model(name)
        while store.remove_deleted(1):
            say(more=True)
            time.sleep(0.01)  # whoever is killed is killed in between


def archive(url: str, name: str, target: str) -> None:
    """Archive a model, a piece for each call; wait in the middle of each until the parent says go on."""

    def tell(done: int, total: int) -> None:
        say(done=done, total=total)
        sys.stdin.readline()

    with Store.open(url) as store:
        archive_model(store, name, Path(target), progress=tell, piece_events=1)


class AsBytes:
    """Accepts any contents of a log."""

    def check_head(
        self, specification: bytes, budget: int, learned: list[tuple[int, str]], shapes: Shapes
    ) -> None:
        pass

    def check_events(self, events: Sequence[dict[str, Any]]) -> None:
        pass


def rebuild(url: str, name: str, source: str) -> None:
    """Rebuild a model under the name copy; wait after each piece until the parent says go on."""

    def tell(done: int, total: int) -> None:
        say(done=done, total=total)
        sys.stdin.readline()

    with Store.open(url) as store:
        rebuild_models(store, Path(source), AsBytes, only=name, new_name="copy", progress=tell)


def create(url: str, name: str) -> None:
    """Open at the same moment as others, when the parent says go."""
    say(ready=True)
    sys.stdin.readline()
    with Store.open(url) as store:
        try:
            store.create_model(name, b"", budget=0)
        except FailedPrecondition as error:
            say(error=str(error))
        say(models=len(store.list_models()))


if __name__ == "__main__":
    work = (append, label, grow, create, remove, archive, rebuild)
    {each.__name__: each for each in work}[sys.argv[1]](*sys.argv[2:])
