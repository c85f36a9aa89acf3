"""Refusals: the errors by which one call of a transaction fails, and the others go on."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from quercus.belief.errors import InvalidInput
from quercus.storage.errors import BeyondLog, FailedPrecondition, NotFound

REFUSALS: Final = (BeyondLog, FailedPrecondition, InvalidInput, NotFound)
"""Errors that a call raises before it writes anything but the end of leases."""


class LateRefusal(Exception):  # noqa: N818 - a name that says what is wrong
    """A call was refused after it had written something: its transaction must be undone.

    Attributes
    ----------
    refusal : Exception
        One of `REFUSALS`.
    """

    def __init__(self, refusal: Exception) -> None:
        super().__init__(refusal)
        self.refusal = refusal


@contextmanager
def after_writing() -> Iterator[None]:
    """Raise `LateRefusal` in the place of a refusal."""
    try:
        yield
    except REFUSALS as error:
        raise LateRefusal(error) from error
