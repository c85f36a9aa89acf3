"""Characters that names and ids may contain, and ids in the names of resources.

An id is any text that can be shown on one line, such as a path, a URL or an emoji. White space at its ends is refused,
because files of cells do not keep it, and the rest may be the id of another row. In ``models/{model}/instances/{id}``
an id is a segment of a URI path: characters that RFC 3986 (section 3.3) does not allow there are percent-encoded.
"""

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote, unquote

from quercus.belief.errors import InvalidInput, shown
from quercus.specification.bounds import MAX_ID_CHARACTERS

CONTROLS: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Characters that control a terminal, end a line or change the direction of writing.

Halves of surrogate pairs are among them, since no encoding of Unicode has them.
"""
_NAMED: Final = {"\n": "line end", "\r": "line end", "\u2028": "line end", "\u2029": "line end", "\t": "tab"}
"""Names of well-known control characters."""
_KEPT: Final = "!$&'()*+,;=:@"
"""Characters that are not encoded in a segment of a path, besides letters, digits and ``-._~``."""
_NOT_ENCODED: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def control_fault(name: str) -> str | None:
    r"""Return the fault of a name with a control character; None if it has none.

    Examples
    --------
    >>> control_fault("a\x1b[2J"), control_fault("plain")
    ('has the control character U+001B at position 2', None)
    """
    found = CONTROLS.search(name)
    if found is None:
        return None
    kind = _NAMED.get(found.group(), "control character")
    return f"has the {kind} U+{ord(found.group()):04X} at position {found.start() + 1}"


def check_controls(name: str, field: str) -> None:
    r"""Refuse a name with a control character.

    Raises
    ------
    InvalidInput
        With the character and its position.

    Examples
    --------
    >>> check_controls("a\x1b[2J", "classes[0]")
    Traceback (most recent call last):
    quercus.belief.errors.InvalidInput: classes[0]: has the control character U+001B at position 2 ('a\x1b[2J')
    """
    fault = control_fault(name)
    if fault is not None:
        raise InvalidInput(field, f"{fault} ({shown(name)})")


def check_id(text: str, field: str) -> str:
    """Return a valid id; raise ``InvalidInput`` if it is invalid."""
    if not 0 < len(text) <= MAX_ID_CHARACTERS:
        raise InvalidInput(field, f"has {len(text)} characters, not 1 to {MAX_ID_CHARACTERS}")
    check_controls(text, field)
    if text != text.strip():
        raise InvalidInput(field, f"has white space at an end ({shown(text)}): remove it")
    return text


def are_ids(texts: Sequence[str]) -> bool:
    """Return whether `check_id` accepts all texts; fast for many."""
    together = "".join(texts)
    return (
        all(texts)
        and max(map(len, texts), default=0) <= MAX_ID_CHARACTERS
        and list(map(str.strip, texts)) == list(texts)
        # the first test takes a tenth of the time
        and (together.isprintable() or CONTROLS.search(together) is None)
    )


def encode_id(text: str) -> str:
    """Return an id as a segment of a resource name.

    Examples
    --------
    >>> encode_id("images/2026/01/a b.jpg")
    'images%2F2026%2F01%2Fa%20b.jpg'
    """
    return quote(text, safe=_KEPT)


def decode_id(segment: str, field: str) -> str:
    """Return the id of a segment; characters that need no encoding may be encoded.

    Raises
    ------
    InvalidInput
        If a ``%`` is not followed by two hexadecimal digits, or the bytes are not UTF-8.

    Examples
    --------
    >>> decode_id("images%2Fa%20b.jpg", "name"), decode_id("a b", "name")
    ('images/a b.jpg', 'a b')
    """
    found = _NOT_ENCODED.search(segment)
    if found is not None:
        raise InvalidInput(
            field,
            f"has a % at position {found.start() + 1} without two hexadecimal digits ({shown(segment)}): in a resource "
            "name the id is percent-encoded, so that % is %25 and / is %2F",
        )
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        raise InvalidInput(field, f"{shown(segment)} is not percent-encoded UTF-8") from None
