"""Arrays that come back from a pickle, ready for compiled code."""

from collections.abc import Mapping
from typing import Any

import numpy as np


class WritableArrays:
    """Base of classes whose arrays are writable after unpickling.

    joblib maps the arrays of a pickle into memory read-only. Numba gives read-only arrays another type, for which
    kernels would be compiled again, for seconds.
    """

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(
            {
                name: np.require(value, requirements="W") if isinstance(value, np.ndarray) else value
                for name, value in state.items()
            }
        )
