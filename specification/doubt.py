"""The two kinds of doubt about a class in words."""

from quercus.specification.shares import percent_text

LITTLE = 0.005
"""Bits below which there is no doubt in words."""


def doubt_text(overlap: float, ignorance: float) -> str:
    """Return which part of the doubt labels can settle, and how many bits it has of either kind.

    Examples
    --------
    >>> doubt_text(0.52, 0.29)
    'more labels can settle 36 % of the doubt; classes are alike in the rest (ignorance 0.29, overlap 0.52 bits)'
    >>> doubt_text(0.0, 0.29), doubt_text(0.0, 0.001)
    ('more labels can settle the doubt (ignorance 0.29 bits)', 'no doubt')
    >>> doubt_text(0.52, 0.0)
    'more labels can hardly settle the doubt: classes are alike here (overlap 0.52 bits)'
    """
    total = overlap + ignorance
    if total < LITTLE:
        return "no doubt"
    if overlap < LITTLE:
        return f"more labels can settle the doubt (ignorance {ignorance:.2f} bits)"
    if ignorance < LITTLE:
        return f"more labels can hardly settle the doubt: classes are alike here (overlap {overlap:.2f} bits)"
    bits = f"ignorance {ignorance:.2f}, overlap {overlap:.2f} bits"
    share = percent_text(ignorance / total)
    return f"more labels can settle {share} of the doubt; classes are alike in the rest ({bits})"
