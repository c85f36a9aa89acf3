"""An in-memory index of a model's rows: the evidence about each, its labellers, and the tree's prediction.

It follows the log, so that a page of a filtered list reads only the events since the previous page.
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

from quercus.belief.label import contour
from quercus.labelling.disputes import are_in_dispute
from quercus.labelling.errors import UnreadableLabel
from quercus.labelling.history import known_contour, standing_labels, stored_label
from quercus.server.wire.row_filter import RowOrder, RowSelection, Term
from quercus.server.wire.schema import ModelSchema
from quercus.server.wire.trees import TreeClassifier
from quercus.storage import FailedPrecondition, InstanceColumns, ModelRecord, NotFound, Store
from quercus.trees import UncertainValues

_log = logging.getLogger(__name__)
MAX_ROWS: Final = 2_000_000
"""Most rows of a model that can be filtered or ordered: each takes 32 bytes, and 26 more for guesses and searches."""
MAX_KEPT_BYTES: Final = 32 * 1024 * 1024
"""Most bytes of values that an index keeps; those of a larger model are read again for each tree and search."""
CELL_BYTES: Final = 400
"""Approximate size of an uncertain value in memory."""
MAX_INDEXES: Final = 4
"""Most models whose index is kept."""
MAX_SEARCHES: Final = 8
"""Most searched texts whose rows an index remembers."""
JUDGING_SHARE: Final = 4
"""After a tree has classified all rows, the next one waits for this multiple of the time that took."""
PIECE: Final = 20_000
"""Rows that are read or classified together."""
_Bools: TypeAlias = NDArray[np.bool_]
_COMPARED: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip


class Found(NamedTuple):
    """A page of rows.

    Attributes
    ----------
    sequences : sequences of the rows' INSTANCE events, in order.
    guesses : class (its index) and doubt of each row, if rows were filtered or ordered by them; else empty.
    after : sort key and sequence of the last row, after which the next page begins; None if there is no next page.
    total : number of matching rows on all pages.
    """

    sequences: list[int]
    guesses: list[tuple[int, float]]
    after: tuple[float, int] | None
    total: int


_ROW: Final = np.dtype(
    [
        ("sequence", np.int64),
        ("top", np.uint64),  # most plausible classes as a bit mask; 0 if nothing is known
        ("newest", np.int64),  # newest event about the row
        ("labellers", np.int32),  # number of the set of labellers whose labels stand
        ("disputed", np.bool_),
    ],
    align=True,
)


@dataclass(slots=True)
class Guesses:
    """The guesses of one tree about the first rows; the monotonic time when they were made, and the seconds it took."""

    classifier: TreeClassifier
    klass: NDArray[np.uint8]
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
        self._schema, self._model, self._size = schema, schema.model, schema.frame.size
        self._seen = 0  # newest event that it includes
        self._rows = np.zeros(0, _ROW)  # in the order in which they were pushed
        self._labellers: dict[frozenset[str], int] = {frozenset(): 0}  # sets of them, numbered
        self._cells: list[UncertainValues] | None = []  # None: too large to be kept
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
        """Return a page of the matching rows.

        Parameters
        ----------
        wanted : filter and order.
        schema : present schema of the model.
        classifier : newest tree; None if none is needed, or there is none yet.
        after : the page begins after this row, see `Found.after`; None for the first page.
        size : most rows of the page.

        Raises
        ------
        FailedPrecondition
            If the model has too many rows, or has no tree yet and one is needed.
        NotFound, Unavailable
            If another model has the name now, or the model was extended.
        """
        try:
            self._catch_up()
        except UnreadableLabel:
            self._check_same()  # the label may have a class that was added just now
            raise
        klass, doubt = np.zeros(0, np.uint8), np.zeros(0)
        if wanted.needs_guesses:
            klass, doubt = self._guess_rows(classifier)
        chosen = np.ones(len(self._rows), bool)
        for term in wanted.terms:
            chosen &= self._matches(term, schema, klass, doubt) != term.negated
        positions = np.flatnonzero(chosen)
        total = len(positions)
        keys = self._order_keys(wanted.order, doubt)[positions]
        sequences = self._rows["sequence"][positions]
        if after is not None:
            behind = (keys > after[0]) | ((keys == after[0]) & (sequences > after[1]))
            positions, keys, sequences = positions[behind], keys[behind], sequences[behind]
        if len(positions) > size + 1:
            positions, keys, sequences = _first_of(positions, keys, sequences, size + 1)
        order = np.lexsort((sequences, keys))
        page = order[:size]
        guesses: list[tuple[int, float]] = []
        if wanted.needs_guesses:
            at = positions[page]
            guesses = list(zip(klass[at].tolist(), doubt[at].tolist(), strict=True))
        last = page[-1] if len(order) > size else None
        return Found(
            sequences[page].tolist(),
            guesses,
            None if last is None else (float(keys[last]), int(sequences[last])),
            total,
        )

    # The log

    def _check_same(self) -> ModelRecord:
        """Return the model; raise if another has its name now, or it was extended, since that needs a new index."""
        found = self._store.get_model(self._model)
        self._schema.check_record(found)
        return found

    def _catch_up(self) -> None:
        """Read the events that were added since the last call."""
        end = self._check_same()
        if end.instance_count > MAX_ROWS:
            raise FailedPrecondition(
                f"model {self._model} has {end.instance_count:,} rows; at most {MAX_ROWS:,} can be filtered or "
                "ordered: list them without"
            )
        touched: set[int] = set()
        fresh = [self._rows]
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
        if len(fresh) > 1:
            self._rows = np.concatenate(fresh)
        self._read_histories(sorted(touched))

    def _read_rows(self, part: InstanceColumns) -> NDArray[np.void]:
        rows = np.zeros(len(part.labels), _ROW)
        rows["sequence"] = rows["newest"] = np.arange(part.first, part.first + len(rows))
        rows["top"] = np.fromiter(map(self._top_of_label, part.labels), np.uint64, len(rows))
        self._kept_bytes += part.values.nbytes + CELL_BYTES * len(part.parts)
        if self._cells is not None:
            self._cells.append(UncertainValues(part.values, part.parts))
            if self._kept_bytes > MAX_KEPT_BYTES:
                self._cells = None
        return rows

    def _top_of_label(self, label: bytes) -> int:
        found = self._tops.get(label)
        if found is None:
            found = _top_classes(contour(stored_label(label, self._size), self._size))
            if len(self._tops) < PIECE:
                self._tops[label] = found
        return found

    def _read_histories(self, instances: Sequence[int]) -> None:
        for start in range(0, len(instances), PIECE):
            some = instances[start : start + PIECE]
            places = np.searchsorted(self._rows["sequence"], some).tolist()
            for place, history in zip(places, self._store.history(self._model, some).values(), strict=True):
                standing = standing_labels(history)
                authors = frozenset(each.event.author for each in standing)
                row = self._rows[place]
                row["top"] = _top_classes(known_contour(history, self._size))
                row["newest"] = history[-1].sequence
                row["labellers"] = self._labellers.setdefault(authors, len(self._labellers))
                row["disputed"] = are_in_dispute(standing, self._size)

    # The tree

    def wants_judging(self, classifier: TreeClassifier) -> bool:
        """Return whether a newer tree should classify the rows now; at most a fifth of the time is spent on that."""
        old = self._guesses
        if old is None or old.classifier.version == classifier.version:
            return False
        return time.monotonic() - old.at >= JUDGING_SHARE * old.took_s

    def judge(self, classifier: TreeClassifier) -> Guesses:
        """Classify all rows by a tree, and use the result from then on. Another thread may use the index meanwhile."""
        started = time.monotonic()
        found = Guesses(classifier, np.zeros(0, np.uint8), np.zeros(0))
        self._judge_new(found)
        found.at = time.monotonic()
        found.took_s = found.at - started
        self._guesses = found
        return found

    def _guess_rows(self, classifier: TreeClassifier | None) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
        """Return class and doubt of all rows, by the last tree that classified them, or by this one if none has."""
        if classifier is None:
            raise FailedPrecondition(
                f"model {self._model} has no tree yet, so that it has no guess and no doubt: try again in a moment"
            )
        guesses = self._guesses or self.judge(classifier)
        self._judge_new(guesses)
        return guesses.klass, guesses.doubt

    def _judge_new(self, guesses: Guesses) -> None:
        """Classify the new rows by the same tree."""
        if len(guesses.klass) == len(self._rows):
            return
        klass, doubt = [guesses.klass], [guesses.doubt]
        for cells in self._cells_from(len(guesses.klass)):
            guessed = guess_classes(guesses.classifier, cells)
            klass.append(guessed[0])
            doubt.append(guessed[1])
        guesses.klass, guesses.doubt = np.concatenate(klass), np.concatenate(doubt)

    def _cells_from(self, position: int) -> Iterator[UncertainValues]:
        """Yield the values of the rows from a position on, in pieces."""
        count = len(self._rows)
        if (kept := self._cells) is not None:
            start = 0
            for cells in kept[:]:
                if start + len(cells) > position:
                    yield cells.take(np.arange(max(0, position - start), len(cells)))
                start += len(cells)
            return
        while (begun := position) < count:
            after = int(self._rows["sequence"][position]) - 1
            for part in self._store.read_log(self._model, after, rows=PIECE).parts:
                if isinstance(part, InstanceColumns) and position < count:
                    cells = UncertainValues(part.values, part.parts)
                    yield cells.take(np.arange(min(len(cells), count - position)))
                    position += len(cells)
            self._check_progress(begun, position)

    def _check_progress(self, before: int, position: int) -> None:
        """Raise `NotFound` if the store has no more rows: a log never shrinks, so another model has the name now."""
        if position == before:
            raise NotFound("model", self._model, "any more: another has its name")

    # The filter

    def _matches(
        self, term: Term, schema: ModelSchema, klass: NDArray[np.uint8], doubt: NDArray[np.float64]
    ) -> _Bools:
        """Return a mask of the rows that match a term, before negation; `klass` and `doubt` are those of the tree."""
        found: _Bools
        top = self._rows["top"]
        match term.field:
            case "class":
                bit = np.uint64(1 << schema.frame.classes.index(term.value))
                found = ((top & bit) != 0) == (term.operator == "=")
            case "labelled":
                found = top != 0
            case "labeller":
                theirs = [number for names, number in self._labellers.items() if term.value in names]
                found = np.isin(self._rows["labellers"], theirs) == (term.operator == "=")
            case "disputed":
                found = self._rows["disputed"]
            case "text":
                found = self._search(term.value, schema)
            case "guess":
                found = (klass == schema.frame.classes.index(term.value)) == (term.operator == "=")
            case "unexpected":
                found = (top != 0) & ((top & (np.uint64(1) << klass.astype(np.uint64))) == 0)
            case _:
                found = _COMPARED[term.operator](doubt, float(term.value))
        return found

    def _search(self, text: str, schema: ModelSchema) -> _Bools:
        """Return a mask of the rows whose id or a nominal value contains a text, or that have it as a number."""
        wanted = text.casefold()
        known = self._searches.pop(wanted, np.zeros(0, bool))
        start = len(known)
        found = np.concatenate(
            [known, *(_has_value(cells, wanted, schema) for cells in self._cells_from(start))]
        )
        found[start:] |= self._ids_with(wanted, start)
        self._searches[wanted] = found
        if len(self._searches) > MAX_SEARCHES:
            del self._searches[next(iter(self._searches))]
        return found

    def _ids_with(self, wanted: str, start: int) -> _Bools:
        sequence = self._rows["sequence"][start:]
        found = np.zeros(len(sequence), bool)
        at = 0
        while (begun := at) < len(found):
            ids = self._store.row_ids(self._model, int(sequence[at]) - 1, min(PIECE, len(found) - at))
            found[at : at + len(ids)] = [wanted in each.casefold() for each in ids]
            at += len(ids)
            self._check_progress(begun, at)
        return found

    def _order_keys(self, order: RowOrder, doubt: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sort keys of the rows, ascending."""
        columns = {"doubt": doubt, "said": self._rows["newest"], "pushed": self._rows["sequence"]}
        keys = columns[order.key].astype(np.float64)
        return -keys if order.descending else keys


