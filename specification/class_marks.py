"""The marks of the classes in pictures and on pages: a colour and, from the 21st class on, a pattern.

The mark of a class depends only on its position in the frame, so appending a class changes no other mark. The
colours were chosen by farthest-point search in OKLab (Ottosson 2020) among those that stand out from their background.
The first eight are also far apart for people who see no red or no green (as simulated by Machado, Oliveira and
Fernandes 2009); further ones are not, so the name of a class always stands beside its mark.
"""

from dataclasses import dataclass
from typing import Final, Literal

from quercus.specification.parameters import MAX_CLASSES

Pattern = Literal["", "/", "\\", "/\\"]
"""Strokes across the colour: none, rising, falling, both."""

PATTERNS: Final[tuple[Pattern, ...]] = ("", "/", "\\", "/\\")
"""The patterns of the first twenty classes, of the next twenty, and so on."""

_COLOURS: Final = (  # on a light background, on a dark one
    ("#2a6ca3", "#7cb7ee"),
    ("#d55c13", "#f59569"),
    ("#499688", "#6fd5c2"),
    ("#905452", "#d75859"),
    ("#2c0b9b", "#7075f7"),
    ("#424505", "#dfe82a"),
    ("#0c84fa", "#6b8ab2"),
    ("#313845", "#e2ecfd"),
    ("#c06fb9", "#bd94b8"),
    ("#772365", "#db5ebe"),
    ("#4c6919", "#79a625"),
    ("#c40a8f", "#feb4dd"),
    ("#99844b", "#dfcc99"),
    ("#7238dc", "#a78dfd"),
    ("#3246b0", "#bcccfd"),
    ("#63162d", "#f47391"),
    ("#f6398b", "#ab7686"),
    ("#648a1c", "#a2d258"),
    ("#257669", "#62a497"),
    ("#745b8b", "#a761df"),
)
_WHITE, _BLACK = "#ffffff", "#10130f"


@dataclass(frozen=True, slots=True)
class ClassMark:
    """The mark of a class.

    Parameters
    ----------
    light, dark
        Colour on a light background, and on a dark one: ``#rrggbb``.
    pattern
        Strokes across the colour, in `ink_on` of it.
    """

    light: str
    dark: str
    pattern: Pattern = ""

    @property
    def pattern_id(self) -> str:
        """Name of its fill, the same in every picture, since a page may have several pictures."""
        return f"{self.light[1:]}-{self.pattern.translate({47: 'r', 92: 'f'})}"


CLASS_MARKS: Final = tuple(
    ClassMark(*_COLOURS[place % len(_COLOURS)], PATTERNS[place // len(_COLOURS)])
    for place in range(MAX_CLASSES)
)
"""Different marks for the first, second, ... class of a frame."""

OTHER_CLASSES: Final = ClassMark("#74766c", "#a3a69b")
"""Mark of all other classes together, in a tree that distinguishes one class from the rest."""


def relative_luminance(colour: str) -> float:
    """Return the relative luminance of a colour ``#rrggbb``, in [0, 1] (WCAG 2.2).

    Examples
    --------
    >>> relative_luminance("#ffffff"), round(relative_luminance("#808080"), 3)
    (1.0, 0.216)
    """
    parts = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast_ratio(one: str, other: str) -> float:
    """Return the contrast of two colours, from 1 to 21 (WCAG 2.2)."""
    darker, lighter = sorted((relative_luminance(one), relative_luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def ink_on(colour: str) -> str:
    """Return the colour for text and strokes on a colour: white or black, whichever has more contrast."""
    return max(_WHITE, _BLACK, key=lambda ink: contrast_ratio(ink, colour))


def pattern_path(pattern: Pattern, size: float) -> str:
    """Return the strokes of a pattern as the SVG path of a square tile that repeats without seams.

    Examples
    --------
    >>> pattern_path("/", 4)
    'M-1,1 L1,-1 M0,4 L4,0 M3,5 L5,3'
    """
    s, q = size, size / 4
    rising = [((-q, q), (q, -q)), ((0.0, s), (s, 0.0)), ((s - q, s + q), (s + q, s - q))]
    lines = [
        (start, end) if stroke == "/" else ((start[0], s - start[1]), (end[0], s - end[1]))
        for stroke in pattern
        for start, end in rising
    ]
    return " ".join(f"M{a:g},{b:g} L{c:g},{d:g}" for (a, b), (c, d) in lines)
