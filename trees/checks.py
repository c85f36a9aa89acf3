"""Bounds that several parts of a specification have."""

from quercus.belief.errors import InvalidInput, shown

MAX_COUNT = 2**31 - 1  # of budget, min_instances, max_depth, warmup_rows


PREDICTION_LEVEL = 0.15
"""Level of the likelihood cut that bounds of a prediction are taken over, unless told; see docs/estimators.md."""


def check_alpha(alpha: float, field: str = "alpha") -> float:
    """Return a level as a float if it lies in [0, 1].

    Raises
    ------
    InvalidInput
        When it does not.
    """
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 <= alpha <= 1:
        raise InvalidInput(field, f"is {shown(alpha)}, must lie in [0, 1]")
    return float(alpha)


def check_count(value: object, field: str, low: int, high: int = MAX_COUNT) -> int:
    """Return `value` if it is a whole number in [`low`, `high`].

    Raises
    ------
    InvalidInput
        When it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidInput(field, f"is {shown(value)}, must be a whole number in [{low}, {high}]")
    return value
