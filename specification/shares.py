"""Shares as text, and their confidence intervals.

Rounding never makes a share certain: only exactly 0 and 1 are written as such.
"""

import math
from statistics import NormalDist
from typing import Final

CONFIDENCE: Final = 0.9
"""The confidence of intervals and bands."""
Z: Final = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
"""Half the width of such an interval of a normal distribution, in standard deviations."""


def percent_text(share: float, digits: int = 0) -> str:
    """Return a share in percent.

    Parameters
    ----------
    share
        In [0, 1].
    digits
        Decimals of the percentage.

    Examples
    --------
    >>> [percent_text(share) for share in (0.0, 0.001, 0.5, 0.997, 1.0)]
    ['0 %', 'under 1 %', '50 %', 'over 99 %', '100 %']
    >>> percent_text(0.9997, 1), percent_text(0.9127, 1)
    ('over 99.9 %', '91.3 %')
    """
    least = 10.0**-digits
    text = f"{100 * share:.{digits}f}"
    if share > 0 and text == f"{0:.{digits}f}":
        return f"under {least:g} %"
    if share < 1 and text == f"{100:.{digits}f}":
        return f"over {100 - least:.{digits}f} %"
    return f"{text} %"


def decimal_text(share: float, digits: int = 2) -> str:
    """Return a share as a decimal fraction, for tables.

    Examples
    --------
    >>> [decimal_text(share) for share in (0.0, 0.001, 0.5, 0.997, 1.0)]
    ['0.00', '<0.01', '0.50', '>0.99', '1.00']
    """
    least = 10.0**-digits
    text = f"{share:.{digits}f}"
    if share > 0 and float(text) == 0:
        return f"<{least:.{digits}f}"
    if share < 1 and float(text) == 1:
        return f">{1 - least:.{digits}f}"
    return text


def wilson_interval(right: float, rows: int) -> tuple[float, float]:
    """Return Wilson's interval of a share at `CONFIDENCE`; it contains the share despite rounding.

    Examples
    --------
    >>> tuple(round(end, 3) for end in wilson_interval(8, 10))
    (0.541, 0.931)
    """
    z2, share = Z**2, right / rows
    centre = (share + z2 / (2 * rows)) / (1 + z2 / rows)
    half = Z / (1 + z2 / rows) * math.sqrt(max(0.0, share * (1 - share)) / rows + z2 / (4 * rows**2))
    return max(0.0, min(centre - half, share)), min(1.0, max(centre + half, share))
