"""How an oracle's answer changes what is known of one instance (docs/labelling.md).

Under Dempster's rule contours multiply up to a constant, and the likelihood ignores a constant
(theory §1), so what is known stays a contour, rescaled to maximum 1.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quercus.belief.contour import check_contour, is_precise
from quercus.belief.rules import check_reliability


@dataclass(frozen=True, slots=True, eq=False)
class UpdatedLabel:
    """A label after an answer.

    Attributes
    ----------
    contour
        float64 (l,), maximum 1.
    conflict
        Whether the answer contradicted wholly what was known; then the answer stands alone.
    """

    contour: NDArray[np.float64]
    conflict: bool


def update(known: NDArray[np.float64], answer: NDArray[np.float64], reliability: float) -> UpdatedLabel:
    """Combine an answer with what is known.

    A certain answer (one class, reliability 1) replaces what is known. Any other is discounted,
    ``r pl + 1 - r``, and multiplied into it.

    Parameters
    ----------
    known
        Contour (l,) before the answer.
    answer
        Contour (l,) that the oracle gave.
    reliability
        Of the oracle, in [0, 1].

    Raises
    ------
    InvalidInput
        When one of the three is invalid.

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
    product = _to_one(before) * discounted  # both reach 1 first, so that small contours do not underflow
    if not product.any():
        return UpdatedLabel(discounted, conflict=True)
    return UpdatedLabel(_to_one(product), conflict=False)


def _to_one(contour: NDArray[np.float64]) -> NDArray[np.float64]:
    scaled: NDArray[np.float64] = contour / contour.max()
    return scaled
