"""An index of the rows of a model in memory: what is known of each, who said it, and what the newest tree says.

It follows the log, so that a page of a filtered list reads only the events since the page before it.
"""

from __future__ import annotations

import asyncio
import logging
import operator
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput
from quercus.belief.label import contour
from quercus.labelling.disputes import is_disputed
from quercus.labelling.errors import UnreadableLabel
from quercus.labelling.event import Event
from quercus.labelling.history import (
    LabelState,
    known_contour,
    label_events,
    stored_label,
)
from quercus.server.wire.errors import Unavailable
from quercus.server.wire.row_filter import RowOrder, RowSelection, Term
from quercus.server.wire.schema import ModelSchema
from quercus.server.wire.trees import TreeClassifier
from quercus.storage import FailedPrecondition, InstanceColumns, ModelRecord, NotFound, Store
from quercus.trees import UncertainValues

_log = logging.getLogger(__name__)
MAX_ROWS: Final = 2_000_000
"""Rows of a model that can be filtered or ordered: an index has some 30 bytes for each."""
MAX_KEPT_BYTES: Final = 32 * 1024 * 1024
"""Size of the values that an index keeps; those of a larger model are read again for each tree and each search."""
MAX_INDEXES: Final = 4
"""Models whose index is kept."""
MAX_SEARCHES: Final = 8
"""Texts of which an index remembers the rows."""
JUDGING_SHARE: Final = 4
"""After a tree has judged all rows, the next waits this many times as long as that took."""
PIECE: Final = 20_000
"""Rows that are read or classified at once."""
_Bools: TypeAlias = NDArray[np.bool_]
_COMPARED: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip


class Found(NamedTuple):
    """A page of rows.

    Attributes
    ----------
    sequences : sequences of the INSTANCE events of the rows, in order.
    guesses : class (a number) and doubt of each row, by which they were chosen or ordered; empty if by neither.
    after : key of the order and sequence of the last row, behind which the next page begins; None: there is none.
    total : number of rows that are wanted on all pages.
    """

    sequences: list[int]
    guesses: list[tuple[int, float]]
    after: tuple[float, int] | None
    total: int


@dataclass(slots=True)
class _Said:
    """The labellers of a row: who they are, whether they contradict each other, and the newest event."""

    labellers: frozenset[str]
    is_disputed: bool
    newest: int


@dataclass(slots=True)
class _Columns:
    """Columns of the rows, in the order in which they were pushed."""

    sequence: NDArray[np.int64]
    top: NDArray[np.uint64]  # most plausible classes as a bit mask; 0: nothing is known
    newest: NDArray[np.int64]  # newest event about it

    @classmethod
    def empty(cls) -> _Columns:
        return cls(np.zeros(0, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.int64))

    def extend(self, others: Sequence[_Columns]) -> None:
        """Add rows that were pushed later."""
        for name in ("sequence", "top", "newest"):
            parts = [getattr(self, name), *(getattr(each, name) for each in others)]
            setattr(self, name, np.concatenate(parts))


@dataclass(slots=True)
class Guesses:
    """The guesses of one version of the tree about the first rows; when they were made, and how long that took."""

    classifier: TreeClassifier
    klass: NDArray[np.int64]
    doubt: NDArray[np.float64]
    at: float = 0.0
    took_s: float = 0.0


