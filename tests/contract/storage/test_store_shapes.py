"""A log of several shapes: read in the present one, and kept, moved and checked as it came."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quercus.belief.codec import decode, encode
from quercus.belief.errors import InvalidInput
from quercus.belief.label import ClassSet, Plausibilities
from quercus.labelling.event import EventKind
from quercus.labelling.shapes import Shape, Shapes
from quercus.server.config import Config
from quercus.server.growth.regrowing import regrow_model
from quercus.server.transfer.stored_contents import StoredModel
from quercus.server.wire.models import complete_specification, extension_of
from quercus.storage import (
    AlreadyExists,
    FailedPrecondition,
    KnownModel,
    NewValue,
    Push,
    Stale,
    Store,
    StoreError,
)
from quercus.storage.archive.rebuilding import rebuild_models
from quercus.storage.archive.writing import archive_model
from quercus.storage.rows import find_model
from quercus.v1 import model_pb2

VACUOUS = encode(ClassSet(3))
SIZES = Config().message_limits


def specification() -> bytes:
    attributes = [
        model_pb2.Attribute(name="x", numeric=model_pb2.NumericAttribute(edges=[0.5])),
        model_pb2.Attribute(name="c", nominal=model_pb2.NominalAttribute(values=["red"])),
    ]
    return complete_specification(
        model_pb2.Specification(attributes=attributes, classes=["a", "b"], budget=5)
    ).SerializeToString(deterministic=True)


def extend(store: Store, request_id: str = "r", *, classes: list[str], attributes: list[Any]) -> None:
    request = model_pb2.ExtendModelRequest(classes=classes, attributes=attributes)
    store.extend_model("m", lambda data: extension_of(data, request, SIZES), request_id, lambda *_: True)


NOMINAL = model_pb2.Attribute(name="wind", nominal=model_pb2.NominalAttribute(values=["west"]))


@pytest.fixture
def grown(store: Store) -> Store:
    store.create_model("m", specification(), budget=5)
    said = [encode(ClassSet(1)), VACUOUS, encode(Plausibilities((1.0, 0.5)))]
    store.append_instances("m", ["p", "q", "r"], np.array([[0.1, 0], [0.7, 0], [np.nan, 0]]), said)
    extend(store, "one", classes=["rust"], attributes=[])
    store.append_instances("m", ["s"], np.array([[0.2, 0.0]]), [encode(ClassSet(7))])
    extend(store, "two", classes=["mould"], attributes=[NOMINAL])
    store.append_instances("m", ["t"], np.array([[0.3, 0.0, 0.0]]), [encode(ClassSet(8))])
    return store


def test_events_are_read_in_the_present_shape_and_kept_as_they_came(grown: Store) -> None:
    record = grown.get_model("m")
    assert record.shapes == Shapes((Shape(0, 2, 2), Shape(4, 2, 3), Shape(6, 3, 4)))
    rows = [event for event in grown.read_events("m") if event.kind is EventKind.INSTANCE]
    assert [decode(event.label or b"", 4) for event in rows] == [
        ClassSet(1),
        ClassSet(15),
        Plausibilities((1.0, 0.5, 0.0, 0.0)),
        ClassSet(15),
        ClassSet(8),
    ]
    values = np.array([np.frombuffer(event.values or b"", "<f8") for event in rows])
    np.testing.assert_array_equal(values[:, 2], [np.nan] * 4 + [0.0])
    for step in (1, 2, 100):
        segment = grown.read_log("m", 0, rows=step)
        assert segment.extensions == 2
        assert segment.parts[0].values.shape[1] == 3  # type: ignore[union-attr]
    with grown._database.read() as connection:
        stored = [
            len(data) for data in connection.exec_driver_sql('SELECT "values" FROM log').scalars() if data
        ]
    assert stored == [16, 16, 16, 16, 24]


def test_a_row_that_comes_again_is_known_in_its_new_shape(grown: Store) -> None:
    again = np.array([[0.7, 0.0, np.nan]])
    assert grown.append_instances("m", ["q"], again, [encode(ClassSet(15))]).known == 1
    with pytest.raises(AlreadyExists, match="another label"):
        grown.append_instances("m", ["q"], again, [encode(ClassSet(3))])


def test_who_knows_an_earlier_shape_writes_nothing(grown: Store) -> None:
    push = Push("m", ["z"], np.array([[0.7, 0.0, np.nan]]), [encode(ClassSet(3))], extensions=1)
    (outcome,) = grown.append_group([push])
    assert isinstance(outcome, Stale)
    with pytest.raises(FailedPrecondition, match="extended"):
        KnownModel(3, extensions=1).check_key(grown_row(grown))


def grown_row(store: Store) -> Any:
    with store._database.read() as connection:
        return find_model(connection, "m")


def test_a_request_extends_once_and_is_told_from_another(store: Store) -> None:
    store.create_model("m", specification(), budget=5)
    extend(store, "one", classes=["rust"], attributes=[])
    extend(store, "one", classes=["rust"], attributes=[])
    assert store.get_model("m").sequence_committed == 1
    request = model_pb2.ExtendModelRequest(classes=["mould"])
    with pytest.raises(AlreadyExists, match="other classes or attributes"):
        store.extend_model("m", lambda data: extension_of(data, request, SIZES), "one", lambda *_: False)


def test_an_exported_log_comes_back_in_all_its_shapes_with_the_same_trees(
    grown: Store, tmp_path: Path
) -> None:
    lines = list(grown.dump("m"))
    with Store.open(f"sqlite:///{tmp_path / 'other.db'}") as other:
        other.load(lines, meaning=StoredModel())
        assert other.get_model("m").shapes == grown.get_model("m").shapes
        assert other.read_events("m") == grown.read_events("m")
        assert regrow_model(other, "m", 7) == regrow_model(grown, "m", 7)
        for wrong, reason in (
            ("[0,2,2],[4,2,3],[6,3,4]", "[0,2,2],[3,2,3],[6,3,4]"),
            ("[0,2,2],[4,2,3],[6,3,4]", "[0,2,2],[4,3,3],[6,3,4]"),
            ("[0,2,2],[4,2,3],[6,3,4]", "[0,2,2],[4,2,3],[9,3,4]"),
            ("[0,2,2],[4,2,3],[6,3,4]", "[0,2,2]"),
            ('"shapes":[[0,2,2],[4,2,3],[6,3,4]]', '"shapes":[]'),
        ):
            assert wrong in lines[0]
            damaged = [lines[0].replace(wrong, reason), *lines[1:]]
            with pytest.raises(InvalidInput):
                other.load(damaged, "n", meaning=StoredModel())
    assert grown.find_damage("m", StoredModel) == ""


@pytest.mark.parametrize(("last", "shapes"), [(3, 0), (4, 2), (5, 2), (6, 3), (7, 3)])
def test_an_archive_that_ended_before_an_extension_is_rebuilt(
    grown: Store, tmp_path: Path, last: int, shapes: int
) -> None:
    """It was interrupted there, or left out what was young: the model had no later shape."""
    east = [NewValue(2, 0, "east")]
    grown.append_instances("m", ["u"], np.array([[0.3, 0.0, 1.0]]), [encode(ClassSet(8))], east)

    def stop(done: int, _: int) -> None:
        if done > last:
            raise InterruptedError

    with pytest.raises(StoreError, match="cannot be written"):
        archive_model(grown, "m", tmp_path / "archive", piece_events=last, progress=stop)
    with Store.open(f"sqlite:///{tmp_path / 'other.db'}") as other:
        (rebuilt,) = rebuild_models(other, tmp_path / "archive", StoredModel)
        assert rebuilt.events == last
        assert len(other.get_model("m").shapes.steps) == shapes
        assert other.vocabulary("m") == ({2: ("east",)} if last > 5 else {})


def test_an_archive_is_added_to_and_rebuilt(grown: Store, tmp_path: Path) -> None:
    archive_model(grown, "m", tmp_path / "archive", piece_events=3)
    extend(grown, "three", classes=["moss"], attributes=[])
    archive_model(grown, "m", tmp_path / "archive", piece_events=3)
    with Store.open(f"sqlite:///{tmp_path / 'other.db'}") as other:
        (rebuilt,) = rebuild_models(other, tmp_path / "archive", StoredModel)
        assert rebuilt.events == 8
        assert other.get_model("m").shapes == grown.get_model("m").shapes
        assert other.read_events("m") == grown.read_events("m")
