"""The report of a push, and counts of names that a model had never seen, over several messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quercus.client.specifications import Specification
from quercus.specification.attributes import OTHER_NAMES, Nominal
from quercus.v1 import values_pb2

MAX_NAMES = 10_000
"""Maximum number of names of an attribute that are counted; beyond it, the number is a lower bound."""
MAX_EXAMPLES = 100


@dataclass(frozen=True)
class UnseenNames:
    """The names of one attribute, in the rows of a call, that the model had never seen before the call.

    Attributes
    ----------
    attribute
        Name of the attribute.
    rows, of_rows
        Number of rows with such a name, and of all rows.
    names
        Number of distinct names; a lower bound if not ``is_exact``.
    examples
        The first names, at most 100.
    rows_beyond
        Number of rows whose name the model does not keep, because the attribute has its maximum number of names. They
        count as other names.
    """

    attribute: str
    rows: int
    of_rows: int
    names: int
    examples: tuple[str, ...]
    rows_beyond: int = 0
    is_exact: bool = True

    @property
    def text(self) -> str:
        """A sentence without its full stop.

        Examples
        --------
        >>> UnseenNames("machine", 399, 400, 5, ("101.0", "102.0")).text
        '399 of 400 rows: `machine` has 5 names never seen, as 101.0'
        >>> UnseenNames("ticket", 3, 9, 2, ("b7",), rows_beyond=3).text
        '3 of 9 rows: `ticket` has 2 names beyond those that the model keeps, as b7; they count as (other names)'
        >>> UnseenNames("machine", 1, 1, 1, ()).text
        '1 of 1 row: `machine` has 1 name never seen'
        """
        number = f"{'' if self.is_exact else 'at least '}{self.names:,} name{'s' * (self.names != 1)}"
        kind = "beyond those that the model keeps" if self.rows_beyond == self.rows else "never seen"
        of = f"{self.rows:,} of {self.of_rows:,} row{'s' * (self.of_rows != 1)}"
        said = f"{of}: `{self.attribute}` has {number} {kind}"
        if self.examples:
            said += f", as {self.examples[0]}"
        if self.rows_beyond == self.rows:
            return f"{said}; they count as {OTHER_NAMES}"
        if self.rows_beyond:
            beyond = f"those of {self.rows_beyond:,} rows are beyond what the model keeps"
            return f"{said}; {beyond}, and count as {OTHER_NAMES}"
        return said


def first_reports(unseen: Iterable[UnseenNames], reported: set[tuple[str, bool]]) -> list[UnseenNames]:
    """Return what was not reported yet: the first new names of an attribute, and the first that it does not keep.

    ``reported`` is updated: it has the reported attributes, each with whether the report was of names not kept.
    """
    news = [each for each in unseen if (each.attribute, each.rows_beyond > 0) not in reported]
    reported.update((each.attribute, each.rows_beyond > 0) for each in news)
    return news


@dataclass(frozen=True)
class PushReport:
    """The progress of a push: acknowledged ``rows`` (``stored`` now, or ``known`` before), and ``rejected`` rows.

    ``unseen``: names that the model had not seen before the push, of attributes that already had names, and names
    beyond the bound of an attribute.
    """

    rows: int
    stored: int
    known: int
    batches: int
    committed_sequence: int
    seconds: float
    model_uid: str = ""
    rejected: int = 0
    unseen: tuple[UnseenNames, ...] = ()

    @property
    def acknowledged_text(self) -> str:
        """The number of rows as a remark on an error: ``2 rows had been acknowledged``."""
        return f"{self.rows:,} {'row' if self.rows == 1 else 'rows'} had been acknowledged"


@dataclass
class _AttributeTally:
    rows: int = 0
    rows_beyond: int = 0
    names: dict[str, None] = field(default_factory=dict)  # in order of first appearance
    messages: int = 0
    most: int = 0  # of names in one message
    lists_all: bool = True  # whether `names` is complete


class UnseenTally:
    """Sums of the counts of several messages, by attribute."""

    def __init__(self) -> None:
        self._tallies: dict[str, _AttributeTally] = {}

    def __bool__(self) -> bool:
        return bool(self._tallies)

    def add_counts(self, counts: Mapping[str, Mapping[str, int]]) -> None:
        """Add the client's counts for a message: the number of rows by attribute and name."""
        for attribute, rows in counts.items():
            self._add_names(attribute, list(rows), len(rows)).rows += sum(rows.values())

    def add_names(self, found: Iterable[values_pb2.UnseenNames | UnseenNames]) -> None:
        """Add the server's counts for a message, or the sums of another call."""
        for each in found:
            tally = self._add_names(each.attribute, each.examples, each.names)
            tally.rows += each.rows
            tally.rows_beyond += each.rows_beyond
            tally.lists_all &= not isinstance(each, UnseenNames) or each.is_exact

    def add_beyond(self, found: Iterable[values_pb2.UnseenNames]) -> None:
        """Add only the number of rows in a message that count as other names; the client counted the names itself."""
        for each in found:
            if each.rows_beyond:
                self._tallies.setdefault(each.attribute, _AttributeTally()).rows_beyond += each.rows_beyond

    def results(self, rows: int, young: Iterable[str] = ()) -> tuple[UnseenNames, ...]:
        """Return the sums.

        Parameters
        ----------
        rows
            Number of rows of all messages.
        young
            Attributes that had no names before: of these, only names beyond the bound are reported, since a first name
            does not suggest a mistake.
        """
        first = frozenset(young)
        return tuple(
            UnseenNames(
                attribute,
                tally.rows,
                rows,
                max(len(tally.names), tally.most),
                tuple(tally.names)[:MAX_EXAMPLES],
                tally.rows_beyond,
                tally.lists_all or tally.messages == 1,
            )
            for attribute, tally in self._tallies.items()
            if tally.rows_beyond or attribute not in first
        )

    def _add_names(self, attribute: str, names: Sequence[str], count: int) -> _AttributeTally:
        tally = self._tallies.setdefault(attribute, _AttributeTally())
        for name in names:
            if len(tally.names) < MAX_NAMES or name in tally.names:
                tally.names[name] = None
            else:
                tally.lists_all = False
        tally.messages += 1
        tally.most = max(tally.most, count)
        tally.lists_all = tally.lists_all and count == len(names)
        return tally


