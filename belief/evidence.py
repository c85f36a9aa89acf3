"""The evidence of one instance, folded from its events (docs/labelling.md).

`known_after` is the only implementation of the fold. It takes contours, or any other labels that can be combined.

Under Dempster's rule contours multiply up to a constant, and the likelihood ignores a constant
(theory §1.3), so the evidence stays a contour, rescaled to maximum 1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from quercus.belief.contour import check_contour, is_precise
from quercus.belief.rules import check_reliability

K = TypeVar("K")
J = TypeVar("J")


@dataclass(frozen=True, slots=True, eq=False)
class UpdatedLabel:
    """A label after an answer.

    Attributes
    ----------
    contour
        float64 (l,), maximum 1.
    conflict
        True if the answer and the earlier evidence exclude each other; then the answer replaces the evidence.
    """

    contour: NDArray[np.float64]
    conflict: bool


def update(known: NDArray[np.float64], answer: NDArray[np.float64], reliability: float) -> UpdatedLabel:
    """Combine an answer with the earlier evidence.

    A certain answer (one class, reliability 1) replaces the evidence. Any other is discounted,
    ``r pl + 1 - r``, and multiplied into it.

    Parameters
    ----------
    known
        Contour (l,) before the answer.
    answer
        Contour (l,) of the answer.
    reliability
        Reliability of the oracle, in [0, 1].

    Raises
    ------
    InvalidInput
        If one of the three is invalid.

    Examples
    --------
    >>> update(np.array([1.0, 1.0, 0.5]), np.array([0.0, 1.0, 0.0]), 0.5).contour.tolist()
    [0.5, 1.0, 0.25]
    """
    before = check_contour(known, len(known), "known")
    said = check_contour(answer, len(before), "answer")
    r = check_reliability(reliability)
    if is_precise(said) and r == 1.0:
        return UpdatedLabel(np.sign(said), conflict=not before[np.argmax(said)] > 0.0)
    discounted = _to_one(r * said + (1.0 - r))
    product = _to_one(before) * discounted  # both of maximum 1, so that small contours do not underflow
    if not product.any():
        return UpdatedLabel(discounted, conflict=True)
    return UpdatedLabel(_to_one(product), conflict=False)


class ReportedLabel(NamedTuple, Generic[K]):
    """The label that an event reports for an instance.

    Attributes
    ----------
    label
        None if the event reports no label: a refusal, or a correction that retracts the answers.
    reliability
        In [0, 1].
    replaces
        True for a correction: it replaces all earlier answers.
    """

    label: K | None
    reliability: float = 1.0
    replaces: bool = False

    def with_label(self, convert: Callable[[K], J]) -> "ReportedLabel[J]":
        """Return the report with its label converted."""
        label = None if self.label is None else convert(self.label)
        return ReportedLabel(label, self.reliability, self.replaces)


def known_after(pushed: K, known: K, reported: ReportedLabel[K], combine: Callable[[K, K, float], K]) -> K:
    """Return the evidence of an instance after an event; `pushed` itself if no answer counts any more.

    Parameters
    ----------
    pushed
        The label that the instance was pushed with.
    known
        The evidence before the event.
    reported
        The label that the event reports.
    combine
        Returns the evidence after an answer, given the evidence before it, the answer and its reliability.

    Examples
    --------
    >>> pushed = np.array([1.0, 1.0])
    >>> known = known_after(pushed, pushed, ReportedLabel(np.array([0.0, 1.0])), combined_contour)
    >>> known.tolist(), known_after(pushed, known, ReportedLabel(None, replaces=True), combined_contour).tolist()
    ([0.0, 1.0], [1.0, 1.0])
    """
    before = pushed if reported.replaces else known
    return before if reported.label is None else combine(before, reported.label, reported.reliability)


def combined_contour(
    known: NDArray[np.float64], answer: NDArray[np.float64], reliability: float
) -> NDArray[np.float64]:
    """Return the contour after an answer, see `update`."""
    return update(known, answer, reliability).contour


def _to_one(contour: NDArray[np.float64]) -> NDArray[np.float64]:
    scaled: NDArray[np.float64] = contour / contour.max()
    return scaled
