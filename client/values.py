"""Types of what rows and results hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Value = str | float | None


@dataclass(frozen=True)
class Between:
    """A number from ``low`` to ``high``, both included: an uncertain value of a row to classify."""

    low: float
    high: float
