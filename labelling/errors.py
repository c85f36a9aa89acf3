"""The errors of labelling: refusals, and labels of the log that cannot be read."""


class Refused(Exception):  # noqa: N818 - a name that says what is wrong
    """A call that is valid, but not at this moment.

    Attributes
    ----------
    reason : str
        Ready for the user.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class UnreadableLabel(ValueError):  # noqa: N818 - a name that says what is wrong
    """A label of the log cannot be read: no fault of the caller."""
