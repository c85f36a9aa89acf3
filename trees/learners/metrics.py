"""Metrics of predictions that may be sets of classes (Zaffalon, Corani, Mauá 2012).

A prediction is a set ``Z`` of classes. Its discounted accuracy ``x`` is ``1/|Z|`` if the true class is in ``Z``, else
0: the expected score of a random guess among its members. To a risk-averse user, a cautious set is worth more than the
guess. Utility is a quadratic function of ``x`` with ``u(0) = 0`` and ``u(1) = 1``; it is determined by the utility of a
correct set of two: .65 (u65) or .80 (u80) instead of .5.

Source: Zaffalon, M., Corani, G., Mauá, D.: Evaluating credal classifiers by utility-discounted predictive accuracy.
International Journal of Approximate Reasoning 53(8), 2012.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quercus.belief.arrays import Bools, Floats
from quercus.belief.errors import InvalidInput
from quercus.trees.rules.ties import TIE


def undominated(belief: ArrayLike, plausibility: ArrayLike) -> Bools:
    """Return the set-valued predictions by interval dominance on ``[Bel, Pl]``.

    A class is left out when another one's belief exceeds its plausibility by more than 1e-9.

    Parameters
    ----------
    belief, plausibility
        (n, l) bounds of each class in each row.

    Returns
    -------
    (n, l), true for the classes in the set; never empty where ``Bel ≤ Pl``.

    Raises
    ------
    InvalidInput
        When the two are not matrices of one shape.

    Examples
    --------
    >>> undominated([[0.5, 0.1, 0.0]], [[0.9, 0.6, 0.4]]).tolist()
    [[True, True, False]]
    """
    lower, upper = np.asarray(belief, dtype=np.float64), np.asarray(plausibility, dtype=np.float64)
    if lower.ndim != 2 or lower.shape != upper.shape:
        raise InvalidInput(
            "plausibility", f"has shape {upper.shape}, must be (n, l) as belief, {lower.shape}"
        )
    best = lower.max(axis=1, keepdims=True)
    return np.asarray(upper >= best - TIE)


def undominated_mask(belief: Sequence[float], plausibility: Sequence[float]) -> int:
    """Return the set-valued prediction of one row as a bit mask: for one row, plain numbers are faster than arrays.

    Parameters
    ----------
    belief, plausibility
        (l,) see `undominated`.

    Examples
    --------
    >>> bin(undominated_mask([0.5, 0.1, 0.0], [0.9, 0.6, 0.4]))
    '0b11'
    """
    least = max(belief) - TIE
    return sum(1 << c for c, most in enumerate(plausibility) if most >= least)


def discounted_accuracy(sets: ArrayLike, truth: ArrayLike) -> Floats:
    """Return the discounted accuracy of each row, (n,): ``1/|Z|`` when the true class is in ``Z``, else 0.

    Parameters
    ----------
    sets
        (n, l) bool, true for the classes in the predicted set; no row is empty.
    truth
        (n,) indices of the true classes, in [0, l).

    Raises
    ------
    InvalidInput
        When a set is empty, a class is out of bounds, or the shapes do not fit.

    Examples
    --------
    >>> discounted_accuracy([[True, True, False], [False, False, True]], [1, 0]).tolist()
    [0.5, 0.0]
    """
    chosen, true = _checked_sets(sets, truth)
    inside = chosen[np.arange(len(true)), true]
    return np.where(inside, 1.0 / chosen.sum(axis=1), 0.0)


def u65(sets: ArrayLike, truth: ArrayLike) -> float:
    """Return the mean of ``1.6 x - .6 x²`` over the rows, with ``x`` and the arguments of `discounted_accuracy`.

    Examples
    --------
    >>> round(u65([[True, True, False]], [1]), 12)
    0.65
    """
    x = discounted_accuracy(sets, truth)
    return float((x + 0.6 * x * (1 - x)).mean())  # the same polynomial, in a form that is exact at x = 1


def u80(sets: ArrayLike, truth: ArrayLike) -> float:
    """Return the mean of ``2.2 x - 1.2 x²`` over the rows, with ``x`` and the arguments of `discounted_accuracy`.

    Examples
    --------
    >>> round(u80([[True, True, False]], [1]), 12)
    0.8
    """
    x = discounted_accuracy(sets, truth)
    return float((x + 1.2 * x * (1 - x)).mean())


def expected_accuracy(pignistic: ArrayLike, predicted: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Return the mean probability that predictions are right, according to uncertain labels (theory §5).

    For a row it is ``BetP`` of the predicted class under the row's label; with precise labels, the mean is the
    accuracy.

    Parameters
    ----------
    pignistic
        (n, l) pignistic probability of each class under the label of each row.
    predicted
        (n,) indices of the predicted classes, in [0, l).
    weights
        (n,) weight of each row; None: all the same.

    Raises
    ------
    InvalidInput
        When a class is out of bounds or the shapes do not fit.

    Examples
    --------
    >>> expected_accuracy([[1.0, 0.0], [0.5, 0.5]], [0, 0])
    0.75
    """
    chances = np.asarray(pignistic, dtype=np.float64)
    _, klass = _checked_sets(np.ones(chances.shape, dtype=bool), predicted)
    counted = None if weights is None else np.asarray(weights, dtype=np.float64)
    return float(np.average(chances[np.arange(len(klass)), klass], weights=counted))


