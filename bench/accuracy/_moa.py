"""MOA's adaptive random forest and streaming random patches, through CapyMOA, over a stream whose labels come late.

CapyMOA has MOA in its wheel and needs a Java runtime. It is not among our dependencies: `pip install capymoa` into an
environment of its own. Thirty trees each, other settings as they come, seed 1 and 0 (CapyMOA's defaults).
"""

from collections.abc import Callable

import numpy as np
from capymoa.classifier import AdaptiveRandomForestClassifier, StreamingRandomPatches
from capymoa.core import LabeledInstance
from capymoa.stream import Schema

from quercus.experiments.datasets import DataSet
from quercus.specification.attributes import Nominal

TREES = 30


def moa_methods(late: int) -> dict[str, Callable[[DataSet, int], int]]:
    """Return how many of the first rows of a stream each method has right; labels come in blocks of `late` rows."""
    return {
        "MOA-ARF30": _run(lambda schema: AdaptiveRandomForestClassifier(schema, ensemble_size=TREES), late),
        "MOA-SRP30": _run(lambda schema: StreamingRandomPatches(schema, ensemble_size=TREES), late),
    }


def _schema(data: DataSet) -> Schema:
    names = [attribute.name for attribute in data.attributes]
    categories = {
        attribute.name: [f"v{value}" for value in range(len(attribute.values))]
        for attribute in data.attributes
        if isinstance(attribute, Nominal)
    }
    classes = [f"c{klass}" for klass in range(len(data.classes))]
    return Schema.from_custom(
        [*names, "its class"], "its class", categories | {"its class": classes}, data.name
    )


def _run(make: Callable[[Schema], object], late: int) -> Callable[[DataSet, int], int]:
    def run(data: DataSet, rows: int) -> int:
        schema = _schema(data)
        model, right, waiting = make(schema), 0, []
        for i in range(rows):  # a missing value is NaN for MOA too
            row = LabeledInstance.from_array(schema, np.asarray(data.values[i]), int(data.targets[i]))
            right += model.predict(row) == int(data.targets[i])
            waiting.append(row)
            if (i + 1) % late == 0:
                for told in waiting[:-late]:
                    model.train(told)
                del waiting[:-late]
        return right

    return run
