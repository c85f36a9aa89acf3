"""A row as people see it: its values as the model presents them, and the items beside them."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from quercus.client.results import Instance, Model
from quercus.client.values import Between, Value
from quercus.specification.attributes import plain_number
from quercus.specification.display import Display, LinkItem, MediaItem, SeriesItem, TextItem, media_type
from quercus.specification.presentation import Presentation
from quercus.view.words import counted

MAX_VALUES: Final = 300
MAX_TEXT: Final = 2_000
LARGEST_FLOAT: Final = sys.float_info.max


@dataclass(frozen=True)
class ShownValue:
    """A value of a row, with the attribute's name and the title that is shown instead."""

    title: str
    text: str
    is_missing: bool
    description: str
    attribute: str = ""


@dataclass(frozen=True)
class Curve:
    """Values at equal steps; NaN is a gap."""

    title: str
    values: Sequence[float]
    start: float = 0.0
    step: float = 1.0
    unit: str = ""
    step_unit: str = ""

    @property
    def end(self) -> float:
        """Position of the last value on the axis."""
        return self.position(len(self.values) - 1)

    def position(self, number: int) -> float:
        """Return the position of a value on the axis; finite even if the sum overflows."""
        return max(-LARGEST_FLOAT, min(LARGEST_FLOAT, self.start + number * self.step))

    @property
    def span(self) -> str:
        """The smallest and the largest value, with their unit.

        Examples
        --------
        >>> Curve("a", [0.0, math.nan, 4.0], unit="mm/s").span, Curve("a", [math.nan]).span
        ('0 to 4 mm/s', 'no value')
        """
        known = [value for value in self.values if not math.isnan(value)]
        if not known:
            return "no value"
        return with_unit(f"{plain_number(min(known))} to {plain_number(max(known))}", self.unit)

    @property
    def note(self) -> str:
        """The span, the number of values, and their range on the axis.

        Examples
        --------
        >>> Curve("a", [0.0, 4.0]).note, Curve("a", [0.0, 4.0], step=0.5, unit="mm/s", step_unit="s").note
        ('0 to 4, 2 values', '0 to 4 mm/s, 2 values along 0 to 0.5 s')
        """
        count = counted(len(self.values), "value")
        if (self.start, self.step, self.step_unit) == (0.0, 1.0, ""):
            return f"{self.span}, {count}"
        along = with_unit(f"{plain_number(self.start)} to {plain_number(self.end)}", self.step_unit)
        return f"{self.span}, {count} along {along}"


@dataclass(frozen=True)
class ShownItem:
    """Something beside the values.

    Attributes
    ----------
    kind
        ``curves``, ``text``, ``link``, ``image`` or ``audio``.
    title
        Its title.
    text
        The content of a text; a description of an image or a sound for people who cannot see or hear it.
    url
        Address of a link, an image or a sound; empty for bytes that were pushed.
    place
        Number among the items of the row's display; -1 for items made from the values.
    data
        Media type and size of pushed bytes.
    curves
        The curves that share a picture.
    """

    kind: str
    title: str
    text: str = ""
    url: str = ""
    place: int = -1
    data: str = ""
    curves: tuple[Curve, ...] = ()


def shown_values(
    values: Mapping[str, Value], model: Model, most: int = MAX_VALUES
) -> tuple[list[tuple[str, list[ShownValue]]], int]:
    """Return the values by group, without those shown as curves, and the number of omitted ones."""
    presentation = model.specification.presentation or Presentation()
    views = presentation.shown_views(each.name for each in model.specification.attributes)
    shown = [
        (
            view.group,
            ShownValue(
                view.title or view.attribute,
                value_text(values.get(view.attribute), view.format, view.unit),
                values.get(view.attribute) is None,
                view.description,
                view.attribute,
            ),
        )
        for view in views[:most]
    ]
    groups = [
        (group, [value for _, value in each]) for group, each in groupby(shown, key=lambda pair: pair[0])
    ]
    return groups, len(views) - len(shown)


