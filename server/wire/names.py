"""Resource names ``models/{model}/...`` and page tokens."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

from quercus.belief.errors import InvalidInput, shown
from quercus.server.wire.limits import DEFAULT_PAGE, MAX_PAGE
from quercus.specification.bounds import check_model_id
from quercus.specification.names import decode_id, encode_id

ANY: Final = "-"
"""Model id that stands for any model."""

MOST_LISTED = 12
_KEY = re.compile(r"-?[0-9]{1,19}\.[0-9]{1,20}(e[-+][0-9]{1,3})?|-?[0-9]e[-+][0-9]{1,3}")
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")


def model_name(model: str) -> str:
    """Return ``models/{model}``."""
    return f"models/{model}"


def instance_name(model: str, instance: str) -> str:
    """Return ``models/{model}/instances/{id}``, with the id percent-encoded."""
    return f"models/{model}/instances/{encode_id(instance)}"


def query_name(model: str, number: int) -> str:
    """Return ``models/{model}/queries/{number}``."""
    return f"models/{model}/queries/{number}"


def tree_name(model: str, version: int) -> str:
    """Return ``models/{model}/trees/{version}``."""
    return f"models/{model}/trees/{version}"


@lru_cache(1_024)
def parse_model(name: str, field: str = "name") -> str:
    """Return the model id of ``models/{model}``."""
    (model,) = _split_name(name, field, ("models",), "models/{model}")
    return model


def parse_instance(name: str) -> tuple[str, str]:
    """Return model and instance id of ``models/{model}/instances/{id}``."""
    form = "models/{model}/instances/{id}, with / in the id written as %2F"
    model, segment = _split_name(name, "name", ("models", "instances"), form)
    return model, decode_id(segment, "name")


def parse_query(name: str) -> tuple[str, int]:
    """Return model and number of ``models/{model}/queries/{number}``."""
    model, number = _split_name(name, "name", ("models", "queries"), "models/{model}/queries/{number}")
    return model, _parse_number(number, name, "models/{model}/queries/{number}")


def parse_tree(name: str) -> tuple[str, int | None]:
    """Return model and version of ``models/{model}/trees/{version}``; None stands for ``latest``."""
    form = "models/{model}/trees/{version} or models/{model}/trees/latest"
    model, version = _split_name(name, "name", ("models", "trees"), form)
    return model, None if version == "latest" else _parse_number(version, name, form)


def not_found(kind: str, name: str, known: Sequence[str]) -> str:
    """Return an error text for an unknown name, with a suggestion and the known names.

    Examples
    --------
    >>> not_found("attribute", "colr", ["size", "color"])
    "'colr' is not an attribute; did you mean 'color'? There are size, color"
    """
    near = get_close_matches(name, known, n=1)
    meant = f"; did you mean {shown(near[0])}? There" if near else "; there"
    more = f", ... ({len(known):,} in all)" if len(known) > MOST_LISTED else ""
    article = "an" if kind[0] in "aeiou" else "a"
    return f"{shown(name)} is not {article} {kind}{meant} are {', '.join(known[:MOST_LISTED])}{more}"


def page_size(size: int) -> int:
    """Return the size of a page, for 0 the default; raise ``InvalidInput`` if it is negative or too large."""
    if not 0 <= size <= MAX_PAGE:
        raise InvalidInput("page_size", f"{size} is not between 0 and {MAX_PAGE}")
    return size or DEFAULT_PAGE


def make_page_token(kind: str, after: str | int) -> str:
    """Return the page token of a listing `kind` that continues after an entry."""
    return base64.urlsafe_b64encode(f"{kind}:{after}".encode()).decode().rstrip("=")


def read_token(kind: str, token: str) -> str:
    """Return the name after which the page of a token begins; "" for the first page."""
    if not token:
        return ""
    try:
        text = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise _bad_token(kind, token) from error
    head, colon, after = text.partition(":")
    if head != kind or not colon or not after:
        raise _bad_token(kind, token)
    return after


def read_number_token(kind: str, token: str) -> int:
    """Return the number after which the page of a token begins; 0 for the first page."""
    after = read_token(kind, token)
    if not after:
        return 0
    if _NUMBER.fullmatch(after) is None:
        raise _bad_token(kind, token)
    return int(after)


def read_row_token(kind: str, token: str) -> tuple[float, int] | None:
    """Return the sort key and the number after which the page of a token begins; None for the first page."""
    after = read_token(kind, token)
    if not after:
        return None
    key, _, number = after.partition(":")
    if _KEY.fullmatch(key) is None or _NUMBER.fullmatch(number) is None:
        raise _bad_token(kind, token)
    return float(key), int(number)


def _bad_token(kind: str, token: str) -> InvalidInput:
    listing = "rows of this model with this filter and order" if kind.startswith("rows-") else kind
    return InvalidInput("page_token", f"{token[:80]!r} was not made by a listing of {listing}")


def _split_name(name: str, field: str, collections: tuple[str, ...], form: str) -> list[str]:
    parts = name.split("/")
    ids = parts[1::2]
    if len(parts) != 2 * len(collections) or tuple(parts[::2]) != collections or not all(ids):
        raise InvalidInput(field, f"{name[:200]!r} is not of the form {form}")
    check_model_id(ids[0], field)
    return ids


def _parse_number(text: str, name: str, form: str) -> int:
    if _NUMBER.fullmatch(text) is None:
        raise InvalidInput(
            "name", f"{name[:200]!r} is not of the form {form}: {text[:40]!r} is not a number from 1"
        )
    return int(text)
