r"""Cells of files with several possible values: ``sun|rain`` is a set of names, ``2..9`` a range of numbers.

A cell with a bar is a set if each part is a value of the attribute, and otherwise a name, as for sets of classes
(`quercus.specification.written_labels`). ``sun\|rain`` is always a name with a bar. A cell of a numeric attribute is a
range if it is two numbers with two points between them.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from quercus.belief.errors import shown
from quercus.client.values import Between
from quercus.specification.values import NUMBER, Spellings, canonical_text, finite_number
from quercus.specification.written_labels import set_parts

_RANGE: Final = re.compile(rf"({NUMBER.pattern})\s*\.\.\s*({NUMBER.pattern})", re.ASCII)


def is_range(cell: str) -> bool:
    """Return whether a cell is two numbers with two points between them."""
    return ".." in cell and _RANGE.fullmatch(cell) is not None


def range_in(cell: str) -> Between | None:
    """Return the range in a cell; None for a cell without two points.

    Raises
    ------
    ValueError
        If it has two points, but is not a range.

    Examples
    --------
    >>> range_in("2..9"), range_in("-1.5 .. -.5"), range_in("2.5")
    (Between(low=2.0, high=9.0), Between(low=-1.5, high=-0.5), None)
    >>> range_in("9..2")
    Traceback (most recent call last):
    ValueError: '9..2' is not a range: give two finite numbers in rising order, as 2..9
    """
    if ".." not in cell:
        return None
    found = _RANGE.fullmatch(cell)
    ends = (None, None) if found is None else (finite_number(found[1]), finite_number(found[4]))
    if ends[0] is None or ends[1] is None or ends[0] > ends[1]:
        raise ValueError(f"{shown(cell)} is not a range: give two finite numbers in rising order, as 2..9")
    return Between(ends[0], ends[1])


def set_in(cell: str, spellings: Spellings, *, of_any: bool = False) -> str | frozenset[str]:
    r"""Return the set of names in a cell, or its only name.

    Parameters
    ----------
    cell
        Its text, or another spelling of a name.
    spellings
        The values of the attribute.
    of_any
        Whether parts that are not values form a set as well.

    Examples
    --------
    >>> sky = Spellings(["sun", "rain"])
    >>> sorted(set_in(" sun| rain", sky)), set_in("sun|hail", sky), set_in(r"sun\|rain", sky), set_in("sun|sun", sky)
    (['rain', 'sun'], 'sun|hail', 'sun|rain', 'sun')
    """
    name = spellings.name(cell)
    if "|" not in cell or spellings.of(cell) is not None:
        return name
    parts = set_parts(cell)
    if len(parts) == 1:
        return spellings.name(parts[0])
    known = [spellings.of(part) for part in parts if part.strip()]
    if of_any:
        return frozenset(spellings.name(part) for part in parts if part.strip())
    if len(known) < len(parts) or None in known:
        return name
    names = frozenset(filter(None, known))
    return names if len(names) > 1 else next(iter(names))


def names_without_sets(cells: Collection[str]) -> list[str]:
    r"""Return the distinct names in the cells of a column, in order, without sets of them.

    Examples
    --------
    >>> names_without_sets(["sun", "rain", "sun|rain", "A|B", r"sun\|fog"])
    ['sun', 'rain', 'A|B', 'sun|fog']
    """
    if not any("|" in cell for cell in cells):
        return list(cells)
    spellings = Spellings([canonical_text(cell) for cell in cells if "|" not in cell])
    found = (cell if "|" not in cell else set_in(cell, spellings) for cell in cells)
    return list(dict.fromkeys(name for name in found if isinstance(name, str)))
