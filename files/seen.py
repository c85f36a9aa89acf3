"""Statistics of columns from one pass over a file: counts and distinct cells, in limited memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from quercus.files.errors import FileError
from quercus.files.table import FileColumn, FileTable
from quercus.specification.parameters import MAX_CLASSES, MAX_VALUES
from quercus.specification.values import finite_number

MOST_DISTINCT: Final = 10_000
"""Most distinct cells that are kept of a column."""
ALL_DISTINCT: Final = 1_000_000
"""Most distinct cells that are kept of all columns, except that each column may have `MAX_VALUES` and one more."""


@dataclass
class SeenColumn:
    """A column with its distinct cells, as written in the file, with numbers and texts apart.

    Parameters
    ----------
    column
        The column as the file declares it.
    position
        Its index in the table.
    most
        Most distinct numbers, and most distinct texts, that are kept.

    Attributes
    ----------
    known
        Number of cells with a value.
    numbers
        Distinct numbers with their first line, in the order of the file.
    texts
        Distinct other cells with their first line and their count.
    at_full
        Number of cells with a value up to the first that was not kept; 0 if all are kept.
    other_texts
        Number of cells with texts that were not kept.
    """

    column: FileColumn
    position: int
    most: int
    known: int = 0
    numbers: dict[str, int] = field(default_factory=dict)
    texts: dict[str, list[int]] = field(default_factory=dict)
    at_full: int = 0
    other_texts: int = 0

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.column.name

    def see(self, cell: str, line: int) -> None:
        """Count a cell."""
        self.known += 1
        if cell in self.numbers:
            return
        text = self.texts.get(cell)
        if text is not None:
            text[1] += 1
        elif finite_number(cell) is not None:
            if len(self.numbers) < self.most:
                self.numbers[cell] = line
            else:
                self.at_full = self.at_full or self.known
        elif len(self.texts) < self.most:
            self.texts[cell] = [line, 1]
        else:
            self.at_full = self.at_full or self.known
            self.other_texts += 1

    @property
    def text_cells(self) -> int:
        """Number of cells that are not numbers."""
        return self.other_texts + sum(count for _, count in self.texts.values())

    @property
    def sampled(self) -> int:
        """Number of cells with a value among which the distinct ones are counted."""
        return self.at_full - 1 if self.at_full else self.known

    @property
    def values(self) -> list[str]:
        """The kept distinct cells."""
        return [*self.numbers, *self.texts]

    @property
    def is_numeric(self) -> bool:
        """True if all cells with a value are numbers, and there is at least one."""
        return bool(self.numbers) and not self.texts

    def line_of(self, cell: str) -> int:
        """Return the first line of a kept cell."""
        return self.numbers[cell] if cell in self.numbers else self.texts[cell][0]


@dataclass(frozen=True)
class SeenTable:
    """Statistics of a file: its columns, the number of rows, and relations that hold in all rows.

    ``same`` maps a column to an earlier one with the same cells. Each value of a column in ``telling`` occurs with only
    one class. Rows with a fault are only counted, in ``faults``.
    """

    table: FileTable
    columns: tuple[SeenColumn, ...]
    rows: int
    same: Mapping[str, str]
    telling: frozenset[str] = frozenset()
    faults: int = 0
    first_fault: FileError | None = None

    def column(self, name: str) -> SeenColumn:
        """Return a column by its name."""
        return self.columns[self.table.names.index(name)]


def see_table(
    table: FileTable,
    wanted: Iterable[int] | None = None,
    class_at: int | None = None,
    most_rows: int | None = None,
) -> SeenTable:
    """Return the statistics of a file from one pass.

    Parameters
    ----------
    table
        The file.
    wanted
        Indices of the columns whose cells are counted; None for all.
    class_at
        Index of the column of the class; None if there is none.
    most_rows
        Number of rows; reading ends after one more. None for no limit.
    """
    size = len(table.columns)
    most = max(MAX_VALUES + 1, min(MOST_DISTINCT, ALL_DISTINCT // max(1, size)))
    columns = tuple(SeenColumn(column, k, most) for k, column in enumerate(table.columns))
    looked_at = range(size) if wanted is None else sorted(wanted)
    seen = [(k, columns[k].see) for k in looked_at]
    groups, rows = [list(looked_at)], 0
    telling: dict[int, dict[str, str]] = {k: {} for k in looked_at if class_at is not None and k != class_at}
    faults, first_fault = 0, None
    for record in table.with_faults():
        if record.fault is not None:
            faults, first_fault = faults + 1, first_fault or record.fault
            continue
        rows += 1
        cells, line = record.cells, record.line
        for k, see in seen:
            cell = cells[k]
            if cell is not None:
                see(cell, line)
        if groups:  # groups of columns that were equal in all rows so far
            still: list[list[int]] = []
            for group in groups:
                parts: dict[str | None, list[int]] = {}
                for k in group:
                    parts.setdefault(cells[k], []).append(k)
                still.extend(part for part in parts.values() if len(part) > 1)
            groups = still
        if telling and class_at is not None and (klass := cells[class_at]) is not None:
            for k, known in list(telling.items()):
                cell = cells[k]
                if cell is not None and (known.setdefault(cell, klass) != klass or len(known) > MAX_CLASSES):
                    del telling[k]
        if most_rows is not None and rows > most_rows:
            break
    same = {table.names[k]: table.names[group[0]] for group in groups for k in group[1:]} if rows > 1 else {}
    tell = frozenset(table.names[k] for k, known in telling.items() if len(set(known.values())) > 1)
    return SeenTable(table, columns, rows, same, tell, faults, first_fault)