class RowIndex:
    """The index of one model. Only one thread uses it at a time.

    Parameters
    ----------
    store : the open store.
    schema : schema of the model.
    """

    def __init__(self, store: Store, schema: ModelSchema) -> None:
        self._store = store
        self._model, self.key, self._size = schema.model, schema.key, schema.frame.size
        self._extensions = schema.shapes.extensions
        self._seen = 0  # newest event in it
        self._rows = _Columns.empty()
        self._said: dict[int, _Said] = {}  # by position
        self._cells: list[UncertainValues] | None = []  # None: they are too many to be kept
        self._kept_bytes = 0
        self._guesses: Guesses | None = None
        self._searches: dict[str, _Bools] = {}  # by text, for the first rows
        self._tops: dict[bytes, int] = {}  # by stored label

    def find(
        self,
        wanted: RowSelection,
        schema: ModelSchema,
        classifier: TreeClassifier | None,
        after: tuple[float, int] | None,
        size: int,
    ) -> Found:
        """Return a page of the rows that are wanted.

        Parameters
        ----------
        wanted : filter and order.
        schema : present schema of the model.
        classifier : newest tree, if it is needed; None if it is not, or there is none yet.
        after : where the page begins, as of `Found.after`; None: at the first row.
        size : most rows of the page.

        Raises
        ------
        FailedPrecondition
            When the model has too many rows, or no tree yet where one is needed.
        """
        try:
            self._catch_up()
        except UnreadableLabel:
            self._check_same()  # a label of a class that the model has since this moment
            raise
        if classifier is None and wanted.needs_guesses:
            raise FailedPrecondition(
                f"model {self._model} has no tree yet, so that it has no guess and no doubt: try again in a moment"
            )
        if classifier is not None and wanted.needs_guesses:
            self._guesses = self._guesses or self.judge(classifier)
            self._judge_new(self._guesses)
        count = len(self._rows.sequence)
        chosen = np.ones(count, bool)
        for term in wanted.terms:
            chosen &= self._matches(term, schema) != term.negated
        positions = np.flatnonzero(chosen)
        total = len(positions)
        keys = self._order_keys(wanted.order)[positions]
        sequences = self._rows.sequence[positions]
        if after is not None:
            behind = (keys > after[0]) | ((keys == after[0]) & (sequences > after[1]))
            positions, keys, sequences = positions[behind], keys[behind], sequences[behind]
        if len(positions) > size + 1:
            positions, keys, sequences = _first_of(positions, keys, sequences, size + 1)
        order = np.lexsort((sequences, keys))
        page = order[:size]
        guesses: list[tuple[int, float]] = []
        if wanted.needs_guesses and self._guesses is not None:
            klass, doubt = self._guesses.klass[positions[page]], self._guesses.doubt[positions[page]]
            guesses = list(zip(klass.tolist(), doubt.tolist(), strict=True))
        last = page[-1] if len(order) > size else None
        return Found(
            sequences[page].tolist(),
            guesses,
            None if last is None else (float(keys[last]), int(sequences[last])),
            total,
        )

    # The log

    def _check_same(self) -> ModelRecord:
        """Return the model, unless another has its name or it was extended: that one has an index of its own."""
        found = self._store.get_model(self._model)
        if found.key != self.key:
            raise NotFound("model", self._model, "any more: another has its name")
        if found.shapes.extensions != self._extensions:
            raise Unavailable(f"model {self._model} was just extended: send it again")
        return found

    def _catch_up(self) -> None:
        """Read the events since the last time."""
        end = self._check_same()
        if end.instance_count > MAX_ROWS:
            raise FailedPrecondition(
                f"model {self._model} has {end.instance_count:,} rows; at most {MAX_ROWS:,} can be filtered or "
                "ordered: list them without"
            )
        touched: set[int] = set()
        fresh: list[_Columns] = []
        while self._seen < end.sequence_committed:
            segment = self._store.read_log(self._model, self._seen, rows=PIECE)
            for part in segment.parts:
                if isinstance(part, InstanceColumns):
                    fresh.append(self._read_rows(part))
                elif part.instance:
                    touched.add(part.instance)
            if segment.last == self._seen:
                break
            self._seen = segment.last
        if fresh:
            self._rows.extend(fresh)
        self._read_histories(sorted(touched))

    def _read_rows(self, part: InstanceColumns) -> _Columns:
        sequence = np.arange(part.first, part.first + len(part.labels), dtype=np.int64)
        top = np.fromiter(map(self._top_of_label, part.labels), np.uint64, len(part.labels))
        self._kept_bytes += part.values.nbytes
        if self._cells is not None:
            self._cells.append(UncertainValues(part.values, part.parts))
            if self._kept_bytes > MAX_KEPT_BYTES:
                self._cells = None
        return _Columns(sequence, top, sequence)

    def _top_of_label(self, label: bytes) -> int:
        found = self._tops.get(label)
        if found is None:
            found = _top_classes(contour(stored_label(label, self._size), self._size))
            if len(self._tops) < PIECE:
                self._tops[label] = found
        return found

    def _read_histories(self, instances: Sequence[int]) -> None:
        places = np.searchsorted(self._rows.sequence, np.array(instances, np.int64)).tolist()
        for start in range(0, len(instances), PIECE):
            histories = self._store.history(self._model, instances[start : start + PIECE])
            for instance, place in zip(
                instances[start : start + PIECE], places[start : start + PIECE], strict=True
            ):
                history = histories[instance]
                self._rows.top[place] = _top_classes(known_contour(history, self._size))
                self._rows.newest[place] = history[-1].sequence
                self._said[place] = _read_said(history, self._size)

    # The tree

    def wants_judging(self, classifier: TreeClassifier) -> bool:
        """Return whether a newer tree should judge the rows: at most a fifth of the time is spent on that."""
        old = self._guesses
        if old is None or old.classifier.version == classifier.version:
            return False
        return time.monotonic() - old.at >= JUDGING_SHARE * old.took_s

    def judge(self, classifier: TreeClassifier) -> Guesses:
        """Return what a tree says of all rows. Another thread may use the index meanwhile."""
        started = time.monotonic()
        found = Guesses(classifier, np.zeros(0, np.int64), np.zeros(0))
        self._judge_new(found)
        found.at = time.monotonic()
        found.took_s = found.at - started
        return found

    def replace_guesses(self, guesses: Guesses) -> None:
        """Take what a newer tree says of the rows."""
        self._guesses = guesses

    def _judge_new(self, guesses: Guesses) -> None:
        """Let the tree judge the rows that are new."""
        if len(guesses.klass) == len(self._rows.sequence):
            return
        klass, doubt = [guesses.klass], [guesses.doubt]
        for cells in self._cells_from(len(guesses.klass)):
            guessed = guess_classes(guesses.classifier, cells)
            klass.append(guessed[0])
            doubt.append(guessed[1])
        guesses.klass, guesses.doubt = np.concatenate(klass), np.concatenate(doubt)

    def _cells_from(self, position: int) -> Iterator[UncertainValues]:
        """Yield the values of the rows from a position on, piece by piece."""
        count = len(self._rows.sequence)
        if (kept := self._cells) is not None:
            start = 0
            for cells in kept[:]:
                if start + len(cells) > position:
                    yield cells.take(np.arange(max(0, position - start), len(cells)))
                start += len(cells)
            return
        while position < count:
            segment = self._store.read_log(self._model, int(self._rows.sequence[position]) - 1, rows=PIECE)
            for part in segment.parts:
                if isinstance(part, InstanceColumns) and position < count:
                    cells = UncertainValues(part.values, part.parts)
                    cells = cells.take(np.arange(min(len(cells), count - position)))
                    yield cells
                    position += len(cells)

    # The filter

    def _matches(self, term: Term, schema: ModelSchema) -> _Bools:
        """Return which rows a term holds for, negated or not."""
        found: _Bools
        match term.field:
            case "class":
                bit = np.uint64(1 << schema.frame.classes.index(term.value))
                found = ((self._rows.top & bit) != 0) == (term.operator == "=")
            case "labelled":
                found = self._rows.top != 0
            case "labeller":
                found = self._said_by(lambda said: term.value in said.labellers)
                found = found == (term.operator == "=")
            case "disputed":
                found = self._said_by(lambda said: said.is_disputed)
            case "text":
                found = self._search(term.value, schema)
            case _:
                found = self._matches_guess(term, schema)
        return found

    def _matches_guess(self, term: Term, schema: ModelSchema) -> _Bools:
        """Return which rows a term about the guess of the tree holds for."""
        if self._guesses is None:
            raise InvalidInput("filter", f"{term.field} needs a tree")
        found: _Bools
        match term.field:
            case "guess":
                wanted = schema.frame.classes.index(term.value)
                found = (self._guesses.klass == wanted) == (term.operator == "=")
            case "unexpected":
                bits = np.uint64(1) << self._guesses.klass.astype(np.uint64)
                found = (self._rows.top != 0) & ((self._rows.top & bits) == 0)
            case _:
                found = _COMPARED[term.operator](self._guesses.doubt, float(term.value))
        return found

    def _said_by(self, holds: Callable[[_Said], bool]) -> _Bools:
        found = np.zeros(len(self._rows.sequence), bool)
        found[[place for place, said in self._said.items() if holds(said)]] = True
        return found

    def _search(self, text: str, schema: ModelSchema) -> _Bools:
        """Return the rows whose id or a name among whose values contains a text, or that have the number it is."""
        wanted = text.casefold()
        known = self._searches.pop(wanted, np.zeros(0, bool))
        count = len(self._rows.sequence)
        parts = [known]
        start = len(known)
        parts.extend(_has_value(cells, wanted, schema) for cells in self._cells_from(start))
        found = np.concatenate(parts)
        if start < count:
            found[start:] |= self._ids_with(wanted, start)
        self._searches[wanted] = found
        if len(self._searches) > MAX_SEARCHES:
            del self._searches[next(iter(self._searches))]
        return found

    def _ids_with(self, wanted: str, start: int) -> _Bools:
        found = np.zeros(len(self._rows.sequence) - start, bool)
        at = 0
        while at < len(found):
            ids = self._store.row_ids(self._model, int(self._rows.sequence[start + at]) - 1, PIECE)
            ids = ids[: len(found) - at]
            found[at : at + len(ids)] = [wanted in each.casefold() for each in ids]
            at += len(ids)
        return found

    def _order_keys(self, order: RowOrder) -> NDArray[np.float64]:
        """Return what rows are ordered by, the least first."""
        if order.key == "doubt" and self._guesses is not None:
            keys = self._guesses.doubt
        elif order.key == "said":
            keys = self._rows.newest.astype(np.float64)
        else:
            keys = self._rows.sequence.astype(np.float64)
        return -keys if order.descending else keys


