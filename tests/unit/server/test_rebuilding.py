"""A model that is rebuilt from an archive grows, to the byte, what the original model grew."""

from pathlib import Path

import numpy as np
import pytest
from support import words
from support.published import published_message

from quercus.belief.codec import encode
from quercus.belief.label import ClassSet
from quercus.server.growth.grower import Grower
from quercus.server.transfer.stored_contents import StoredModel
from quercus.server.wire.models import complete_specification
from quercus.storage import NewValue, file_url
from quercus.storage.archive.rebuilding import rebuild_models
from quercus.storage.archive.writing import archive_model
from quercus.storage.store import Store
from quercus.v1 import model_pb2

ATTRIBUTES = [
    model_pb2.Attribute(name="X", nominal=model_pb2.NominalAttribute(values=["a", "b"])),
    model_pb2.Attribute(name="Y", numeric=model_pb2.NumericAttribute(bins=2)),
]
MODELS = {
    "tree": published_message(
        attributes=ATTRIBUTES, classes=["p", "q"], budget=9, warmup_rows=2, strategy="published"
    ),
    "forest": model_pb2.Specification(attributes=ATTRIBUTES, classes=["p", "q"], budget=9),
}
ROWS = 300


def push(store: Store, model: str, first: int, last: int) -> None:
    chance = np.random.default_rng(first)
    values = np.column_stack([np.arange(first, last) % 3, chance.normal(size=last - first)])
    labels = [encode(ClassSet(3 if k % 2 else 1 + k // 2 % 2)) for k in range(first, last)]
    ids = [f"i{number}" for number in range(first, last)]
    store.append_instances(model, ids, values, labels, [] if first else [NewValue(0, 0, "c")])


def grown(store: Store, model: str) -> bytes:
    grower = Grower(store, interval_s=0.0)
    while grower.run_round():
        pass
    record = store.get_model(model)
    assert record.sequence_grown == record.sequence_committed
    return bytes(store.snapshot(model).data)


@pytest.mark.parametrize("model", MODELS)
def test_a_rebuilt_model_grows_the_same(model: str, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    with Store.open(file_url(tmp_path / "store.db")) as store:
        specification = complete_specification(MODELS[model])
        store.create_model(model, specification.SerializeToString(deterministic=True), budget=9)
        push(store, model, 0, ROWS // 2)
        archive_model(store, model, archive, piece_events=40)
        push(store, model, ROWS // 2, ROWS)
        grown(store, model)
        (query,) = store.lease(model, "ann", 1, 60.0).queries
        words.answer(store, model, query.number, query.token, encode(ClassSet(1)), 0.9)
        archive_model(store, model, archive, piece_events=40)
        wanted, last = grown(store, model), store.get_model(model).sequence_committed
    with Store.open(file_url(tmp_path / "other.db")) as other:
        (made,) = rebuild_models(other, archive, StoredModel)
        assert (made.name, made.events) == (model, last)
        assert grown(other, model) == wanted
