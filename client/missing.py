"""The test of a missing value."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_missing(cell: Any) -> bool:
    """True for ``None``, NaN, and pandas' ``NA`` and ``NaT`` (pandas is never imported for the question).

    Examples
    --------
    >>> [is_missing(cell) for cell in (None, float("nan"), np.float32("nan"), 0, "", "nan")]
    [True, True, True, False, False, False]
    """
    if cell is None or type(cell).__name__ in {"NAType", "NaTType"}:
        return True
    return isinstance(cell, float | np.floating) and bool(np.isnan(cell))
