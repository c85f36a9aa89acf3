"""Checks of the size of what is stored. Callers check the meaning."""

import math

from quercus.belief.errors import InvalidInput
from quercus.specification.bounds import (
    MAX_AUTHOR_CHARACTERS,
    MAX_COMMENT_CHARACTERS,
    MAX_DELAY_S,
    MAX_ID_CHARACTERS,
    MAX_SHOWN_CHARACTERS,
)

MAX_COUNT = 2**53
"""Greatest count or number: the integers that JSON numbers represent exactly."""

MAX_TIME = 253_402_300_799
"""Seconds since 1970: the end of the year 9999."""

MAX_TEXT = max(MAX_ID_CHARACTERS, MAX_AUTHOR_CHARACTERS)
"""Most characters of a name or id; the log also stores the joined names of several labellers."""

MAX_DURATION_S = MAX_DELAY_S
"""Longest lease, membership or delay, in seconds. A delay may be the longest of the three."""

MAX_STORED_TOOK_S = 1e9
"""Longest time of an answer, in seconds. Where none is reported, it is the time since the lease, possibly years."""


def name_text(field: str, value: str) -> None:
    """Check a name or id: its length, and that it can be stored."""
    if not 1 <= len(value) <= MAX_TEXT:
        raise InvalidInput(field, f"has {len(value)} characters, must have 1 to {MAX_TEXT}")
    storable_text(field, value)


def storable_text(field: str, value: str) -> None:
    """Check that a text has no NUL and no lone surrogate, neither of which databases store."""
    if "\0" in value:
        raise InvalidInput(field, "has a NUL character, which cannot be stored")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(field, f"{value[:40]!r} is not valid Unicode text") from error


def at_least(field: str, value: int, bound: int) -> None:
    """Check an integer against its lower bound."""
    if value < bound:
        raise InvalidInput(field, f"is {value}, must be at least {bound}")


def duration(field: str, value_s: float) -> None:
    """Check the duration of a lease, in seconds."""
    if not (math.isfinite(value_s) and 0.0 < value_s <= MAX_DURATION_S):
        raise InvalidInput(field, f"is {value_s} s, must be above 0 and at most {MAX_DURATION_S:g} s")


def reliability(value: float) -> None:
    """Check a reliability: it lies in (0, 1]."""
    if not 0.0 < value <= 1.0:
        raise InvalidInput("reliability", f"is {value}, must be above 0 and at most 1")


def comment(value: str) -> None:
    """Check the comment of a labeller."""
    if len(value) > MAX_COMMENT_CHARACTERS:
        raise InvalidInput(
            "comment", f"has {len(value)} characters, must have at most {MAX_COMMENT_CHARACTERS}"
        )
    storable_text("comment", value)


def answer_time(value_s: float | None) -> None:
    """Check the seconds that an answer took; None if not reported."""
    if value_s is not None and not 0.0 <= value_s <= MAX_STORED_TOOK_S:
        raise InvalidInput("took", f"is {value_s} s, must lie in [0 s, {MAX_STORED_TOOK_S:g} s]")


def shown_text(value: str) -> None:
    """Check the client's name for the content of a labeller's screen."""
    if len(value) > MAX_SHOWN_CHARACTERS:
        raise InvalidInput("shown", f"has {len(value)} characters, must have at most {MAX_SHOWN_CHARACTERS}")
    storable_text("shown", value)
