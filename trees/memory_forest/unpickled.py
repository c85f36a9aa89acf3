"""Arrays that are writable and aligned after unpickling, as compiled code needs them."""

from collections.abc import Mapping
from typing import Any

import numpy as np


class WritableArrays:
    """Base of classes whose arrays are writable and aligned after unpickling.

    joblib maps the arrays of a pickle into memory, read-only and possibly unaligned.
    """

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(
            {
                name: np.require(value, requirements=["W", "A"]) if isinstance(value, np.ndarray) else value
                for name, value in state.items()
            }
        )