def guess_classes(
    classifier: TreeClassifier, cells: UncertainValues
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the likeliest class of rows, and 1 minus its probability."""
    found = classifier.model.predict_cells(cells.of_first(classifier.width))
    klass = np.asarray(found.klass, np.int64)
    doubt = 1.0 - np.take_along_axis(found.theta, klass[:, None], axis=1)[:, 0]
    return klass, np.clip(doubt, 0.0, 1.0)


def _first_of(
    positions: NDArray[np.intp], keys: NDArray[np.float64], sequences: NDArray[np.int64], count: int
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.int64]]:
    """Return the rows with the least keys, and all that are equal to the last of them: no more need be sorted."""
    last = np.partition(keys, count - 1)[count - 1]
    kept = keys <= last
    return positions[kept], keys[kept], sequences[kept]


def _top_classes(known: NDArray[np.float64]) -> int:
    """Return the most plausible classes as a bit mask; 0 if nothing is known."""
    top = known == known.max()
    return 0 if top.all() else int(sum(1 << int(k) for k in np.flatnonzero(top)))


def _read_said(history: Sequence[Event], size: int) -> _Said:
    """Return what labellers said, by the history of a row."""
    in_force = (LabelState.COUNTS, LabelState.PENDING)
    labellers = frozenset(each.event.author for each in label_events(history) if each.state in in_force)
    return _Said(labellers, is_disputed(history, size), history[-1].sequence)


def _has_value(cells: UncertainValues, wanted: str, schema: ModelSchema) -> _Bools:
    """Return which rows have, or may have, a name that contains a text, or the number that it is."""
    try:
        number: float | None = float(wanted)
    except ValueError:
        number = None
    values, found = cells.values, np.zeros(len(cells), bool)
    meant: dict[int, list[float]] = {}
    for k, column in enumerate(schema.columns):
        if column.values is not None:
            named = [i for i, name in enumerate(column.values) if wanted in name.casefold()]
            if named:
                found |= np.isin(values[:, k], named)
                meant[k] = [float(index) for index in named]
        elif number is not None:
            found |= values[:, k] == number
            meant[k] = [number]
    for (row, k), ranges in cells.parts.items():
        found[row] |= any(low <= each <= high for low, high in ranges for each in meant.get(k, ()))
    return found


class RowIndexes:
    """The indexes of the models whose rows were asked for last. Made and used in one event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="quercus-rows")
        self._judges = ThreadPoolExecutor(1, thread_name_prefix="quercus-doubt")
        self._kept: dict[tuple[int, int], RowIndex] = {}  # by identity of the schema
        self._judging: set[asyncio.Future[None]] = set()

    async def find(
        self,
        wanted: RowSelection,
        schema: ModelSchema,
        classifier: TreeClassifier | None,
        after: tuple[float, int] | None,
        size: int,
    ) -> Found:
        """Return a page of rows, as of `RowIndex.find`.

        The doubt is that of the newest tree that has judged all rows. If there is a newer one, it judges them
        afterwards, for later pages.
        """
        loop = asyncio.get_running_loop()
        look = partial(self._find, wanted, schema, classifier, after, size)
        index, found = await loop.run_in_executor(self._pool, look)
        if classifier is not None and index.wants_judging(classifier) and not self._judging:
            judging = asyncio.ensure_future(self._judge(index, classifier))
            self._judging.add(judging)
            judging.add_done_callback(self._judging.discard)
        return found

    def _find(self, wanted: RowSelection, schema: ModelSchema, *rest: Any) -> tuple[RowIndex, Found]:
        index = self._kept.pop(schema.identity, None) or RowIndex(self._store, schema)
        found = index.find(wanted, schema, *rest)
        self._kept[schema.identity] = index
        if len(self._kept) > MAX_INDEXES:
            del self._kept[next(iter(self._kept))]
        return index, found

    async def _judge(self, index: RowIndex, classifier: TreeClassifier) -> None:
        loop = asyncio.get_running_loop()
        try:
            guesses = await loop.run_in_executor(self._judges, index.judge, classifier)
        except Exception:  # the model may be gone; the next page says so
            _log.warning("the rows of a model could not be judged by its newest tree", exc_info=True)
        else:
            await loop.run_in_executor(self._pool, index.replace_guesses, guesses)

    def close(self) -> None:
        """Wait for the looks under way."""
        self._judges.shutdown()
        self._pool.shutdown()
