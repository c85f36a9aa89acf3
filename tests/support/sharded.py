"""Rows for trees of shards, and the comparison of such trees, to the bit."""

from dataclasses import fields

import numpy as np

from quercus.belief.frame import Frame
from quercus.specification.attributes import Nominal, Numeric
from quercus.specification.model import Specification

ATTRIBUTES = (
    Nominal("colour", ("red", "green", "blue")),
    Numeric("x", bins=4),
    Numeric("y", cuts=6),
    Nominal("place", ("here",)),  # others are learned
)


def sharded_rows(seed=0, rows=600, **changes):
    """Names, learned names, bins, cuts, gaps, and labels of which many are uncertain."""
    rng = np.random.default_rng(seed)
    values = np.column_stack(
        [rng.integers(3, size=rows), rng.normal(size=(rows, 2)), rng.integers(5, size=rows)]
    )
    values[rng.random(values.shape) < 0.08] = np.nan
    classes = (values[:, 0] == 1) + (values[:, 2] > 0.3) + (rng.random(rows) < 0.2)
    contours = np.where(rng.random((rows, 3)) < 0.3, rng.integers(0, 3, (rows, 3)) / 2, 0.0)
    contours[np.arange(rows), classes.astype(int) % 3] = 1.0
    contours[rng.random(rows) < 0.3] = 1.0
    settings = {"alpha": 0.8, "warmup_rows": 200, "min_instances": 2}
    return Specification(ATTRIBUTES, Frame(("a", "b", "c")), **settings | changes), values, contours


def assert_same_trees(one, other):
    for field in fields(one):
        left, right = (np.asarray(getattr(tree, field.name)) for tree in (one, other))
        assert left.dtype == right.dtype
        assert left.tobytes() == right.tobytes(), field.name
