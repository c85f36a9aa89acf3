"""Displays: texts, curves, pictures, sounds and links that are pushed with a row, for labellers to see.

A display is not evidence, so no tree depends on it. A row that is pushed again keeps its first display.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from quercus.belief.errors import InvalidInput, field_prefix, shown
from quercus.specification.presentation import (
    check_coordinates,
    check_positions,
    check_steps,
    check_text,
    check_title,
    check_url,
)

MAX_ITEMS: Final = 16
MAX_DISPLAY_BYTES: Final = 65_536
"""Most bytes of the stored display of one row."""
MAX_TEXT: Final = 10_000
MAX_POINTS: Final = 10_000

_IMAGES: Final = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF87a", "image/gif"),
                  (b"GIF89a", "image/gif"))  # fmt: skip
_SOUNDS: Final = ((b"OggS", "audio/ogg"), (b"fLaC", "audio/flac"), (b"ID3", "audio/mpeg"))


@dataclass(frozen=True, slots=True)
class TextItem:
    """A text of at most 10,000 characters, shown without reading it as markup."""

    title: str
    text: str

    def __post_init__(self) -> None:
        check_title(self.title)
        check_text(self.text, "text", MAX_TEXT)


@dataclass(frozen=True, slots=True)
class SeriesItem:
    """A curve: 1 to 10,000 values at equal steps. A value that is not a number is a gap."""

    title: str
    values: Sequence[float]
    start: float = 0.0
    step: float = 1.0
    unit: str = ""
    step_unit: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(map(float, self.values)))
        check_title(self.title)
        if not 1 <= len(self.values) <= MAX_POINTS:
            raise InvalidInput("values", f"are {len(self.values):,}, must be 1 to {MAX_POINTS:,}")
        if any(map(math.isinf, self.values)):
            raise InvalidInput("values", "contain an infinite number; use NaN for a gap")
        check_steps(self.start, self.step)
        check_text(self.unit, "unit", 200)
        check_text(self.step_unit, "step_unit", 200)


@dataclass(frozen=True, slots=True)
class MediaItem:
    """A picture or a sound: a URL, or bytes of a PNG, JPEG, WebP, GIF, WAV, OGG, FLAC or MP3 file.

    ``alt`` describes it for those who cannot see or hear it.
    """

    kind: Literal["image", "audio"]
    title: str
    url: str = ""
    data: bytes = b""
    alt: str = ""

    def __post_init__(self) -> None:
        if self.kind not in {"image", "audio"}:
            raise InvalidInput("kind", f"is {shown(self.kind)}, must be image or audio")
        check_title(self.title)
        check_text(self.alt, "alt", MAX_TEXT)
        if bool(self.url) == bool(self.data):
            raise InvalidInput(self.kind, "must have either a url or data")
        if self.url:
            check_url(self.url, "url")
        elif (media_type(self.data) or "").partition("/")[0] != self.kind:
            allowed = "PNG, JPEG, WebP or GIF" if self.kind == "image" else "WAV, OGG, FLAC or MP3"
            raise InvalidInput(
                "data", f"begins with {shown(self.data[:8])}, must be a file of type {allowed}"
            )


@dataclass(frozen=True, slots=True)
class LinkItem:
    """A link."""

    title: str
    url: str

    def __post_init__(self) -> None:
        check_title(self.title)
        check_url(self.url, "url")


DisplayItem: TypeAlias = TextItem | SeriesItem | MediaItem | LinkItem
Display: TypeAlias = tuple[DisplayItem, ...]
"""The items of one row, at most 16."""


def media_type(data: bytes) -> str | None:
    """Return the type of a picture or a sound by its first bytes; None if it is not an allowed type.

    Examples
    --------
    >>> media_type(b"GIF89a..."), media_type(b"<svg/>")
    ('image/gif', None)
    """
    for magic, kind in (*_IMAGES, *_SOUNDS):
        if data.startswith(magic):
            return kind
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12])
    if len(data) > 3 and data[0] == 0xFF and data[1] & 0xE6 == 0xE2:  # MPEG audio, layer III
        return "audio/mpeg"
    return None


def check_items(items: Sequence[DisplayItem]) -> None:
    """Refuse too many items, and items that cannot be drawn."""
    if len(items) > MAX_ITEMS:
        raise InvalidInput("items", f"are {len(items)}, at most {MAX_ITEMS} are allowed")
    for k, item in enumerate(items):
        with field_prefix(f"items[{k}]"):
            check_drawable(item)


def check_drawable(item: DisplayItem) -> None:
    """Refuse a curve with a number that is too large to be drawn.

    Rows are checked when they are pushed; a curve that was stored before can still be read.
    """
    if not isinstance(item, SeriesItem):
        return
    check_coordinates(item.values, "values")
    check_positions(item.start, item.step, len(item.values))
