"""The errors of labelling."""


class Refused(Exception):  # noqa: N818 - a name that says what is wrong
    """A valid call that the present state or the policy does not allow.

    Attributes
    ----------
    reason : str
        Worded for the user.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class UnreadableLabel(ValueError):  # noqa: N818 - a name that says what is wrong
    """A label of the log cannot be read. The store is damaged; the caller is not at fault."""
