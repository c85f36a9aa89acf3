"""Files of the answers of many labellers, such as from crowds.

*Long*: one row per answer, with columns for the item, the labeller and the answer, and optionally for its reliability
and a comment. *Wide*: one row per item and one column per labeller; an empty cell is not an answer. Columns are guessed
by their names; a file with a column of answers is long. Files of `quercus answers -o` are long as well; only answers
that count are read from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quercus.belief.errors import shown
from quercus.client.labels import LabelLike
from quercus.files.errors import FileError
from quercus.files.labels import label_of
from quercus.files.table import FileRecord, FileTable, listed_names
from quercus.specification.bounds import MAX_GOLD
from quercus.specification.values import NOTHING, finite_number

ITEM = ("item", "instance", "id", "task", "question", "object", "example", "row")
LABELLER = ("labeller", "worker", "annotator", "labeler", "rater", "coder", "user", "author")
ANSWER = ("answer", "response", "vote", "annotation", "judgement", "judgment", "label")
TRUTH = ("class", "truth", "true", "gold", "target", "label", "ground_truth", "true_label")
"""Names of columns of a wide file that do not belong to a labeller."""
MAX_RELIABILITY = 1.0
LIVE = ("counts", "pending")


@dataclass(frozen=True)
class AnswerColumns:
    """Names of the columns of item, labeller and answer; None for those to guess."""

    item: str | None = None
    labeller: str | None = None
    answer: str | None = None

    @property
    def is_given(self) -> bool:
        """True if any column is named."""
        return self != AnswerColumns()


@dataclass(frozen=True)
class FileAnswer:
    """One answer of a file: line, item, labeller (empty if unknown), and the answer, also as text."""

    line: int
    item: str
    labeller: str
    label: LabelLike
    text: str
    reliability: float | None = None
    comment: str = ""


class AnswerFile:
    """An opened file of answers; iterating reads them.

    Parameters
    ----------
    table
        The file.
    classes
        The frame.
    given
        The columns that the user named.

    Attributes
    ----------
    unused : tuple of str
        Columns that are not read.
    """

    def __init__(self, table: FileTable, classes: Sequence[str], given: AnswerColumns) -> None:
        self.table, self._classes = table, classes
        self._item = _find_column(table, given.item, "--item", ITEM)
        self._labeller = _find_column(table, given.labeller, "--labeller-column", LABELLER)
        self._answer = _find_column(table, given.answer, "--answer-column", ANSWER)
        self._workers: list[int] = []
        if self._answer is None:
            if self._labeller is not None:
                raise self._cannot_tell("the answer", "--answer-column", ANSWER)
            self._workers = self._worker_columns(given.labeller)
        elif self._item is None:
            raise self._cannot_tell("the item", "--item", ITEM)
        self._reliability = self._column_or_none("reliability")
        self._comment = self._column_or_none("comment")
        self._state = self._column_or_none("state") if self._column_or_none("number") is not None else None
        used = {self._item, self._labeller, self._answer, self._reliability, self._comment, *self._workers}
        self.unused = tuple(name for k, name in enumerate(table.names) if k not in used)

    def __iter__(self) -> Iterator[FileAnswer]:
        for row, record in enumerate(self.table):
            if self._state is not None and record.cells[self._state] not in LIVE:
                continue
            item = str(row) if self._item is None else record.cells[self._item]
            if item is None:
                raise self.table.error(record, self._item or 0, "the item is missing")
            if self._workers:
                for k in self._workers:
                    yield from self._answers_in_cell(record, k, item, self.table.names[k])
            else:
                who = "" if self._labeller is None else record.cells[self._labeller]
                if who is None:
                    raise self.table.error(record, self._labeller or 0, "the labeller is missing")
                yield from self._answers_in_cell(record, self._answer or 0, item, who)

    def _answers_in_cell(self, record: FileRecord, k: int, item: str, who: str) -> Iterator[FileAnswer]:
        cell = record.cells[k]
        if cell is None or cell == NOTHING:
            return
        label = label_of(self.table, record, k, self._classes)
        reliability = None
        if self._reliability is not None and (given := record.cells[self._reliability]) is not None:
            reliability = finite_number(given)
            if reliability is None or not 0.0 < reliability <= MAX_RELIABILITY:
                reason = f"{shown(given)} is not a reliability in (0, 1]"
                raise self.table.error(record, self._reliability, reason)
        comment = "" if self._comment is None else record.cells[self._comment] or ""
        yield FileAnswer(record.line, item, who, label, cell, reliability, comment)

    def _worker_columns(self, labeller: str | None) -> list[int]:
        names = self.table.names
        workers = [k for k, name in enumerate(names) if k != self._item and name.lower() not in TRUTH]
        first = next(iter(self.table), None)
        if labeller is not None or first is None or not workers:
            raise self._cannot_tell("the answer", "--answer-column", ANSWER)
        for k in workers:
            try:
                label_of(self.table, first, k, self._classes)
            except FileError:
                raise FileError(
                    self.table.path,
                    f"which columns hold the item, the labeller and the answer? Name them with --item, "
                    f"--labeller-column and --answer-column; the columns are {listed_names(names)} (as a file with a "
                    f"column for each labeller it has {shown(first.cells[k])} in {shown(names[k])}, which is not a "
                    "class)",
                    first.line,
                ) from None
        return workers

    def _column_or_none(self, name: str) -> int | None:
        return self.table.names.index(name) if name in self.table.names and not self._workers else None

    def _cannot_tell(self, what: str, flag: str, known: Sequence[str]) -> FileError:
        return FileError(
            self.table.path,
            f"which column holds {what}? Name it with {flag}; the columns are {listed_names(self.table.names)}, "
            f"and the known names are {listed_names(known)}",
        )


def _find_column(table: FileTable, given: str | None, flag: str, known: Sequence[str]) -> int | None:
    """Return the index of a column: the given one, else the first with a known name, in the order of `known`."""
    if given is not None:
        return table.position(given, flag)
    names = [name.lower() for name in table.names]
    return next((names.index(word) for word in known if word in names), None)


def gold_marks(table: FileTable, classes: Sequence[str], columns: AnswerColumns) -> dict[str, LabelLike]:
    """Return the right answers of a file of gold questions, by row.

    Raises
    ------
    FileError
        If a row comes twice, or there are none or too many.
    """
    found: dict[str, LabelLike] = {}
    for each in AnswerFile(table, classes, columns):
        if each.item in found:
            raise FileError(table.path, f"has row {each.item!r} twice", each.line)
        if len(found) == MAX_GOLD:
            raise FileError(
                table.path, f"has more than {MAX_GOLD:,} rows, the most gold questions of a model"
            )
        found[each.item] = each.label
    if not found:
        raise FileError(table.path, "has a header but no rows with a class")
    return found
