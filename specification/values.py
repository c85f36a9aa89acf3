r"""The same name for the same value, from every source.

The rule, for the names of a nominal attribute and of the classes:

- White space at both ends is removed, and the text is converted to Unicode's form NFC.
- A whole number that is written with a fraction of zeros, ``-?\d+\.0+``, is the integer: a column of whole numbers in
  which one cell is missing comes as ``101.0`` from pandas, and as ``101`` from a file. ``1.10``, ``1e3`` and ``007``
  stay.
- Where all names are spellings of true and false, a model that is made from them spells them ``true`` and ``false``:
  pandas writes ``True``, Parquet ``true``, and R ``TRUE``.
- Otherwise, names that differ in case or in inner white space are different values.
- A cell gets the spelling of its attribute. Truth values that a stream sent before the first other value are still
  recognised in any case, so ``True`` is the same value before and after.

A cell of a numeric attribute is a number or text of one (`NUMBER`). Times are numbers: seconds since 1970 UTC.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import takewhile
from numbers import Integral, Real
from typing import Any, Final

from quercus.belief.errors import shown
from quercus.belief.missing import is_missing

NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
NOTHING: Final = "?"
"""Text of a missing value, unless the attribute has a value with this name."""
_TRUTH: Final = frozenset({"true", "false"})
_WHOLE: Final = re.compile(r"(-?\d+)\.0+", re.ASCII)
_MOMENT: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?( ?(Z|[+-]\d{2}(:?\d{2})?))?)?", re.ASCII
)


def canonical_text(text: str) -> str:
    """Return the name of a value that is given as text; empty for white space only.

    Examples
    --------
    >>> [canonical_text(text) for text in (" red", "101.0", "-0.0", "1.10", "1e3", "007", "True", "")]
    ['red', '101', '0', '1.10', '1e3', '007', 'True', '']
    """
    text = text.strip()
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    if text.endswith("0") and (whole := _WHOLE.fullmatch(text)) is not None:
        return "0" if whole[1] == "-0" else whole[1]
    return text


def canonical_cell(cell: Any) -> str | None:
    """Return the name of a value of any type; None if it is missing.

    Parameters
    ----------
    cell
        Text, a truth value or a number, of Python, NumPy, pandas or Arrow; ``None``, NaN, ``NaT``, ``NA`` and text
        without a character are missing.

    Raises
    ------
    ValueError
        For a type that has no names; the message says what to do.

    Examples
    --------
    >>> [canonical_cell(cell) for cell in ("red ", True, 101.0, 2.5, 7, None, float("nan"), "")]
    ['red', 'true', '101', '2.5', '7', None, None, None]
    """
    if isinstance(cell, str):
        return canonical_text(cell) or None
    cell = _plain(cell)
    if is_missing(cell):
        return None
    kind = type(cell).__name__
    if isinstance(cell, timedelta | time) or kind == "timedelta64":
        raise ValueError(
            f"{cell} is a time ({kind}), and the column is one of names: write it as a number or as text"
        )
    if isinstance(cell, bool) or kind in {"bool", "bool_"}:
        return "true" if cell else "false"
    if isinstance(cell, Integral):
        return str(int(cell))
    if isinstance(cell, Real | Decimal):
        if not math.isfinite(cell):
            raise ValueError(f"{cell} is not a name")
        return canonical_text(str(cell))
    if seconds_of(cell) is not None:
        raise ValueError(
            f"{cell} is a moment, and the column is one of names: make it numeric, which takes moments as seconds since"
            " 1970 UTC, or write the moments as text"
        )
    raise ValueError(f"{_shown(cell)} ({kind}) is not a name: a name is text, a truth value or a number")


def finite_number(text: str) -> float | None:
    """Return a text as a finite number; None if it is not one.

    Examples
    --------
    >>> finite_number("1e3"), finite_number("1_000"), finite_number("inf"), finite_number("12 kg")
    (1000.0, None, None, None)
    """
    if NUMBER.fullmatch(text) is None:
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def number_of(cell: Any) -> float | None:
    """Return the number in a cell of a numeric attribute; None if it is missing.

    Parameters
    ----------
    cell
        A number or a truth value of any type; a time, in seconds since 1970 UTC; a duration, in seconds; or text: a
        number that matches `NUMBER`, a time, or a missing value (empty, or ``?``).

    Raises
    ------
    ValueError
        For any other cell.

    Examples
    --------
    >>> [number_of(cell) for cell in (3, "2.50", "1970-01-02", timedelta(minutes=2), True, "?")]
    [3.0, 2.5, 86400.0, 120.0, 1.0, None]
    >>> number_of("2,5")
    Traceback (most recent call last):
    ValueError: '2,5' is not a number
    """
    cell = cell.strip() if isinstance(cell, str) else _plain(cell)
    if is_missing(cell) or (isinstance(cell, str) and cell in {"", NOTHING}):
        return None
    if isinstance(cell, timedelta):
        return cell.total_seconds()
    if type(cell).__name__ == "timedelta64":
        return int(cell.astype("timedelta64[ns]")) / 1e9
    number = seconds_of(cell)
    if isinstance(cell, str):
        number = finite_number(cell) if number is None else number
    elif number is None and not isinstance(cell, bytes):
        with suppress(TypeError, ValueError, OverflowError):
            number = float(cell)
    if number is None:
        raise ValueError(f"{_shown(cell)} is not a number")
    return number


def is_truth(names: Iterable[str]) -> bool:
    """Return whether all names, at least one, are spellings of true and false.

    Examples
    --------
    >>> is_truth(["True", "FALSE"]), is_truth(["true"]), is_truth(["true", "maybe"]), is_truth(["t", "f"]), is_truth([])
    (True, True, False, False, False)
    """
    is_any = False
    for name in names:  # the first other name settles it
        if name.lower() not in _TRUTH:
            return False
        is_any = True
    return is_any


class Spellings:
    """The names of an attribute or of the classes, found by any of their spellings.

    Parameters
    ----------
    names
        The names in any order, as spelled when the model was created.

    Examples
    --------
    >>> spellings = Spellings(["101", "102"])
    >>> spellings.of("101.0"), spellings.of("103.0"), spellings.name("103.0")
    ('101', None, '103')
    >>> Spellings(["True", "False"]).of("true"), Spellings(["Red"]).of("red"), Spellings([]).name("TRUE")
    ('True', None, 'true')
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = {name: name for name in names}
        self._canonical = {canonical_text(name): name for name in reversed(self._names)}
        # Values that were learned before the first other name were recognised as truth values in any case.
        truth = list(takewhile(lambda name: canonical_text(name).lower() in _TRUTH, self._names))
        self._is_truth = len(truth) == len(self._names)
        self._in_any_case = {canonical_text(name).lower(): name for name in truth}
        if len(self._in_any_case) < len(truth):  # they differ only in case
            self._in_any_case = {}

    def of(self, text: str) -> str | None:
        """Return the name that a text means, in its own spelling; None if it is unknown."""
        if text in self._names:
            return text
        text = canonical_text(text)
        return self._canonical.get(text) or self._in_any_case.get(text.lower())

    def name(self, text: str) -> str:
        """Return the name that a text means, for an unknown one its canonical form.

        An unknown truth value is spelled in lower case if all names are truth values.
        """
        found = self.of(text)
        if found is not None:
            return found
        text = canonical_text(text)
        return text.lower() if self._is_truth and text.lower() in _TRUTH else text


