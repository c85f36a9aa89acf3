"""ASCII forms of lines, bars, arrows and signs, for streams that cannot show them.

Only characters that the stream's encoding lacks are replaced, so a terminal in Latin-1 keeps its ``·`` and ``±``.
Characters without an ASCII form, such as some in names, become ``?``.
"""

from __future__ import annotations

import codecs
import unicodedata

HANDLER = "quercus-ascii"
"""The name of the error handler, for ``errors=`` of a stream."""

_SIGNS = {
    "·": "|", "…": "...", "→": "->", "←": "<-", "↑": "^", "↓": "v", "≥": ">=", "≤": "<=", "±": "+/-", "×": "x",
    "–": "-", "—": "-", "−": "-", "‘": "'", "’": "'", "“": '"', "”": '"', "α": "alpha", "•": "*", "✓": "v", "▯": "o",
}  # fmt: skip
_BLOCKS = dict(zip("▁▂▃▄▅▆▇", "_.-=+*%", strict=True)) | dict(zip("░▒▓", ".:%", strict=True))
_HALF = dict.fromkeys("▏▎▍", " ")
"""Parts of a bar that are less than half a character."""


def ascii_form(character: str) -> str:
    """Return the ASCII form of a character; ``?`` if it has none.

    Examples
    --------
    >>> "".join(map(ascii_form, "├─ ≥ 1  ╭┃╯ ██▌▎ → …  観"))
    '+- >= 1  +|+ ###  -> ...  ?'
    """
    if character.isascii():
        return character
    known = _SIGNS.get(character) or _BLOCKS.get(character) or _HALF.get(character)
    if known is not None:
        return known
    if "\u2500" <= character <= "\u257f":  # box drawing
        words = set(unicodedata.name(character).split())
        across, upright = {"HORIZONTAL", "LEFT", "RIGHT"} & words, {"VERTICAL", "UP", "DOWN"} & words
        return "+" if across and upright else "|" if upright else "-"
    if "\u2580" <= character <= "\u259f":  # blocks
        return "#"
    return "*" if "\u2800" <= character <= "\u28ff" else "?"  # a spinner's dots


def register_handler() -> None:
    """Register the handler with Python's codecs."""

    def replace_lacking(error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeEncodeError):
            raise error
        lacking = error.object[error.start : error.end]
        return "".join(map(ascii_form, lacking)), error.end

    codecs.register_error(HANDLER, replace_lacking)
