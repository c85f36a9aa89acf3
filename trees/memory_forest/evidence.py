"""The evidence of the log: rows of values, their contours, and the order in which they were first labelled."""

from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.kernels.growth import NONE
from quercus.trees.memory_forest.codes import Codebook, Codes, later_rows_that_cut, rows_that_cut
from quercus.trees.memory_forest.completions import Completions
from quercus.trees.memory_forest.labelled_rows import FIRST_LENGTH, LabelledRows, Rows, with_room
from quercus.trees.memory_forest.memories import LADDER, remembered_places
from quercus.trees.memory_forest.unpickled import WritableArrays
from quercus.trees.tree.encoding import Parts

UNLABELLED = -1  # in place of a contour's number, for an unlabelled row
NOT_YET, GIVEN, ASKED = 0, 1, 2  # how a row got its first label: not yet, without a query, by a query
NEVER = np.iinfo(np.int64).max  # in place of a number of rows after which an attribute varies, or was added


class DistinctContours(WritableArrays):
    """The distinct informative contours, scaled to maximum 1, by number."""

    def __init__(self, size: int) -> None:
        self._numbers: dict[bytes, int] = {}
        self._table = np.empty((FIRST_LENGTH, size))
        self._sole = np.empty(FIRST_LENGTH, np.int32)
        self._rank = np.empty(0, np.int64)

    @classmethod
    def of(cls, values: Floats) -> "DistinctContours":
        """Return the table of `values` (contours, l), numbered in this order.

        Raises
        ------
        ValueError
            If two contours are the same, or one is vacuous.
        """
        found = cls(values.shape[1])
        if not all(found._contour_number(contour) == number for number, contour in enumerate(values)):
            raise ValueError("two contours are the same, or one is vacuous")
        return found

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def values(self) -> Floats:
        """(contours, l) plausibilities; read only."""
        return self._table[: len(self)]

    @property
    def sole_class(self) -> NDArray[np.int32]:
        """(contours,) the class of a precise contour, else `NONE`; read only."""
        return self._sole[: len(self)]

    @property
    def lexicographic_rank(self) -> Ints:
        """(contours,) place of each in lexicographic order; computed when it is read, not at each new contour."""
        if len(self._rank) < len(self):
            self._rank = np.empty(len(self), np.int64)
            self._rank[np.lexsort(self.values.T[::-1])] = np.arange(len(self))
        return self._rank

    def contour_numbers(self, contours: Floats) -> NDArray[np.int32]:
        """Return the numbers of contours (n, l); `UNLABELLED` for constant ones."""
        if len(contours) == 1:
            return np.array([self._contour_number(_scaled_contours(contours)[0])], np.int32)
        distinct, which = np.unique(_scaled_contours(contours), axis=0, return_inverse=True)
        found = np.array([self._contour_number(contour) for contour in distinct], np.int32)
        return found[which.ravel()]

    def _contour_number(self, contour: Floats) -> int:
        if contour.min() >= 1.0:
            return UNLABELLED
        key = contour.tobytes()
        number = self._numbers.get(key)
        if number is None:
            number = self._add_contour(contour)
            self._numbers[key] = number
        return number

    def _add_contour(self, contour: Floats) -> int:
        number = len(self)
        if number == len(self._sole):
            self._table = np.concatenate([self._table, np.empty((number, contour.size))])
            self._sole = np.concatenate([self._sole, np.empty(number, np.int32)])
        self._table[number] = contour
        self._sole[number] = contour.argmax() if np.count_nonzero(contour) == 1 else NONE
        return number


def _scaled_contours(contours: Floats) -> Floats:
    scaled: Floats = contours / contours.max(axis=1, keepdims=True) + 0.0  # no negative zeros
    return scaled


