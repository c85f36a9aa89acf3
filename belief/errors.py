"""The exceptions of the mathematical packages."""

from collections.abc import Iterator
from contextlib import contextmanager


class InvalidInput(ValueError):  # noqa: N818 - the name callers read in `except InvalidInput`
    """A value that cannot be accepted, and why.

    Parameters
    ----------
    field
        The invalid input, e.g. ``"alpha"`` or ``"contour[2]"``.
    reason
        The given value and what is expected, in words.

    Examples
    --------
    >>> str(InvalidInput("alpha", "is 1.5, must lie in [0, 1]"))
    'alpha: is 1.5, must lie in [0, 1]'
    """

    field: str
    reason: str

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(
            field, reason
        )  # both as args, so that the exception survives pickling between processes
        self.field = field
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"


class TooManyFocalSets(InvalidInput):
    """A combination of mass functions that would have more focal sets, or pairs of them, than are allowed."""


class TotalConflict(ArithmeticError):  # noqa: N818 - as above
    """Evidence that contradicts itself completely, so that no normalised combination exists (theory §1.1)."""


def shown(value: object, limit: int = 60) -> str:
    """Return ``repr(value)`` cut to at most `limit` characters, so that no message grows with its input.

    Examples
    --------
    >>> shown("a" * 100, 10)
    "'aaaaaa..."
    """
    try:
        text = repr(value)
    except ValueError:  # Python does not print integers of more than 4,300 digits
        text = f"{type(value).__name__} with a number of thousands of digits"
    return text if len(text) <= limit else text[: limit - 3] + "..."


@contextmanager
def field_prefix(prefix: str) -> Iterator[None]:
    """Put `prefix` before the field of every `InvalidInput` raised inside."""
    try:
        yield
    except InvalidInput as error:
        field = f"{prefix}.{error.field}" if error.field else prefix
        raise InvalidInput(field, error.reason) from error
