"""Names of nominal attributes that a model had never seen when a message arrived, counted for the response."""

from __future__ import annotations

from typing import Final

from quercus.v1 import values_pb2

MAX_EXAMPLES: Final = 100
"""Names of one attribute that a response lists."""


class UnseenCounter:
    """Counts the rows of one message with names that the model has never seen."""

    def __init__(self) -> None:
        self._names: dict[str, dict[str, None]] = {}
        self._rows: dict[str, int] = {}
        self._beyond: dict[str, int] = {}

    def count_row(self, attribute: str, *names: str, beyond: bool) -> None:
        """Count a row with one or several such names; `beyond`: they are beyond the bound of the attribute."""
        self._names.setdefault(attribute, {}).update(dict.fromkeys(names))
        self._rows[attribute] = self._rows.get(attribute, 0) + 1
        self._beyond[attribute] = self._beyond.get(attribute, 0) + beyond

    def messages(self) -> list[values_pb2.UnseenNames]:
        """Return the counts of each attribute that has such names."""
        return [
            values_pb2.UnseenNames(
                attribute=attribute,
                rows=self._rows[attribute],
                names=len(names),
                examples=list(names)[:MAX_EXAMPLES],
                rows_beyond=self._beyond[attribute],
            )
            for attribute, names in self._names.items()
        ]
