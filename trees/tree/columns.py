"""Declarations of columns of nodes, in the annotations of the fields of `quercus.trees.tree.flat.FlatTree`.

They determine the conversion between a tree and its arrays, the columns of a stored tree, and which of these only
people read. A column has one entry per node (`Column`), or a node has a range of entries in several columns (`Ragged`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

from numpy.typing import NDArray

from quercus.belief.arrays import Ints
from quercus.trees.tree.node import Node


@dataclass(frozen=True)
class Column:
    """A column with an entry a node.

    Parameters
    ----------
    dtype
        Type of the entries.
    of
        Returns the entry of a node; None for what only the tree knows (parent and branch).
    values
        Returns what `Node` has in the field of the same name, for every entry.
    absent
        Returns the default column, given the numbers of instances (nodes,). Such a column is not stored
        when it says nothing else. None: it is always given, and always stored.
    people_read
        No prediction needs it: it is stored apart, and is all zeros where only what classifies is read.
    """

    dtype: str
    of: Callable[[Node], Any] | None = None
    values: Callable[[NDArray[Any]], list[Any]] = lambda column: column.tolist()
    absent: Callable[[Ints], NDArray[Any]] | None = None
    people_read: bool = False


@dataclass(frozen=True)
class Ragged:
    """Columns in which each node has a range of entries; the declaring field has the start of each, (nodes + 1,).

    Parameters
    ----------
    count
        Name of the column that is stored in the place of the starts: the length of each stretch.
    columns
        Name and type of the columns.
    of
        Returns the entries of a node, a tuple each.
    optional
        Not stored where no node has an entry.
    people_read
        See `Column`.
    """

    count: str
    columns: Mapping[str, str]
    of: Callable[[Node], Sequence[tuple[Any, ...]]]
    optional: bool = False
    people_read: bool = False


def declared_columns(of: type) -> tuple[dict[str, Column], dict[str, Ragged]]:
    """Return the columns that the annotated fields of a class declare, by name, in order."""
    hints = get_type_hints(of, include_extras=True)
    found = {name: each for name, hint in hints.items() for each in getattr(hint, "__metadata__", ())}
    plain = {name: each for name, each in found.items() if isinstance(each, Column)}
    return plain, {name: each for name, each in found.items() if isinstance(each, Ragged)}


def table_rows(table: NDArray[Any]) -> list[tuple[float, ...]]:
    """Return the rows of a table (nodes, l), a tuple each."""
    return list(map(tuple, table.tolist()))


def or_none(missing: Callable[[Any], bool]) -> Callable[[NDArray[Any]], list[Any]]:
    """Return what makes values of a column, None in the place of those that are `missing`."""
    return lambda column: [None if missing(value) else value for value in column.tolist()]
