"""Weights of rows for learners that count rows."""

import numpy as np

from quercus.belief.errors import InvalidInput
from quercus.trees.learners.table import Table

MAX_COUNTED = 10_000_000  # rows that weighted ones may count as


def counted(table: Table) -> Table:
    """Return the table with every row as often as it weighs, without mass functions.

    Raises
    ------
    InvalidInput
        When a weight is no whole number, or they sum to more than 10,000,000.
    """
    wrong = table.weights != np.floor(table.weights)
    if wrong.any():
        row = int(wrong.argmax())
        raise InvalidInput(
            f"weights[{row}]", f"is {table.weights[row]}, must be a whole number: rows are counted"
        )
    if (table.weights == 1).all():
        return table
    total = float(table.weights.sum())
    if total > MAX_COUNTED:
        raise InvalidInput("weights", f"sum to {total:g}, must be {MAX_COUNTED:,} at most: rows are counted")
    times = table.weights.astype(np.int64)
    repeated = table.take(np.repeat(np.arange(len(table)), times))
    return Table(repeated.values, table.attributes, repeated.contours, np.ones(len(repeated)))
