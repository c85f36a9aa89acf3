"""Parsing the filter and the order of a list of rows.

A filter consists of terms joined by ``AND``: ``class = "red"``, ``doubt >= 0.4``, ``text : "north"``, ``disputed``,
``NOT labelled``. It is a subset of Google's AIP-160, without ``OR``, brackets and functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from quercus.belief.errors import InvalidInput, shown
from quercus.server.wire.names import not_found

MAX_LENGTH: Final = 2_000
"""Most characters of a filter."""
MAX_TERMS: Final = 20
FLAGS: Final = ("labelled", "disputed", "unexpected")
NAMES: Final = ("class", "guess", "labeller")
FIELDS: Final = (*NAMES, "doubt", "text", *FLAGS)
OPERATORS: Final[Mapping[str, Sequence[str]]] = {
    **dict.fromkeys(NAMES, ("=", "!=")), "doubt": ("<", "<=", ">", ">="), "text": (":",)
}  # fmt: skip
"""The operators that a field may have; a flag has none."""
ORDERS: Final = ("pushed", "said", "doubt")
_TOKEN: Final = re.compile(r'\s*(?:(<=|>=|!=|[=<>:])|"((?:[^"\\]|\\.)*)"|([^\s"=<>!:]+)|(\S))', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Term:
    """One condition on a row.

    Attributes
    ----------
    field : one of `FIELDS`.
    operator : one of the operators of the field; empty for a flag.
    value : class, labeller or text; for a doubt, the number as it was written; empty for a flag.
    negated : whether rows that do not meet the condition are wanted.
    """

    field: str
    operator: str = ""
    value: str = ""
    negated: bool = False


@dataclass(frozen=True, slots=True)
class RowOrder:
    """The order of rows: by ``pushed``, ``said`` or ``doubt``; equal rows in the order in which they were pushed."""

    key: str = "pushed"
    descending: bool = False

    def __str__(self) -> str:
        return f"{self.key} desc" if self.descending else self.key


@dataclass(frozen=True, slots=True)
class RowSelection:
    """The filter and order of rows; without terms, all rows."""

    terms: tuple[Term, ...] = ()
    order: RowOrder = RowOrder()

    @property
    def needs_guesses(self) -> bool:
        """True if filter or order depend on the tree's predictions."""
        return self.order.key == "doubt" or any(
            each.field in {"guess", "doubt", "unexpected"} for each in self.terms
        )


def read_selection(filter_text: str, order_text: str, classes: Sequence[str]) -> RowSelection:
    """Parse a filter and an order, which both may be empty.

    Parameters
    ----------
    filter_text, order_text : filter and order, as they were sent.
    classes : classes of the model.

    Raises
    ------
    InvalidInput
        If one is invalid; the error names the field and the invalid part, and says what may be there.
    """
    return RowSelection(tuple(read_filter(filter_text, classes)), read_order(order_text))


def read_order(text: str) -> RowOrder:
    """Parse an order.

    Examples
    --------
    >>> read_order("doubt desc")
    RowOrder(key='doubt', descending=True)
    """
    words = text.split()
    if not words:
        return RowOrder()
    key, direction = words[0], words[1] if len(words) > 1 else "asc"
    if key not in ORDERS or direction not in {"asc", "desc"} or len(words) > 2:
        known = ", ".join(ORDERS)
        raise InvalidInput(
            "order_by", f"is {shown(text[:60])}, must be one of {known}, alone or followed by desc"
        )
    return RowOrder(key, direction == "desc")


def read_filter(text: str, classes: Sequence[str]) -> list[Term]:
    r"""Parse a filter into terms.

    Examples
    --------
    >>> terms = read_filter('NOT labelled AND doubt>=0.4 AND text:"a \\"b\\""', ["red"])
    >>> [(each.field, each.operator, each.value, each.negated) for each in terms]
    [('labelled', '', '', True), ('doubt', '>=', '0.4', False), ('text', ':', 'a "b"', False)]
    """
    if len(text) > MAX_LENGTH:
        raise InvalidInput("filter", f"has {len(text):,} characters, at most {MAX_LENGTH:,} are allowed")
    tokens = _Tokens(text)
    found: list[Term] = []
    while not tokens.is_empty:
        if found and tokens.take_word() != "AND":
            raise tokens.unexpected("AND")
        found.append(_read_term(tokens, classes))
    if len(found) > MAX_TERMS:
        raise InvalidInput("filter", f"has {len(found)} terms, at most {MAX_TERMS} are allowed")
    return found


def _read_term(tokens: _Tokens, classes: Sequence[str]) -> Term:
    field = tokens.take_word()
    negated = field == "NOT"
    if negated:
        field = tokens.take_word()
    if field is None:
        raise tokens.unexpected("a field")
    if field not in FIELDS:
        raise InvalidInput("filter", not_found("field of a filter", field, FIELDS))
    if field in FLAGS:
        return Term(field, negated=negated)
    operator = tokens.take_operator()
    if operator not in OPERATORS[field]:
        raise tokens.unexpected(f"{' or '.join(OPERATORS[field])} after {field}")
    value = tokens.take_value()
    if not value:
        raise tokens.unexpected(f"a value after {field} {operator}")
    if field in {"class", "guess"} and value not in classes:
        raise InvalidInput("filter", f"{field}: {not_found('class', value, classes)}")
    if field == "doubt":
        _check_doubt(value)
    return Term(field, operator or "", value, negated)


def _check_doubt(value: str) -> None:
    try:
        is_share = 0.0 <= float(value) <= 1.0
    except ValueError:
        is_share = False
    if not is_share:
        raise InvalidInput("filter", f"doubt: is {shown(value[:40])}, must be a number in [0, 1]")


class _Tokens:
    """The tokens of a filter, read one after the other."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._before = text, 0, 0

    @property
    def is_empty(self) -> bool:
        return not self._text[self._at :].strip()

    def take_operator(self) -> str | None:
        return self._take(1, str)

    def take_word(self) -> str | None:
        """Take a word without quotes; return None if there is something else."""
        return self._take(3, str)

    def take_value(self) -> str | None:
        """Take a word, or a text in quotes; return None if there is something else."""
        quoted = self._take(2, lambda found: re.sub(r"\\(.)", r"\1", found, flags=re.DOTALL))
        return self._take(3, str) if quoted is None else quoted

    def unexpected(self, wanted: str) -> InvalidInput:
        """Return the error that something else is in the place of the token that was expected last."""
        rest = self._text[self._before :].strip()
        stands = f"{shown(rest[:40])} stands" if rest else "nothing stands"
        return InvalidInput("filter", f"{stands} where {wanted} is expected")

    def _take(self, group: int, read: Callable[[str], str]) -> str | None:
        self._before = self._at
        match = _TOKEN.match(self._text, self._at)
        if match is None or match[group] is None:
            return None
        self._at = match.end()
        return read(match[group])