def guess_classes(
    classifier: TreeClassifier, cells: UncertainValues
) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Return the likeliest class of rows, and 1 minus its probability."""
    found = classifier.model.predict_cells(cells.of_first(classifier.width))
    doubt = 1.0 - np.take_along_axis(found.theta, found.klass[:, None], axis=1)[:, 0]
    return found.klass.astype(np.uint8), np.clip(doubt, 0.0, 1.0)


def _first_of(
    positions: NDArray[np.intp], keys: NDArray[np.float64], sequences: NDArray[np.int64], count: int
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.int64]]:
    """Return the `count` rows with the least keys, and all with the same key as the last: only they need sorting."""
    last = np.partition(keys, count - 1)[count - 1]
    kept = keys <= last
    return positions[kept], keys[kept], sequences[kept]


def _top_classes(known: NDArray[np.float64]) -> int:
    """Return the most plausible classes as a bit mask; 0 if nothing is known."""
    top = known == known.max()
    return 0 if top.all() else int(sum(1 << int(k) for k in np.flatnonzero(top)))


def _has_value(cells: UncertainValues, wanted: str, schema: ModelSchema) -> _Bools:
    """Return a mask of the rows that have, or may have, a nominal value containing a text, or the text as a number."""
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
    """The indexes of the most recently used models. Create and use them in one event loop."""

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
        """Return a page of rows, as in `RowIndex.find`.

        Guesses are those of the newest tree that has classified all rows. If there is a newer one, it classifies them
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
        try:
            await asyncio.get_running_loop().run_in_executor(self._judges, index.judge, classifier)
        except Exception:  # the model may be gone, which the next page reports
            _log.warning("the rows of a model could not be judged by its newest tree", exc_info=True)

    def close(self) -> None:
        """Wait for the searches under way."""
        self._judges.shutdown()
        self._pool.shutdown()
