"""Arrays as texts that PostgreSQL reads: the driver would look at each value several times, in Python."""

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Final


def array_text(values: Sequence[Any]) -> str:
    """Return the text of an array, as PostgreSQL reads it."""
    return "{" + ",".join([_ELEMENTS.get(type(each), _number_text)(each) for each in values]) + "}"


def _number_text(value: object) -> str:
    """Return the text of a value of a derived type, as of NumPy."""
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return str(float(value))
    raise TypeError(f"an array of PostgreSQL takes no {type(value).__name__}")


def _quoted_element(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


_ELEMENTS: Final[Mapping[type, Callable[[Any], str]]] = {
    type(None): lambda _: "NULL",
    bool: str,
    int: str,
    float: str,
    str: _quoted_element,
    bytes: lambda data: '"\\\\x' + data.hex() + '"',
}
