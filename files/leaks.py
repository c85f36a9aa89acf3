"""Columns of labels that are not declared as such; as attributes, they would reveal the class to a learner."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from quercus.files.errors import FileError
from quercus.files.table import listed_names
from quercus.specification.written_labels import set_parts

CLASS = "class"
"""The default name of a class column."""


class LeakError(FileError):
    """Columns of labels would become attributes."""

    def __init__(self, path: Path, reason: str, columns: tuple[str, ...]) -> None:
        super().__init__(path, reason)
        self.columns = columns


@dataclass(frozen=True)
class ColumnContent:
    """The content of a column: its distinct values, and whether all of them are numbers."""

    name: str
    values: Collection[str]
    numeric: bool


def names_classes(column: ColumnContent, frame: Sequence[str]) -> bool:
    """Return whether a column contains only classes and sets of classes.

    A column of numbers must contain every class, since a few small numbers easily coincide.

    Examples
    --------
    >>> frame = ("a", "b", "c")
    >>> [names_classes(ColumnContent("x", found, False), frame) for found in ({"a"}, {"a|b", "c"}, {"a", "z"})]
    [True, True, False]
    >>> [names_classes(ColumnContent("x", found, True), ("0", "1", "2")) for found in ({"0", "1"}, {"0", "1", "2"})]
    [False, True]
    """
    if column.numeric:
        return set(column.values) == set(frame)
    return bool(column.values) and all(
        value in frame or set(set_parts(value)) <= set(frame) for value in column.values
    )


def names_sets(column: ColumnContent, frame: Sequence[str]) -> bool:
    """Return whether a column contains only classes and sets of classes, and at least one set.

    Attributes may have the same values as the classes (yes and no), but not sets of them.
    """
    return names_classes(column, frame) and not set(column.values) <= set(frame)


def refuse_labels(
    path: Path, columns: Iterable[ColumnContent], frame: Sequence[str], class_column: str | None
) -> None:
    """Refuse columns of labels that would become attributes.

    Parameters
    ----------
    path
        The file.
    columns
        Columns that would become attributes.
    frame
        The classes; empty if they are unknown.
    class_column
        The column of the class; None if there is none. Then every column of classes may be the one.

    Raises
    ------
    LeakError
        For an ambiguous column; it names the columns, and the option that decides.
    """
    looks = names_classes if class_column is None else names_sets
    found = [each for each in columns if each.name.casefold() == CLASS or (frame and looks(each, frame))]
    if not found:
        return
    names = listed_names([repr(each.name) for each in found])
    one, first = len(found) == 1, found[0].name
    what = f"column {names} is" if one else f"columns {names} are"
    why = (
        "named like a class column"
        if first.casefold() == CLASS
        else f"of nothing but classes ({listed_names(frame)})"
    )
    choice = "" if class_column is not None else f"name the class column with --class {first!r}, "
    choice += f"leave {'it' if one else 'each'} out with --ignore {first!r}, "
    choice += f"or say that {'it' if one else 'each'} is an attribute with --attribute {first!r}"
    raise LeakError(
        path,
        f"{what} {why}, and would become {'an attribute' if one else 'attributes'}: {choice}",
        tuple(each.name for each in found),
    )


def refuse_second(path: Path, columns: Iterable[ColumnContent], frame: Sequence[str], taken: str) -> None:
    """Refuse the column that was chosen for the labels by default, if others contain sets of classes.

    Raises
    ------
    FileError
        With the names of all these columns.
    """
    others = [each.name for each in columns if names_sets(each, frame)]
    if others:
        names = listed_names([repr(name) for name in (taken, *others)])
        raise FileError(path, f"the columns {names} all hold labels; say which one it is with --class")
