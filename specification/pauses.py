"""Pauses between attempts."""

_MOST_DOUBLINGS = 60


def growing_pause_s(attempt: int, first_s: float, longest_s: float) -> float:
    """Return the pause after a failed attempt, in seconds; pauses double, up to a bound.

    Parameters
    ----------
    attempt : number of the attempt, from 1; any number is safe.
    first_s, longest_s : the first pause, and the longest one.

    Examples
    --------
    >>> [growing_pause_s(attempt, 0.5, 10.0) for attempt in (1, 2, 5, 6, 10**9)]
    [0.5, 1.0, 8.0, 10.0, 10.0]
    """
    return min(first_s * 2.0 ** min(attempt - 1, _MOST_DOUBLINGS), longest_s)
