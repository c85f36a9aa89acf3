"""Weights of rows for learners that count rows: a row of weight 2 counts as two rows."""

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput
from quercus.trees.learners.table import Table

MAX_COUNTED = 10_000_000  # maximum sum of weights


def repeat_rows(table: Table) -> Table:
    """Return the table with each row repeated by its weight, without mass functions.

    Raises
    ------
    InvalidInput
        If a weight is not a whole number, or the weights sum to more than 10,000,000.
    """
    wrong = ~are_whole(table)
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
    ones = np.ones(len(repeated))
    return Table(repeated.values, table.attributes, repeated.contours, ones, parts=repeated.parts)


def are_whole(table: Table) -> NDArray[np.bool_]:
    """Return which weights are whole numbers, (n,)."""
    found: NDArray[np.bool_] = table.weights == np.floor(table.weights)
    return found


def counted_or_weighed(table: Table) -> tuple[Table, NDArray[np.float64] | None]:
    """Return the table with each row repeated by its weight and None or, for fractional weights, the table and these.

    The likelihood of a row of weight w is that of the row to the power w (theory §2.1), so both are equivalent.
    """
    if are_whole(table).all():
        return repeat_rows(table), None
    rows = table.take(table.weights > 0)
    return rows, rows.weights
