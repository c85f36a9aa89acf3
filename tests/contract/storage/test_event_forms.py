"""Every field of an event comes through all of its forms: the table, exported lines, archives, models made of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import insert, select, update

from quercus.belief.errors import InvalidInput
from quercus.labelling.event import EVENT_FIELDS, EVENT_TYPES
from quercus.storage import Event, EventKind, Push, Store, file_url
from quercus.storage.admin.transfer_log import LogReader
from quercus.storage.admin.verify import verify_store
from quercus.storage.archive.rebuilding import rebuild_models
from quercus.storage.archive.writing import archive_model
from quercus.storage.schema import log, model

LATER = [kind for kind in EventKind if kind is not EventKind.INSTANCE]
VALUES = {str: "x", int: 1, float: 0.5, bool: True, bytes: b"what it says"}


class AnyContent:
    """A validator of a log that takes all bytes."""

    def check_head(self, *_: Any) -> None:
        """Take it."""

    def check_events(self, *_: Any) -> None:
        """Take them."""


def cells(kind: EventKind, sequence: int) -> dict[str, Any]:
    """Return an event of a kind with a value in each field that it may have."""
    of_all = {"sequence": sequence, "kind": kind, "author": "ann", "reliability": 0.5, "conflict": False}
    return (
        {
            name: VALUES[EVENT_TYPES[name]]
            for name, stored in EVENT_FIELDS.items()
            if kind in stored.needed | stored.allowed
        }
        | of_all
        | {"created_at": 1e9 + sequence}
    )


@pytest.fixture
def filled(store: Store) -> list[Event]:
    """The events of a model: a row, an event of each other kind, and one that joins the statement."""
    store.create_model("m", b"specification", budget=9)
    store.append_group([Push("m", ["a"], np.ones((1, 2)), [b"x"], displays=[b"beside"])])
    with store._database.write() as connection:
        key = connection.execute(select(model.c.id)).scalar_one()
        for sequence, kind in enumerate(LATER, 2):
            connection.execute(insert(log).values(model_id=key, clock=5.0, **cells(kind, sequence)))
        last = len(LATER) + 2
        joined = {name: cell for name, cell in cells(EventKind.CORRECTION, last).items() if name != "query"}
        connection.execute(insert(log).values(model_id=key, clock=5.0, **joined))
        counted = {
            "sequence_committed": last,
            "queries_answered": 1,
            "budget": 9,
            "specification": b"what it says",
        }
        connection.execute(update(model).values(counted))
    return store.read_events("m", 0, 100)


def test_every_field_of_an_event_comes_through_all_of_its_forms(
    store: Store, filled: list[Event], tmp_path: Path
) -> None:
    for event in filled[1:-1]:
        given = cells(event.kind, event.sequence)
        assert {name: getattr(event, name) for name in given if name != "id"} == given
    assert store.load(list(store.dump("m")), "copy") == ("copy", len(filled))
    archive_model(store, "m", tmp_path / "archive")
    url = file_url(tmp_path / "rebuilt.db")
    with Store.open(url) as rebuilt:
        rebuild_models(rebuilt, tmp_path / "archive", AnyContent)
        found = [store.read_events("copy", 0, 100), rebuilt.read_events("m", 0, 100)]
        assert list(rebuilt.dump("m"))[1:] == list(store.dump("m"))[1:]
    assert found == [filled, filled]
    assert verify_store(url) == []


def test_a_field_that_an_event_of_its_kind_must_or_may_not_have_is_named(
    store: Store, filled: list[Event]
) -> None:
    assert [event.kind for event in filled[1:-1]] == LATER
    row = {"sequence": 1, "kind": 1, "id": "a", "values": b"8" * 8, "label": b"", "author": "source",
           "reliability": 1.0, "conflict": False, "created_at": 1.0}  # fmt: skip
    for kind in LATER:
        for name, stored in EVENT_FIELDS.items():
            event = cells(kind, 2)
            if kind in stored.needed:
                del event[name]
                words = f"lacks {name}"
            elif stored.may_be_null and kind not in stored.allowed:
                event[name] = VALUES[EVENT_TYPES[name]]
                words = f"has {name}"
            else:
                continue
            reader = LogReader()
            reader.check_event(row, "row 1")
            with pytest.raises(InvalidInput, match=f"row 2: {words}, which an event of kind {int(kind)}"):
                reader.check_event(event, "row 2")


def test_the_columns_of_the_log_are_the_fields_of_an_event() -> None:
    assert log.columns.keys() == ["model_id", *EVENT_FIELDS, "clock"]
