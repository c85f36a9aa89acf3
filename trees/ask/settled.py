"""The test whether a tree has nothing more to learn from answers."""

import numpy as np

from quercus.trees.ask.query import QueryContext

FIRST_LABELS = 2
"""Labelled rows per class that are enough to begin with, even if a class has none."""


def is_settled(context: QueryContext) -> bool:
    """Return whether no split is contested, and every leaf has a labelled row.

    A tree of one answer is a leaf of one class, and contests nothing. So a tree is never settled before every class has
    a row that is known to belong to it, or twice as many rows as there are classes are labelled.
    """
    sample, contours = context.sample, context.sample.table.contours
    labelled = ~sample.table.vacuous[sample.ids]
    if labelled.sum() < FIRST_LABELS * contours.shape[1]:
        precise = np.unique(sample.ids[sample.table.precise[sample.ids]])
        if np.unique(contours[precise].argmax(axis=1)).size < contours.shape[1]:
            return False
    if next(iter(context.growth.contested_nodes()), None) is not None:
        return False
    leaf, _ = context.growth.row_leaves()
    return len(np.unique(leaf[labelled])) == len(np.unique(leaf))