@dataclass(frozen=True, slots=True)
class SetScores:
    """The usual scores of set-valued predictions.

    Parameters
    ----------
    u65, u80
        Utility-discounted accuracies.
    discounted_accuracy
        Mean discounted accuracy.
    determinacy
        Share of the rows whose set is a single class.
    single_accuracy
        Accuracy on these rows; NaN if there are none.
    set_accuracy
        Share of the other rows whose set contains the true class; NaN if there are none.
    set_size
        Mean number of classes in the sets of the other rows; NaN if there are none.
    """

    u65: float
    u80: float
    discounted_accuracy: float
    determinacy: float
    single_accuracy: float
    set_accuracy: float
    set_size: float


def set_scores(sets: ArrayLike, truth: ArrayLike) -> SetScores:
    """Return all scores of set-valued predictions; arguments and errors as in `discounted_accuracy`.

    Examples
    --------
    >>> scores = set_scores([[True, True, False], [False, False, True]], [1, 2])
    >>> scores.determinacy, scores.single_accuracy, scores.set_accuracy, scores.set_size
    (0.5, 1.0, 1.0, 2.0)
    """
    chosen, true = _checked_sets(sets, truth)
    sizes = chosen.sum(axis=1)
    inside = chosen[np.arange(len(true)), true]
    single = sizes == 1
    return SetScores(
        u65=u65(chosen, true),
        u80=u80(chosen, true),
        discounted_accuracy=float(discounted_accuracy(chosen, true).mean()),
        determinacy=float(single.mean()),
        single_accuracy=_mean_score(inside[single]),
        set_accuracy=_mean_score(inside[~single]),
        set_size=_mean_score(sizes[~single]),
    )


def _mean_score(values: NDArray[np.generic]) -> float:
    return float(values.mean()) if values.size else float("nan")


def _checked_sets(sets: ArrayLike, truth: ArrayLike) -> tuple[Bools, NDArray[np.int64]]:
    chosen, true = np.asarray(sets), np.asarray(truth)
    if chosen.ndim != 2 or chosen.dtype != np.bool_:
        raise InvalidInput("sets", f"must be bool (n, l), are {chosen.dtype} of shape {chosen.shape}")
    if true.shape != (len(chosen),) or not np.issubdtype(true.dtype, np.integer) or not true.size:
        raise InvalidInput("truth", f"must be {len(chosen)} > 0 whole numbers, are {true.dtype} {true.shape}")
    empty = ~chosen.any(axis=1)
    if empty.any():
        raise InvalidInput(f"sets[{int(empty.argmax())}]", "is empty, must hold at least one class")
    wrong = (true < 0) | (true >= chosen.shape[1])
    if wrong.any():
        row = int(wrong.argmax())
        raise InvalidInput(f"truth[{row}]", f"is {true[row]}, must lie in [0, {chosen.shape[1]})")
    return chosen, true.astype(np.int64)
