"""Models with the service's defaults: only attributes, classes and perhaps the learner are given."""

from collections.abc import Sequence

import numpy as np

from quercus.belief.codec import encode_sets
from quercus.experiments.datasets import DataSet
from quercus.server.growth.engines import TreeEngine, tree_engine
from quercus.server.wire.models import complete_specification, specification_of
from quercus.specification.attributes import Attribute, Nominal
from quercus.storage import InstanceColumns
from quercus.v1 import model_pb2

TREE, FOREST = "abc45", "active-forest"


def stored_specification(
    attributes: Sequence[Attribute], classes: Sequence[str], learner: str = FOREST
) -> bytes:
    """Return the specification that the service stores if only the learner is chosen and all else is default."""
    message = model_pb2.Specification(classes=classes, budget=1_000)
    for attribute in attributes:
        added = message.attributes.add(name=attribute.name)
        if isinstance(attribute, Nominal):
            added.nominal.values.extend(attribute.values)
        else:
            added.numeric.SetInParent()
    message.learner.name = learner
    return complete_specification(message).SerializeToString(deterministic=True)


def engine_of(data: DataSet, learner: str = FOREST) -> TreeEngine:
    """Return the engine of a model in the service's grower, with default settings, before any row."""
    return tree_engine(specification_of(stored_specification(data.attributes, data.classes, learner)))


def rows_of(data: DataSet, start: int, stop: int) -> InstanceColumns:
    """Return rows of a log, which begins with event 1, all of them labelled."""
    return InstanceColumns(start + 1, data.values[start:stop], encode_targets(data.targets[start:stop]))


def encode_targets(targets: np.ndarray) -> list[bytes]:
    """Return labels that leave one class, as the log stores them."""
    return encode_sets((1 << targets).astype(np.uint64))
