"""Errors in files, with their places."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final

from quercus.belief.errors import shown

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Error numbers for a file that cannot grow. Such errors from a library have no file name."""


ROW_ENDINGS: Final = (".parquet", ".arrow", ".arrows", ".feather")
"""Endings of the names of files without lines."""
NAME_CHARS: Final = 60
"""Most characters of a column's name in messages."""


class FileWarning(UserWarning):
    """A file is read in a way that may not be intended; the message says how, and how to change that."""


class FileError(Exception):
    """A file that cannot be used.

    Parameters
    ----------
    path
        The file.
    reason
        Description of the error.
    line
        1-based line, or row for Parquet and Arrow files; 0 for the file as a whole.
    column
        1-based number of the column, 0 for the whole line.
    name
        The column's name, if it has one.

    Examples
    --------
    >>> str(FileError(Path("iris.csv"), "'x' is not a number", 3, 2, "sepal_width"))
    "iris.csv: line 3, column 2 (sepal_width): 'x' is not a number"
    """

    def __init__(self, path: Path, reason: str, line: int = 0, column: int = 0, name: str = "") -> None:
        self.path, self.reason, self.line, self.column, self.name = path, reason, line, column, name
        super().__init__(f"{path}: {self.place}: {reason}" if self.place else f"{path}: {reason}")

    @property
    def place(self) -> str:
        """Line and column; empty for the file as a whole."""
        if not self.line:
            return f"column {shown(self.name)}" if self.name else ""
        where = f"{unit_of(self.path)} {self.line}"
        where += f", column {self.column}" if self.column else ""
        return where + (f" ({cut_name(self.name)})" if self.name else "")

    @property
    def reason_in_column(self) -> str:
        """The reason after the name of the column, for a list of lines."""
        return f"{cut_name(self.name)}: {self.reason}" if self.name else self.reason


def cut_name(name: str) -> str:
    """Return the name of a column, cut if it is long."""
    return name if len(name) <= NAME_CHARS else f"{name[: NAME_CHARS - 3]}..."


def unit_of(path: Path) -> str:
    """Return the unit of positions in a file: rows for Parquet and Arrow files, otherwise lines."""
    return "row" if path.name.lower().endswith(ROW_ENDINGS) else "line"
