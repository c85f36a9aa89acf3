"""The marks of classes on pages: the style sheet that follows from `quercus.specification.class_marks`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quercus.specification.class_marks import CLASS_MARKS, OTHER_CLASSES, ink_on, pattern_path

TILE = 10.0
"""Side of the square tile of a pattern, in the units of the picture."""
_STROKES = {"/": "135deg", "\\": "45deg"}  # a gradient changes along the normal of its strokes
_MARKS = {f"mark-{place}": mark for place, mark in enumerate(CLASS_MARKS)} | {"mark-other": OTHER_CLASSES}


def mark_name(name: str, classes: Sequence[str]) -> str:
    """Return the name of a class's mark in the style sheet.

    Examples
    --------
    >>> [mark_name(name, ("a", "b")) for name in ("b", "not a")]
    ['mark-1', 'mark-other']
    """
    return f"mark-{classes.index(name)}" if name in classes else "mark-other"


def class_styles() -> str:
    """Return the style sheet: for each mark its colours, on a light and on a dark page, and its pattern."""
    light, dark = (
        [f".{name} {{ --fill: {fill}; --on: {ink_on(fill)}; }}" for name, fill in colours]
        for colours in zip(*(((name, m.light), (name, m.dark)) for name, m in _MARKS.items()), strict=True)
    )
    strokes = []
    for name, mark in _MARKS.items():
        angles = [_STROKES[stroke] for stroke in mark.pattern]
        gradients = [
            f"repeating-linear-gradient({a}, var(--on) 0 1.2px, transparent 1.2px 4px)" for a in angles
        ]
        if gradients:
            strokes.append(f".{name} {{ --strokes: {', '.join(gradients)}; }}")
    return "\n".join([*light, "@media (prefers-color-scheme: dark) {", *dark, "}", *strokes, ""])


def has_pattern(name: str) -> bool:
    """Return whether a mark has a pattern."""
    return bool(_MARKS[name].pattern)


def pattern_definitions(names: Iterable[str]) -> str:
    """Return, for a picture, the definitions of the patterns of these marks: ``url(#strokes-NAME)`` fills with one."""
    return "".join(
        f'<pattern id="strokes-{name}" class="{name}" width="{TILE:g}" height="{TILE:g}" patternUnits="userSpaceOnUse">'
        f'<path class="strokes" d="{pattern_path(_MARKS[name].pattern, TILE)}"/></pattern>'
        for name in sorted(set(names))
        if has_pattern(name)
    )
