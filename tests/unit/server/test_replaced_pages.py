"""A model is replaced again and again while its pages are read: each page is of one of the models, or of none."""

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from quercus.belief.codec import encode_sets
from quercus.proto.v1 import model_pb2
from quercus.server.labelling import answer_pages
from quercus.server.labelling.answer_messages import AnswerSelection
from quercus.server.services import instances
from quercus.server.transfer.exporting import export_table
from quercus.server.wire.schema import ModelSchema
from quercus.storage import AgendaEntry, EventSelection, FailedPrecondition, NotFound, Store

READS = 12
MOST = 100_000  # most of them find no model
LONGEST_S = 0.02  # that a model stays, some times as long as a page takes


def lines_of(store: Store, attributes: int, classes: list[str], rows: int) -> list[str]:
    """A model with so many attributes and rows, some of them answered, as it is exported."""
    declared = [
        model_pb2.Attribute(name=f"X{k}", nominal=model_pb2.NominalAttribute(values=["a"]))
        for k in range(attributes)
    ]
    message = model_pb2.Specification(attributes=declared, classes=classes, budget=9)
    store.create_model("m", message.SerializeToString(), budget=9)
    everything = encode_sets(np.full(rows, 2 ** len(classes) - 1, np.uint64))
    store.append_instances("m", [f"i{i}" for i in range(rows)], np.zeros((rows, attributes)), everything)
    agenda = [AgendaEntry(i, b"asked", b"") for i in range(1, 4)]
    store.publish("m", as_of=rows, snapshot=b"tree", agenda=agenda)
    (label,) = encode_sets(np.array([2 ** (len(classes) - 1)], np.uint64))
    for query in store.lease("m", "ann", 3, 60.0).queries:
        store.answer("m", query.number, query.token, label, 1.0, False)
    found = list(store.dump("m"))
    store.delete_model("m")
    return found


@pytest.fixture
def replaced(tmp_path: Path) -> Iterator[Store]:
    """A store whose only model is replaced all the time."""
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as store:
        both = [lines_of(store, 3, ["p", "q", "r"], 9), lines_of(store, 1, ["s", "t"], 4)]
        stop = threading.Event()

        def replace() -> None:
            lots = random.Random(1)  # noqa: S311
            while not stop.is_set():
                for lines in both:
                    store.load(lines)
                    stop.wait(lots.uniform(0.0, LONGEST_S))
                    store.delete_model("m")
                    store.remove_deleted()

        thread = threading.Thread(target=replace)
        thread.start()
        try:
            yield store
        finally:
            stop.set()
            thread.join()


def read(store: Store) -> Iterator[tuple[int, int]]:
    """Yield the numbers of values and of classes of each row that is read."""
    page = instances._list_page(store, "m", 0, 20).instances
    assert len(page) in {9, 4}
    for row in (*page, instances._read_instance(store, "m", "i0")):
        yield len(row.values.values), len(row.contour.plausibilities)
    schema = ModelSchema.read(store, "m")
    answer_pages._read_page(store, schema, AnswerSelection(), EventSelection(), with_values=True)
    list(export_table(store, "m").rows)


def test_a_page_is_of_one_model(replaced: Store) -> None:
    """Numbers of values and of classes belong together in each row; the model may be gone, and nothing else fails."""
    seen: set[tuple[int, int]] = set()
    failed: set[str] = set()
    reads = 0
    for _ in range(MOST):
        try:
            seen.update(read(replaced))
            reads += 1
        except (NotFound, FailedPrecondition) as error:
            failed.add(str(error).partition(" does")[0])
        if reads >= READS and len(seen) > 1:
            break
    assert failed <= {"model m", "model m was deleted, and another has its name: start again"}
    assert seen == {(3, 3), (1, 2)}