def shown_items(
    identifier: str, values: Mapping[str, Value], display: Display, model: Model
) -> list[ShownItem]:
    """Return the items shown beside the values of a row: from the model's templates, and from its display."""
    presentation = model.specification.presentation or Presentation()
    items = []
    for template in presentation.media:
        url = template.fill_url(identifier, values)
        if url is not None:
            items.append(ShownItem(template.kind, template.title, url=url))
    return [*items, *pushed_items(display)]


def pushed_items(display: Display) -> list[ShownItem]:
    """Return the items that were pushed beside a row."""
    items = []
    for place, item in enumerate(display):
        match item:
            case TextItem():
                items.append(ShownItem("text", item.title, item.text, place=place))
            case LinkItem():
                items.append(ShownItem("link", item.title, url=item.url, place=place))
            case SeriesItem():
                curve = Curve(item.title, item.values, item.start, item.step, item.unit, item.step_unit)
                items.append(ShownItem("curves", item.title, place=place, curves=(curve,)))
            case MediaItem():
                data = "" if item.url else f"{media_type(item.data)}, {len(item.data):,} bytes"
                items.append(ShownItem(item.kind, item.title, item.alt, item.url, place, data))
    return items


def value_text(value: Value, form: str = "", unit: str = "") -> str:
    """Return a value as people read it.

    Examples
    --------
    >>> value_text(13.0), value_text(0.25, ".1%"), value_text(2.5, unit="mm"), value_text("red"), value_text(None)
    ('13', '25.0%', '2.5 mm', 'red', 'missing')
    >>> value_text(frozenset({"sun", "rain"})), value_text(Between(2.0, 9.0), unit="°")
    ('rain or sun', '2 to 9°')
    """
    if value is None:
        return "missing"
    if isinstance(value, frozenset):
        return " or ".join(value_text(each, form, unit) for each in sorted(value))
    if isinstance(value, Between):
        return f"{value_text(value.low, form)} to {value_text(value.high, form, unit)}"
    number = "" if isinstance(value, str) else format(value, form) if form else plain_number(float(value))
    text = value[:MAX_TEXT] if isinstance(value, str) else number
    return with_unit(text, unit)


def with_unit(text: str, unit: str) -> str:
    """Return a value with its unit after a space; only signs of angles follow without one (SI Brochure).

    Examples
    --------
    >>> with_unit("86", "°"), with_unit("86", "°C"), with_unit("86", "%"), with_unit("86", "")
    ('86°', '86 °C', '86 %', '86')
    """
    space = "" if unit in ("", "°", "′", "″") else " "
    return f"{text}{space}{unit}"


def likeliest_classes(row: Instance, classes: Sequence[str]) -> tuple[str, ...]:
    """Return the most plausible classes of a row by all its labels; empty if nothing is known.

    Examples
    --------
    >>> likeliest_classes(Instance("a", contour=(1.0, 1.0, 0.2)), ["r", "g", "b"])
    ('r', 'g')
    >>> likeliest_classes(Instance("a", contour=(1.0, 1.0, 1.0)), ["r", "g", "b"])
    ()
    """
    highest = max(row.contour)
    top = tuple(name for name, share in zip(classes, row.contour, strict=True) if share == highest)
    return () if len(top) == len(classes) else top


def values_line(values: Mapping[str, Value], model: Model, most: int) -> str:
    """Return the first known values of a row, in one line."""
    groups, _ = shown_values(values, model)
    known = [value for _, each in groups for value in each if not value.is_missing]
    more = " …" if len(known) > most else ""
    return ", ".join(f"{each.title} {each.text[:60]}" for each in known[:most]) + more


def shown_curves(values: Mapping[str, Value], model: Model) -> list[ShownItem]:
    """Return the values that the model presents as curves; curves of the same plot share a picture."""
    presentation = model.specification.presentation or Presentation()
    plots: dict[str, list[Curve]] = {}
    for view in presentation.series:
        numbers = [
            value if isinstance(value := values.get(name), float) else math.nan for name in view.attributes
        ]
        curve = Curve(view.title, numbers, view.start, view.step, view.unit, view.step_unit)
        plots.setdefault(view.plot or f"\0{view.title}", []).append(curve)
    return [
        ShownItem("curves", " and ".join(curve.title for curve in plot), curves=tuple(plot))
        for plot in plots.values()
    ]
