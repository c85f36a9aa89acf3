r"""Values of attributes as cells of files: a name, ``sun|rain`` for a set, ``2..9`` for a range.

In a name with a bar, and in a set, bars and backslashes in names have a backslash before them, as in ``sun\|rain``.
`quercus.files.cells` reads all three.
"""

from collections.abc import Iterable

from quercus.specification.written_labels import SET


def name_cell(name: str) -> str:
    r"""Return a name as a cell that is not a set.

    Examples
    --------
    >>> name_cell("sun"), print(name_cell("sun|rain"))
    sun\|rain
    ('sun', None)
    """
    return _escaped(name) if SET in name else name


def set_cell(names: Iterable[str]) -> str:
    """Return a set of names as a cell, in alphabetical order.

    Examples
    --------
    >>> set_cell({"sun", "rain"})
    'rain|sun'
    """
    return SET.join(map(_escaped, sorted(names)))


def range_cell(low: float, high: float) -> str:
    """Return a range as a cell, with its ends in full precision.

    Examples
    --------
    >>> range_cell(2.0, 9.5), range_cell(-1.0, 0.1)
    ('2..9.5', '-1..0.1')
    """
    ends = (str(int(end)) if end.is_integer() and abs(end) < 1e15 else repr(end) for end in (low, high))
    return "..".join(ends)


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace(SET, f"\\{SET}")
