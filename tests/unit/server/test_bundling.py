"""Small pushes are stored together, and each gets the outcome it would get alone."""

from collections.abc import Iterator

import numpy as np
import pytest

from quercus.belief.codec import encode
from quercus.belief.label import ClassSet
from quercus.server.bundling import bundle, store_pushes
from quercus.server.limits import BUNDLE_ROWS
from quercus.storage.errors import AlreadyExists, NotFound
from quercus.storage.records import Appended, NewValue, Push
from quercus.storage.store import Store


@pytest.fixture
def store() -> Iterator[Store]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder, Store.open(f"sqlite:///{folder}/store.db") as opened:
        for model in ("a", "b"):
            opened.create_model(model, b"", budget=0)
        yield opened


def push(model: str, *ids: str, value: float = 0.0, new: tuple[NewValue, ...] = ()) -> Push:
    return Push(model, ids, np.full((len(ids), 2), value), [encode(ClassSet(1))] * len(ids), new)


def test_pushes_of_a_model_become_one(store: Store) -> None:
    pushes = [push("a", "1"), push("b", "1"), push("a", "2", "3"), push("b", "2"), push("a", "4")]
    assert [each.positions for each in bundle(pushes)] == [[0, 2, 4], [1, 3]]
    assert store_pushes(store, pushes) == [
        *(Appended(1, 1, 0), Appended(1, 1, 0), Appended(3, 2, 0), Appended(2, 1, 0), Appended(4, 1, 0)),
    ]
    assert [event.id for event in store.read_events("a")] == ["1", "2", "3", "4"]


def test_what_may_not_be_bundled() -> None:
    new = (NewValue(0, 0, "v"),)
    for second in (push("b", "2"), push("a", "1"), push("a", "2", new=new)):
        assert len(bundle([push("a", "1"), second])) == 2
    many = push("a", *(f"r{i}" for i in range(BUNDLE_ROWS)))
    assert len(bundle([push("a", "1"), many])) == 2
    wide = Push("a", ["2"], np.zeros((1, 3)), [b""])
    assert len(bundle([push("a", "1"), wide])) == 2


def test_order_stays_when_a_push_stands_alone(store: Store) -> None:
    new = (NewValue(0, 0, "v"),)
    pushes = [push("a", "1"), push("a", "2", new=new), push("a", "3"), push("a", "4")]
    assert [each.positions for each in bundle(pushes)] == [[0], [1], [2, 3]]
    store_pushes(store, pushes)
    assert [event.id for event in store.read_events("a")] == ["1", "2", "3", "4"]


def test_known_rows_are_counted_for_the_push_that_brought_them(store: Store) -> None:
    store_pushes(store, [push("a", "1", "2", "3")])
    outcomes = store_pushes(store, [push("a", "4"), push("a", "2", "5"), push("a", "1", "3")])
    assert outcomes == [Appended(5, 1, 0), Appended(5, 1, 1), Appended(5, 0, 2)]
    assert store_pushes(store, [push("a", "1"), push("a", "2")]) == [Appended(5, 0, 1), Appended(5, 0, 1)]


def test_refused_push_does_not_harm_the_others(store: Store) -> None:
    store_pushes(store, [push("a", "1")])
    pushes = [push("a", "2"), push("a", "1", value=7.0), push("none", "1"), push("a", "3"), push("b", "1")]
    first, second, third, fourth, fifth = store_pushes(store, pushes)
    assert (first, fourth, fifth) == (Appended(2, 1, 0), Appended(3, 1, 0), Appended(1, 1, 0))
    assert isinstance(second, AlreadyExists)
    assert isinstance(third, NotFound)
    assert [event.id for event in store.read_events("a")] == ["1", "2", "3"]
