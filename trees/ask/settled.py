"""The test whether a tree is settled, that is, answers would not change it any more."""

import numpy as np

from quercus.trees.ask.query import QueryContext

FIRST_LABELS = 2
"""Number of labelled rows per class, on average, that suffices even if a class has none."""


def is_settled(context: QueryContext) -> bool:
    """Return whether no split is contested, and every leaf has a labelled row.

    A tree after one answer is a leaf of one class, without contested splits. Therefore no tree is settled before every
    class has a row that is known to belong to it, or the number of labelled rows is twice the number of classes.
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
