"""The two kinds of doubt about a class in words, for terminal, console and notebooks alike."""

LITTLE = 0.005
"""Bits below which there is no doubt in words."""


def doubt_text(overlap: float, ignorance: float) -> str:
    """Return the amount of doubt, in bits, and its kind.

    Examples
    --------
    >>> doubt_text(0.52, 0.29)
    'doubt 0.81 bits: overlap 0.52, which labels hardly settle, and ignorance 0.29, which they do'
    >>> doubt_text(0.0, 0.29), doubt_text(0.0, 0.001)
    ('doubt 0.29 bits: all ignorance, which labels settle', 'no doubt')
    >>> doubt_text(0.52, 0.0)
    'doubt 0.52 bits: all overlap, which labels hardly settle'
    """
    total = overlap + ignorance
    if total < LITTLE:
        return "no doubt"
    head = f"doubt {total:.2f} bits"
    if overlap < LITTLE:
        return f"{head}: all ignorance, which labels settle"
    if ignorance < LITTLE:
        return f"{head}: all overlap, which labels hardly settle"
    return f"{head}: overlap {overlap:.2f}, which labels hardly settle, and ignorance {ignorance:.2f}, which they do"
