"""Growing trees again from whole logs in two stores, and comparing them byte by byte."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from quercus.server.growth.engines import learns_again, tree_engine
from quercus.server.growth.relearning import LearningTask, learn_model
from quercus.server.wire.limits import GROWTH_BYTES, GROWTH_ROWS
from quercus.server.wire.models import first_specification
from quercus.storage import CorruptStore, ModelRecord, Store

MAX_EVENTS: Final = 100_000
"""Most events of a log from which trees are grown again, which takes some seconds for each store."""


@dataclass(frozen=True)
class RegrownModels:
    """The models whose trees were grown again.

    Attributes
    ----------
    names : ids of the models, whose trees are equal in both stores.
    too_long : number of models that were left out, because their logs have more than `MAX_EVENTS` events.
    """

    names: tuple[str, ...]
    too_long: int


def regrow_model(store: Store, model: str, as_of: int) -> bytes:
    """Return the stored form of a model's trees, grown only from its log up to an event.

    Parameters
    ----------
    model : id of the model.
    as_of : sequence of the last event.
    """
    record = store.get_model(model)
    specification, attributes = first_specification(record)
    if learns_again(specification):
        return learn_model(store, LearningTask(model, record.key, as_of)).snapshot
    engine, last = tree_engine(specification, attributes), 0
    while last < as_of:
        rows = min(GROWTH_ROWS, as_of - last)
        segment = store.read_log(model, last, rows=rows, size_bytes=GROWTH_BYTES)
        if not segment.parts:
            raise CorruptStore(f"model {model}: the log ends at event {last}, and should have {as_of}")
        engine.fold_events(segment.parts)
        last = segment.last
    return engine.grown_trees(store.vocabulary(model)).encode()


def compare_regrown(
    source_url: str, target_url: str, most: int, notify: Callable[[str], object] = lambda _: None
) -> RegrownModels:
    """Grow the trees of some models again in two stores that should have the same logs, and compare them.

    Parameters
    ----------
    source_url, target_url : URLs of the stores.
    most : most models, spread evenly over those of the target in order of name.
    notify : called with the id of each model before it is grown.

    Raises
    ------
    CorruptStore
        If trees differ.
    """
    with Store.open(source_url) as source, Store.open(target_url) as target:
        models: list[ModelRecord] = []
        while page := target.list_models(models[-1].name if models else ""):
            models += page
        grown = [record for record in models if record.sequence_committed]
        short = [record for record in grown if record.sequence_committed <= MAX_EVENTS]
        spread = np.linspace(0, len(short) - 1, min(most, len(short))).round().astype(int)
        chosen = [short[number] for number in spread.tolist()]
        for record in chosen:
            notify(record.name)
            trees = [
                regrow_model(store, record.name, record.sequence_committed) for store in (source, target)
            ]
            if trees[0] != trees[1]:
                raise CorruptStore(
                    f"model {record.name}: the trees of the moved log differ from those of the old one"
                )
    return RegrownModels(tuple(record.name for record in chosen), len(grown) - len(short))