class PushedNames:
    """Counts the rows of a push with names that the model did not have before, from the messages and their responses.

    Parameters
    ----------
    before
        Specification of the model before the first message. If None (unknown), the server's counts are used. These are
        of names that are new in a message, so they miss those of a message that was already stored.
    """

    def __init__(self, before: Specification | None) -> None:
        self._before = before
        self._tally = UnseenTally()
        self._rows = 0

    def count_batch(
        self, rows: values_pb2.Rows, count: int, specification: Specification | None, response: Any
    ) -> None:
        """Count the rows of a message.

        Parameters
        ----------
        rows, count
            The rows, and their number.
        specification
            The specification that they were encoded for, or a newer one.
        response
            The response, which lists refused rows.
        """
        self._rows += count - len(response.refused)
        if self._before is None or specification is None:
            self._tally.add_names(response.unseen)
        else:
            refused = frozenset(each.row for each in response.refused)
            self._tally.add_counts(self.new_names(rows, specification, refused))
            self._tally.add_beyond(response.unseen)

    def new_names(
        self, rows: values_pb2.Rows, specification: Specification, refused: Collection[int] = ()
    ) -> dict[str, Mapping[str, int]]:
        """Return the number of rows by attribute and name, for names that the model did not have before.

        Parameters
        ----------
        rows
            The rows of a message.
        specification
            The specification that they were encoded for, or a newer one with more names.
        refused
            Positions of rows to ignore.
        """
        named = rows.WhichOneof("kind") == "named"
        if self._before is None or (not named and specification is self._before):
            return {}
        found: dict[str, Mapping[str, int]] = {}
        attributes = zip(specification.attributes, self._before.attributes, strict=True)
        for k, (attribute, before) in enumerate(attributes):
            if not isinstance(attribute, Nominal) or not isinstance(before, Nominal):
                continue
            if named:
                known = frozenset(before.values)
                given = (
                    row.values[attribute.name].nominal
                    for i, row in enumerate(rows.named.rows)
                    if attribute.name in row.values and i not in refused
                )
                counts = Counter(name for name in given if name and name not in known)
            elif len(attribute.values) > len(before.values):
                column = np.array(rows.packed.values[k :: len(specification.attributes)])
                column[list(refused)] = np.nan
                is_new = (column >= len(before.values)) & (column < len(attribute.values))
                index, rows_of = np.unique(column[is_new], return_counts=True)
                counts = Counter(
                    {attribute.values[int(i)]: int(n) for i, n in zip(index, rows_of, strict=True)}
                )
            else:
                continue
            if counts:
                found[attribute.name] = counts
        return found

    def results(self) -> tuple[UnseenNames, ...]:
        """Return the sums, without attributes that had no names before."""
        known = () if self._before is None else self._before.attributes
        return self._tally.results(
            self._rows, [each.name for each in known if isinstance(each, Nominal) and not each.values]
        )