class ForestEvidence(WritableArrays):
    """Rows, their codes and contours.

    Parameters
    ----------
    named
        (K,) whether an attribute is nominal.
    size
        Number of classes.
    attributes
        How many of the attributes, from the first on, rows have initially; None: all.

    Attributes
    ----------
    since
        (K,) number of rows before each attribute was added; `NEVER` for those not added yet.
    book
        The codebook of the codes that were read last.
    completions
        The completions of uncertain cells; None while there are no such cells.
    constant_rows
        (K,) how many rows, from the first on, have the same value of each attribute (a missing value counts as a
        value); `NEVER` while all rows do.
    """

    def __init__(self, named: Bools, size: int, attributes: int | None = None) -> None:
        self.named = np.asarray(named, dtype=np.bool_)
        self.size = size
        self.since = np.zeros(len(self.named), np.int64)
        self.since[attributes:] = 0 if attributes is None else NEVER
        self._note_starts()
        self.contours = DistinctContours(size)
        self._labelled = LabelledRows()
        self._rows = 0
        self._values = np.empty((FIRST_LENGTH, len(self.named)))
        self._codes = np.empty((FIRST_LENGTH, len(self.named)), np.uint16)
        self._kinds = np.empty(FIRST_LENGTH, np.int32)
        self._origin = np.zeros(FIRST_LENGTH, np.uint8)
        self._cut_by: dict[int, int] = {}
        self._coded = 0
        self.completions: Completions | None = None
        self.constant_rows = np.full(len(self.named), NEVER)
        self.book = Codebook.of(self._values[:0], self.named, np.empty(0, np.int64))

    @classmethod
    def restored(
        cls,
        named: Bools,
        contours: Floats,
        *,
        values: Floats,
        codes: Codes,
        kinds: NDArray[np.int32],
        labelled: Rows,
        book: Codebook,
        constant_rows: Ints,
        origin: NDArray[np.uint8],
        since: Ints,
    ) -> "ForestEvidence":
        """Return the evidence with these columns, all rows coded by `book`.

        `values`, `codes` and `labelled` may have unused room behind their rows. Later rows are written there, or to a
        copy once the room is full. `kinds` and `origin` are copied.
        """
        found, rows = cls(named, contours.shape[1]), len(kinds)
        found.contours = DistinctContours.of(contours)
        found._labelled = LabelledRows.of(labelled, kinds[labelled[: np.count_nonzero(kinds != UNLABELLED)]])
        found._rows = found._coded = rows
        found._values, found._codes, found._kinds = values, codes, with_room(kinds, rows, len(values))
        found._origin = with_room(origin, rows, len(values))
        found.since, found.constant_rows = since, constant_rows
        found._note_starts()
        found.book, found._cut_by = book, found._cutting_rows(rows)
        return found

    def __len__(self) -> int:
        return self._rows

    @property
    def values(self) -> Floats:
        """(n, K) values of all rows; read only."""
        return self._values[: self._rows]

    @property
    def kinds(self) -> NDArray[np.int32]:
        """(n,) number of each row's contour, `UNLABELLED` if nothing is known of its class; read only."""
        return self._kinds[: self._rows]

    @property
    def origin(self) -> NDArray[np.uint8]:
        """(n,) origin of each row's first label: `ASKED` if it was queried, `GIVEN` if not, or `NOT_YET`; read only."""
        return self._origin[: self._rows]

    def restore_origin(self, origin: NDArray[np.uint8]) -> None:
        """Restore the origin of all rows' first labels."""
        self._origin[: self._rows] = origin

    @property
    def labelled(self) -> Rows:
        """(T,) the labelled rows, in the order in which they were first labelled; read only."""
        return self._labelled.rows

    def present_moment(self) -> "EvidenceMoment":
        """Return the present evidence as a moment, which later labels do not change."""
        return EvidenceMoment(self, self._rows, *self._labelled.held_columns())

    def begin_attributes(self, count: int) -> None:
        """From now on, rows have the first `count` attributes."""
        self.since[:count] = np.minimum(self.since[:count], self._rows)
        self._note_starts()

    def _note_starts(self) -> None:
        self._starts = [int(since) for since in np.unique(self.since) if since]

    def add_rows(
        self,
        values: Floats,
        kinds: NDArray[np.int32],
        parts: Parts = MappingProxyType({}),
        *,
        asked: bool = False,
    ) -> None:
        """Add rows.

        Parameters
        ----------
        values
            (n, K) values.
        kinds
            (n,) numbers of the contours, or `UNLABELLED`.
        parts
            Ranges of uncertain values, by row of the log and attribute; if there are any, `completions` must be set.
        asked
            Whether a strategy chose the labelled ones.
        """
        first, end = self._rows, self._rows + len(values)
        if end > len(self._values):
            room = max(end, 2 * len(self._values))
            self._values = with_room(self._values, first, room)
            self._codes = with_room(self._codes, first, room)
            self._kinds = with_room(self._kinds, first, room)
            self._origin = with_room(self._origin, first, room)
        self._values[first:end] = values
        self._kinds[first:end] = kinds
        self._origin[first:end] = np.where(kinds == UNLABELLED, NOT_YET, ASKED if asked else GIVEN)
        if self.completions is not None:
            self.completions.complete(self._values, parts)
        self._rows = end
        self._note_variation(first)
        informed = np.flatnonzero(kinds != UNLABELLED)
        self._labelled.append(first + informed, kinds[informed])

    def _note_variation(self, first: int) -> None:
        """Record the attributes that vary for the first time in the rows from `first` on."""
        same = np.flatnonzero(self.constant_rows == NEVER)
        if same.size:
            fresh, one = self._values[first : self._rows, same], self._values[0, same]
            other = (fresh != one) & ~(np.isnan(fresh) & np.isnan(one))
            varies = other.any(axis=0)
            self.constant_rows[same[varies]] = first + other.argmax(axis=0)[varies]

    def replace_contour(self, row: int, kind: int, *, asked: bool = False) -> int | None:
        """Replace the contour of a row; `asked` says whether a strategy chose it, and counts for a first label only.

        Returns
        -------
        The former place of the row among the labelled rows if it has lost its label, else None.
        """
        before = self._kinds[row]
        self._kinds[row] = kind
        if before == UNLABELLED:
            if kind != UNLABELLED:
                if self._origin[row] == NOT_YET:
                    self._origin[row] = ASKED if asked else GIVEN
                self._labelled.append(np.array([row]), np.array([kind], np.int32))
            return None
        if kind == UNLABELLED:
            return self._labelled.withdraw_row(row)
        self._labelled.change_kind(row, kind)
        return None

    def codes(self, rows: int | None = None) -> Codes:
        """Return the codes of the first `rows` rows (None: all), and set `book` to their codebook; read only.

        The cuts of the codebook depend on the number of rows (`rows_that_cut`).
        """
        rows = self._rows if rows is None else rows
        cut_by, varying = self._cutting_rows(rows), np.flatnonzero(self.constant_rows < rows)
        if cut_by == self._cut_by and len(varying) != len(self.book.varying):
            self.book = replace(self.book, varying=varying)
        if cut_by != self._cut_by:
            pairs = zip(self._values.T, self.since.tolist(), strict=True)
            columns = (column[since : cut_by[since]] for column, since in pairs)
            self.book = Codebook.of_columns(columns, self.named, varying)
            self._cut_by, self._coded = cut_by, 0
            self._codes = np.empty_like(self._codes)  # a copy: old arrays may still be in use
        if rows > self._coded:
            self._codes[self._coded : rows] = self.book.codes(self._values[self._coded : rows])
            self._coded = rows
        return self._codes[:rows]

    def _cutting_rows(self, rows: int) -> dict[int, int]:
        """Return the end of the range of rows that set cuts, among the first `rows` rows, by the start of the range."""
        later = {since: since + later_rows_that_cut(max(0, rows - since)) for since in self._starts}
        return later | {0: rows_that_cut(rows)}


