"""Contours: the plausibility of each single class (theory §1.3).

A contour need not reach 1, nor sum to 1: the evidential likelihood ignores a constant factor in a row, so a
subnormal contour is evidence like any other. Only a contour of zeros is invalid: it rules out every class.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quercus.belief.errors import InvalidInput, shown


def check_contour(values: ArrayLike, size: int, field: str = "contour") -> NDArray[np.float64]:
    """Return `values` as a fresh contour, float64 (size,).

    Parameters
    ----------
    values
        One plausibility a class, in the order of the frame.
    size
        Number of classes.
    field
        Name of the input in error messages.

    Raises
    ------
    InvalidInput
        When there are not `size` values, one is not a number in [0, 1], or all are zero.

    Examples
    --------
    >>> check_contour([0.2, 1, 0.7], 3).tolist()
    [0.2, 1.0, 0.7]
    """
    array = _as_numbers(values, field)
    if array.ndim != 1 or len(array) != size:
        raise InvalidInput(
            field, f"has shape {array.shape}, must have one plausibility for each of {size} classes"
        )
    outside = ~((array >= 0.0) & (array <= 1.0))  # also true for NaN
    if outside.any():
        at = int(np.argmax(outside))
        raise InvalidInput(f"{field}[{at}]", f"is {float(array[at])!r}, must lie in [0, 1]")
    if not array.any():
        raise InvalidInput(field, "is zero for every class, at least one class must be plausible")
    return array


def check_contours(values: ArrayLike, size: int, field: str = "contours") -> NDArray[np.float64]:
    """Return `values` as fresh contours, float64 (n, size), one per row; ``n`` may be 0.

    Raises
    ------
    InvalidInput
        As :func:`check_contour`, naming the first bad row.
    """
    array = _as_numbers(values, field)
    if array.ndim != 2 or array.shape[1] != size:
        raise InvalidInput(
            field, f"has shape {array.shape}, must have rows of {size} plausibilities, one per class"
        )
    good = ((array >= 0.0) & (array <= 1.0)).all(axis=1) & array.any(axis=1)
    if not good.all():
        row = int(np.argmin(good))
        check_contour(array[row], size, f"{field}[{row}]")
    return array


def is_precise(contour: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return whether exactly one class is plausible: bool () for a contour (l,), bool (n,) for (n, l)."""
    return np.asarray(np.count_nonzero(contour, axis=-1) == 1)


def is_vacuous(contour: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return whether all classes are equally plausible: bool () for a contour (l,), bool (n,) for (n, l).

    Any constant except 0 counts. Equality is exact.
    """
    first = contour[..., :1]
    return np.asarray(((contour == first) & (first > 0.0)).all(axis=-1))


def largest_one(contours: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return contours (n, l), each rescaled to maximum 1, so that products of tiny plausibilities do not underflow.

    Examples
    --------
    >>> largest_one(np.array([[0.25, 0.5], [1e-323, 5e-324]])).tolist()
    [[0.5, 1.0], [1.0, 0.5]]
    """
    scaled: NDArray[np.float64] = contours / contours.max(axis=1, keepdims=True, initial=0.0)
    return scaled


def consonant_pignistic(contours: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the pignistic probabilities of the consonant mass functions of contours (n, l) of maximum 1 (theory §1.3).

    Examples
    --------
    >>> consonant_pignistic(np.array([[1.0, 0.5, 0.0]])).tolist()
    [[0.75, 0.25, 0.0]]
    """
    order = np.argsort(-contours, axis=1, kind="stable")
    falling = np.take_along_axis(contours, order, axis=1)
    steps = falling - np.column_stack([falling[:, 1:], np.zeros(len(contours))])
    shares = steps / np.arange(1, contours.shape[1] + 1)
    found = np.empty(contours.shape)
    np.put_along_axis(found, order, np.cumsum(shares[:, ::-1], axis=1)[:, ::-1], axis=1)
    return found


def _as_numbers(values: ArrayLike, field: str) -> NDArray[np.float64]:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(field, f"is {shown(values)}, must be numbers in [0, 1]") from None
