"""When a tree has nothing more to learn from an answer."""

import numpy as np

from quercus.trees.ask.query import QueryContext
from quercus.trees.growth.sample import Sample

FIRST = 2
"""So many told rows per class are enough to begin with, though a class may have none."""


def is_settled(context: QueryContext) -> bool:
    """Return whether no split is contested, and every leaf has a row of which something is known.

    A tree of one answer is a leaf of one class, and contests nothing. So it is never settled before every class has a
    row that is known to be of it, or twice as many rows as there are classes are told.
    """
    sample = context.sample
    told = ~sample.table.vacuous[sample.ids]
    if _is_beginning(sample, int(told.sum())) or next(iter(context.growth.contested()), None) is not None:
        return False
    leaf, _ = context.growth.leaves()
    return len(np.unique(leaf[told])) == len(np.unique(leaf))


def _is_beginning(sample: Sample, told: int) -> bool:
    contours = sample.table.contours
    if told >= FIRST * contours.shape[1]:
        return False
    precise = np.unique(sample.ids[sample.table.precise[sample.ids]])
    return bool(np.unique(contours[precise].argmax(axis=1)).size < contours.shape[1])
