"""The index of rows follows the log: a page reads what is new, and nothing twice."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.held_bytes import held_bytes

from quercus.belief.codec import encode
from quercus.belief.label import ClassSet
from quercus.server.core import row_index
from quercus.server.core.row_index import RowIndex
from quercus.server.wire.row_filter import RowSelection, read_selection
from quercus.server.wire.schema import ModelSchema
from quercus.storage import FailedPrecondition, KnownModel, NotFound, Push, Statement, StatementBatch, Store
from quercus.v1 import model_pb2

COUNT = 300
VACUOUS = encode(ClassSet(3))
RED = encode(ClassSet(1))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    specification = model_pb2.Specification(
        attributes=[
            model_pb2.Attribute(name="x", numeric=model_pb2.NumericAttribute()),
            model_pb2.Attribute(name="soil", nominal=model_pb2.NominalAttribute(values=["clay", "lime"])),
        ],
        classes=["red", "green"],
    )
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as opened:
        opened.create_model("m", specification.SerializeToString(), budget=0)
        push(opened, 0, COUNT)
        yield opened


def push(store: Store, first: int, count: int) -> None:
    values = np.array([[k / 2, k % 2] for k in range(first, first + count)], dtype=np.float64)
    labels = [RED if k % 3 == 0 else VACUOUS for k in range(first, first + count)]
    store.append_instances("m", [f"r{k}" for k in range(first, first + count)], values, labels, [])


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Numbers of events, histories and ids that the store has been asked for."""
    counts = {"read_log": 0, "history": 0, "row_ids": 0}

    def counted(name: str, size: Any) -> None:
        plain = getattr(Store, name)

        def method(self: Store, *args: Any, **kwargs: Any) -> Any:
            found = plain(self, *args, **kwargs)
            counts[name] += size(found)
            return found

        monkeypatch.setattr(Store, name, method)

    counted("read_log", lambda segment: sum(len(getattr(p, "labels", [0])) for p in segment.parts))
    counted("history", len)
    counted("row_ids", len)
    return counts


def selection(text: str, order: str = "") -> RowSelection:
    return read_selection(text, order, ("red", "green"))


def test_a_page_reads_only_what_is_new_in_the_log(store: Store, read: dict[str, int]) -> None:
    schema = ModelSchema.read(store, "m")
    index = RowIndex(store, schema)
    found = index.find(selection("NOT labelled"), schema, None, None, 50)
    assert (len(found.sequences), found.total) == (50, 200)
    assert read == {"read_log": COUNT, "history": 0, "row_ids": 0}
    after = index.find(selection("NOT labelled"), schema, None, found.after, 50)
    assert after.sequences[0] > found.sequences[-1]
    assert read["read_log"] == COUNT  # nothing is read for the second page
    store.state("m", StatementBatch("q", [Statement("r1", "ann", RED)]), KnownModel(2, schema.key))
    push(store, COUNT, 10)
    found = index.find(selection('labeller = "ann"'), schema, None, None, 50)
    assert found.sequences == [2]
    assert read == {
        "read_log": COUNT + 12,
        "history": 1,
        "row_ids": 0,
    }  # a statement, its correction, ten rows
    assert index.find(selection("NOT labelled"), schema, None, None, 500).total == 205


@pytest.mark.parametrize("kept", [0, row_index.MAX_KEPT_BYTES])
def test_a_text_is_searched_once_in_each_row(
    store: Store, read: dict[str, int], monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    """Also where the values are too many to be kept, and are read again."""
    monkeypatch.setattr(row_index, "MAX_KEPT_BYTES", kept)
    monkeypatch.setattr(row_index, "PIECE", 64)
    schema = ModelSchema.read(store, "m")
    index = RowIndex(store, schema)
    assert index.find(selection("text : LIM"), schema, None, None, 500).total == COUNT / 2
    assert index.find(selection("text : r29"), schema, None, None, 500).total == 11
    assert index.find(selection("text : 7.5"), schema, None, None, 500).sequences == [16]
    seen = dict(read)
    push(store, COUNT, 4)
    assert index.find(selection("text : lim"), schema, None, None, 500).total == COUNT / 2 + 2
    assert read["row_ids"] == seen["row_ids"] + 4
    assert read["read_log"] <= seen["read_log"] + 8


def test_a_row_with_labels_takes_no_more_memory_than_one_without(store: Store) -> None:
    """Sets of labellers are numbered where few people label."""
    schema = ModelSchema.read(store, "m")
    index = RowIndex(store, schema)
    index.find(selection("labelled"), schema, None, None, 1)
    before = held_bytes(index._rows) + held_bytes(index._labellers)
    said = [
        Statement(f"r{k}", name, encode(ClassSet(mask)))
        for name, mask in (("ann", 1), ("bob", 2))
        for k in range(0, COUNT, 2)
    ]
    store.state("m", StatementBatch("q", said), KnownModel(2, schema.key))
    both = index.find(selection('labeller = "ann" AND labeller = "bob"'), schema, None, None, 1)
    assert both.total == index.find(selection("disputed"), schema, None, None, 1).total == COUNT / 2
    assert held_bytes(index._rows) + held_bytes(index._labellers) < before + 1_000


@pytest.mark.parametrize("kept", [0, row_index.MAX_KEPT_BYTES])
def test_a_search_ends_where_another_model_has_taken_the_name(
    store: Store, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    """One with fewer rows, between the look at the log and the search in it."""
    monkeypatch.setattr(row_index, "MAX_KEPT_BYTES", kept)
    schema = ModelSchema.read(store, "m")
    index = RowIndex(store, schema)
    catch_up = index._catch_up

    def replaced() -> None:
        catch_up()
        specification = store.get_model("m").specification
        store.delete_model("m")
        store.create_model("m", specification, budget=0)

    monkeypatch.setattr(index, "_catch_up", replaced)
    with pytest.raises(NotFound, match="model m does not exist any more: another has its name"):
        index.find(selection("text : clay"), schema, None, None, 5)


def test_uncertain_values_count_among_those_that_are_kept(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_index, "MAX_KEPT_BYTES", 16 * COUNT + 100 * row_index.CELL_BYTES)
    schema = ModelSchema.read(store, "m")
    index = RowIndex(store, schema)
    index.find(selection("labelled"), schema, None, None, 1)
    assert index._cells is not None
    kept = held_bytes(index._cells)
    parts = {(k, 0): ((0.0, float(k)),) for k in range(100)}
    ids = [f"u{k}" for k in range(100)]
    store.append_group([Push("m", ids, np.full((100, 2), np.nan), [VACUOUS] * 100, parts=parts)])
    index._catch_up()
    assert index._cells is None
    assert kept < 16 * COUNT + 1_000


def test_too_many_rows_are_refused_with_the_bound(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_index, "MAX_ROWS", COUNT - 1)
    schema = ModelSchema.read(store, "m")
    with pytest.raises(FailedPrecondition, match="has 300 rows; at most 299 can be filtered or ordered"):
        RowIndex(store, schema).find(selection("labelled"), schema, None, None, 5)
    with pytest.raises(FailedPrecondition):
        RowIndex(store, schema).find(selection("doubt > 0.5"), schema, None, None, 5)
