"""Arguments and results of estimators that ask, by the conventions of scikit-activeml's pool strategies."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput, shown
from quercus.estimators.columns import is_frame
from quercus.specification.parameter import Parameter
from quercus.specification.parameters import MAX_COUNT

Ints = NDArray[np.int64]

BATCH_SIZE = Parameter("batch_size", int, 1, "Rows to ask about at once", 1, MAX_COUNT)


def are_rows(candidates: Any) -> bool:
    """Return whether candidates are separate rows, and not numbers of rows."""
    return is_frame(candidates) or np.ndim(candidates) > 1


def row_numbers(rows: Any, count: int, name: str = "candidates") -> Ints:
    """Return `rows`, the parameter `name`, as checked numbers of `count` rows; None means no rows.

    Raises
    ------
    InvalidInput
        If they are something else.
    """
    numbers = np.asarray([] if rows is None else rows)
    whole = np.issubdtype(numbers.dtype, np.integer) or not numbers.size
    if not whole or numbers.ndim != 1 or not np.all((numbers >= 0) & (numbers < count)):
        raise InvalidInput(name, f"are {shown(rows)}, must be numbers of rows in [0, {count})")
    return numbers.astype(np.int64)
