"""Types of the values in rows and results."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.specification.written_cells import name_cell, range_cell, set_cell

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Between:
    """A number from ``low`` to ``high``, both included: an uncertain value of a row."""

    low: float
    high: float


Value = str | float | frozenset[str] | Between | None
"""A value of a row: a name, a number, a set of names one of which it is, a range in which it lies, or None
(unknown)."""


def cell_of(value: Value) -> str | float | None:
    r"""Return a value as written in a cell of a file, see `quercus.specification.written_cells`.

    Examples
    --------
    >>> cell_of(frozenset({"sun", "rain"})), cell_of(Between(2.0, 9.5)), cell_of(1.5), cell_of("A|B"), cell_of(None)
    ('rain|sun', '2..9.5', 1.5, 'A\\|B', None)
    """
    if isinstance(value, Between):
        return range_cell(value.low, value.high)
    if isinstance(value, frozenset):
        return set_cell(value)
    return name_cell(value) if isinstance(value, str) else value


def uncertain_of_json(given: Any) -> frozenset[str] | Between | None:
    """Return the set or range in a JSON value, as written by `json_of`; None if it is neither.

    Examples
    --------
    >>> uncertain_of_json({"low": 2, "high": 9}), uncertain_of_json(["sun"]), uncertain_of_json({"low": 2})
    (Between(low=2.0, high=9.0), None, None)
    >>> uncertain_of_json({"low": 2, "high": 10**400}) is None
    True
    """
    match given:
        case list() if len(given) > 1 and all(isinstance(each, str) for each in given):
            return frozenset(given)
        case {"low": int() | float() as low, "high": int() | float() as high} if len(given) == 2:
            with suppress(OverflowError):  # an integer of more than 308 digits
                return Between(float(low), float(high))
    return None


def json_of(value: Value) -> Any:
    """Return the JSON form of a value: a list of names for a set, an object for a range.

    Examples
    --------
    >>> json_of(frozenset({"sun", "rain"})), json_of(Between(2.0, 9.0)), json_of(1.5), json_of("A|B")
    (['rain', 'sun'], {'low': 2.0, 'high': 9.0}, 1.5, 'A|B')
    """
    if isinstance(value, Between):
        return {"low": value.low, "high": value.high}
    return sorted(value) if isinstance(value, frozenset) else value
