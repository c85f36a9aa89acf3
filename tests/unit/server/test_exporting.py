"""An export beside a server that stores rows meanwhile."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from quercus.belief.codec import encode_sets
from quercus.server.transfer.exporting import PAGE, export_table
from quercus.storage import FailedPrecondition, NewValue, Store
from quercus.v1 import model_pb2

HUE = model_pb2.Attribute(name="hue", nominal=model_pb2.NominalAttribute(values=["red"]))
SPECIFICATION = model_pb2.Specification(attributes=[HUE], classes=["o", "s"], budget=5)


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path / 'store.db'}" if sqlite else request.getfixturevalue("postgres_url")
    with Store.open(url) as opened:
        create(opened)
        push(opened, "red", range(PAGE), 0)
        yield opened


def create(store: Store) -> None:
    store.create_model("m", SPECIFICATION.SerializeToString(), budget=5)


def push(store: Store, name: str, numbers: range, hue: int, *new: NewValue) -> None:
    ids = [f"{name}{number}" for number in numbers]
    labels = encode_sets(np.ones(len(ids), np.uint64))
    store.append_instances("m", ids, np.full((len(ids), 1), float(hue)), labels, new)


def test_values_that_are_learned_meanwhile(store: Store) -> None:
    rows = iter(export_table(store, "m").rows)
    first = next(rows)
    push(store, "green", range(1), 1, NewValue(0, 0, "green"))
    assert [row[:2] for row in (first, *rows)] == [
        *([f"red{number}", "red"] for number in range(PAGE)),
        ["green0", "green"],
    ]


def test_a_model_that_is_replaced_meanwhile(store: Store) -> None:
    rows = iter(export_table(store, "m").rows)
    next(rows)
    store.delete_model("m")
    create(store)
    push(store, "red", range(2 * PAGE), 0)
    with pytest.raises(FailedPrecondition, match="model m was extended, or deleted and another has its name"):
        list(rows)
