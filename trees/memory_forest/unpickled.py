"""Arrays that come back from a pickle, ready for compiled code."""

from collections.abc import Mapping
from typing import Any

import numpy as np


class WritableArrays:
    """What is unpickled has arrays that may be written to.

    joblib maps the arrays of a pickle into memory so that nobody can write to them. To Numba these are of another type:
    kernels would be compiled again, for seconds.
    """

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(
            {
                name: np.require(value, requirements="W") if isinstance(value, np.ndarray) else value
                for name, value in state.items()
            }
        )