@dataclass(frozen=True, eq=False)
class EvidenceMoment:
    """The evidence at one moment of the log.

    Parameters
    ----------
    evidence
        The evidence of the log, which may have grown since.
    count
        Number of rows at that moment.
    labelled, labelled_kinds
        (T,) labelled rows, in the order in which they were first labelled, and the numbers of their contours.
    """

    evidence: ForestEvidence
    count: int
    labelled: Rows
    labelled_kinds: NDArray[np.int32]

    @cached_property
    def kinds(self) -> NDArray[np.int32]:
        """(count,) number of the contour of each row that a memory holds; 0 for other rows."""
        found = np.zeros(self.count, np.int32)  # pages cost nothing until they are written
        found[self.labelled[self._held_places]] = self.labelled_kinds[self._held_places]
        return found

    @cached_property
    def labels(self) -> NDArray[np.int16]:
        """(count,) class of each row that a memory holds, `NONE` if its contour is not precise; 0 for other rows."""
        found = np.zeros(self.count, np.int16)
        found[self.labelled[self._held_places]] = self.evidence.contours.sole_class[
            self.labelled_kinds[self._held_places]
        ]
        return found

    @property
    def _held_places(self) -> slice:
        """Places of the labelled rows, from the first one that the longest memory holds."""
        return slice(remembered_places(max(LADDER), len(self.labelled)).start, None)

    def codes(self) -> Codes:
        """Return the codes (count, K) of the rows, by the codebook of this moment; read only."""
        return self.evidence.codes(self.count)

    def by_rank(self, rows: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return rows in the lexicographic order of their contours; rows of equal contours keep their order."""
        rank = self.evidence.contours.lexicographic_rank
        found: NDArray[np.int32] = rows[np.argsort(rank[self.kinds[rows]], kind="stable")]
        return found
