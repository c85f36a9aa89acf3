"""Arrays that come back from a pickle, ready to be written to and for compiled code."""

from collections.abc import Mapping
from typing import Any

import numpy as np


class WritableArrays:
    """Base of classes whose arrays are writable and aligned after unpickling.

    joblib maps the arrays of a pickle into memory, read-only and at any place.
    """

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(
            {
                name: np.require(value, requirements=["W", "A"]) if isinstance(value, np.ndarray) else value
                for name, value in state.items()
            }
        )
