"""What estimators that ask take and return, by the conventions of scikit-activeml's pool strategies."""

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
    """Tell whether candidates are rows of their own, and not numbers of rows."""
    return is_frame(candidates) or np.ndim(candidates) > 1


def row_numbers(candidates: Any, count: int) -> Ints:
    """Return candidates that are numbers of `count` rows.

    Raises
    ------
    InvalidInput
        When they are something else.
    """
    numbers = np.asarray(candidates)
    whole = np.issubdtype(numbers.dtype, np.integer) or not numbers.size
    if not whole or (numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) < count):
        raise InvalidInput("candidates", f"are {shown(candidates)}, must be numbers of rows in [0, {count})")
    return numbers.astype(np.int64)
