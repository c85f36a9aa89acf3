"""The test of a missing value."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real


def is_missing(value: object) -> bool:
    """Return whether a value is ``None``, NaN, or ``NA`` or ``NaT`` of pandas and NumPy, which this does not import.

    Examples
    --------
    >>> [is_missing(value) for value in (None, float("nan"), Decimal("NaN"), 0, "", "nan")]
    [True, True, True, False, False, False]
    """
    if value is None:
        return True
    if isinstance(value, float):
        return value != value  # noqa: PLR0124 - NaN alone differs from itself
    if isinstance(value, Decimal):
        return value.is_nan()
    kind = type(value).__name__
    if kind in {"NAType", "NaTType"}:
        return True
    if kind in {"datetime64", "timedelta64"}:
        return str(value) == "NaT"
    return isinstance(value, Real) and value != value  # noqa: PLR0124