def canonical_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the spelling of each name in a model that is made from them.

    Raises
    ------
    ValueError
        If two different names are the same value.

    Examples
    --------
    >>> canonical_names(["True", "False"]), canonical_names(["101.0", "102.0"]), canonical_names(["True", "maybe"])
    (('true', 'false'), ('101', '102'), ('True', 'maybe'))
    >>> canonical_names(["101", "101.0"])
    Traceback (most recent call last):
    ValueError: '101' and '101.0' are one value, 101
    """
    given = list(names)
    truth = is_truth(canonical_text(name) for name in given)
    first: dict[str, str] = {}
    canonical = []
    for name in given:
        text = canonical_text(name)
        text = text.lower() if truth else text
        if first.setdefault(text, name) != name:
            raise ValueError(f"{shown(first[text])} and {shown(name)} are one value, {text}")
        canonical.append(text)
    return tuple(canonical)


def seconds_of(cell: Any) -> float | None:
    """Return a time in seconds since 1970 UTC; None if the cell is not a time.

    Parameters
    ----------
    cell
        A date, a ``datetime`` (also a pandas timestamp), a ``datetime64`` of NumPy, or ISO 8601 text with a date.
        Without a time zone it is UTC; a date stands for its midnight.

    Examples
    --------
    >>> [seconds_of(cell) for cell in ("1970-01-02", "1970-01-01T01:00:00.5+01:00", date(1970, 1, 1), "12")]
    [86400.0, 0.5, 0.0, None]
    """
    cell = _moment_in(cell.strip()) if isinstance(cell, str) else _plain(cell)
    if is_missing(cell):  # NaT of pandas is a datetime
        return None
    if type(cell).__name__ == "datetime64":
        whole = cell.astype("datetime64[s]")
        fraction = int((cell - whole).astype("timedelta64[ns]")) / 1e9
        return float(whole.astype("int64")) + fraction
    if isinstance(cell, date) and not isinstance(cell, datetime):
        cell = datetime(cell.year, cell.month, cell.day, tzinfo=UTC)
    if not isinstance(cell, datetime):
        return None
    return (cell if cell.tzinfo is not None else cell.replace(tzinfo=UTC)).timestamp()


def _plain(cell: Any) -> Any:
    """Return a scalar of Arrow as a Python object, and anything else unchanged."""
    return cell.as_py() if hasattr(cell, "as_py") else cell


def _moment_in(text: str) -> datetime | None:
    if _MOMENT.fullmatch(text) is None:
        return None
    try:
        return datetime.fromisoformat(text.replace(" ", "T", 1).replace(" ", ""))
    except ValueError:  # the 30th of February
        return None


def _shown(cell: Any, most: int = 60) -> str:
    text = repr(cell)
    return text if len(text) <= most else f"{text[:most]}..."
