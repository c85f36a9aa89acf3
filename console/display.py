"""A row on a page: its values as the model presents them, and its display."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from urllib.parse import urlsplit

from quercus.client.results import Model, Query
from quercus.client.values import Value
from quercus.console.draw.curve import Curve, draw_curves
from quercus.console.web import number_text
from quercus.specification.display import LinkItem, MediaItem, SeriesItem, TextItem
from quercus.specification.presentation import Presentation, SeriesView

MAX_VALUES = 300
MAX_TEXT = 2_000


@dataclass(frozen=True)
class ShownValue:
    """A value of a row."""

    title: str
    text: str
    is_missing: bool
    description: str


@dataclass(frozen=True)
class ShownItem:
    """Something beside the values: a ``curve``, a ``text``, an ``image``, an ``audio``, a ``link`` or an ``address``.

    ``content`` is SVG of our own, a text, or a URL. An address is a URL that the operator did not allow to be loaded.
    """

    kind: str
    title: str
    content: str
    alt: str = ""
    note: str = ""


def shown_values(values: Mapping[str, Value], model: Model) -> tuple[list[tuple[str, list[ShownValue]]], int]:
    """Return the values by group, and the number of omitted ones; the values of curves are shown among the items."""
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
            ),
        )
        for view in views[:MAX_VALUES]
    ]
    groups = [
        (group, [value for _, value in each]) for group, each in groupby(shown, key=lambda pair: pair[0])
    ]
    return groups, len(views) - len(shown)


def shown_items(query: Query, model: Model, origins: Collection[str], data_url: str) -> list[ShownItem]:
    """Return the items shown beside the values of a query's row.

    Parameters
    ----------
    query, model
        Its row, and how rows are presented.
    origins
        Origins from which pictures and sounds may be loaded.
    data_url
        URL under which the console serves pushed bytes; the number of the item follows it.
    """
    presentation = model.specification.presentation or Presentation()
    items = _presented_curves(query.values, presentation.series)
    for template in presentation.media:
        url = template.fill_url(query.instance, query.values)
        if url is not None:
            items.append(_by_url(template.kind, template.title, url, "", origins))
    for number, item in enumerate(query.display):
        match item:
            case TextItem():
                items.append(ShownItem("text", item.title, item.text))
            case LinkItem():
                items.append(ShownItem("link", item.title, item.url))
            case SeriesItem():
                curve = Curve(item.title, item.values, item.start, item.step, item.unit, item.step_unit)
                items.append(_curves_item(item.title, [curve]))
            case MediaItem() if item.url:
                items.append(_by_url(item.kind, item.title, item.url, item.alt, origins))
            case MediaItem():
                items.append(ShownItem(item.kind, item.title, f"{data_url}/{number}", item.alt))
    return items


def value_text(value: Value, form: str = "", unit: str = "") -> str:
    """Return a value as people read it.

    Examples
    --------
    >>> value_text(13.0), value_text(0.25, ".1%"), value_text(2.5, unit="mm"), value_text("red"), value_text(None)
    ('13', '25.0%', '2.5 mm', 'red', 'missing')
    """
    if value is None:
        return "missing"
    text = (
        value[:MAX_TEXT]
        if isinstance(value, str)
        else format(value, form)
        if form
        else number_text(float(value))
    )
    return f"{text} {unit}" if unit else text


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL.

    Examples
    --------
    >>> origin_of("https://cam.example:8443/a.jpg?x=1")
    'https://cam.example:8443'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


def _presented_curves(values: Mapping[str, Value], series: Sequence[SeriesView]) -> list[ShownItem]:
    """Return the curves of attributes; those of one plot share a picture."""
    plots: dict[str, list[Curve]] = {}
    for view in series:
        numbers = [
            value if isinstance(value := values.get(name), float) else math.nan for name in view.attributes
        ]
        curve = Curve(view.title, numbers, view.start, view.step, view.unit, view.step_unit)
        plots.setdefault(view.plot or f"\0{view.title}", []).append(curve)
    return [_curves_item(" and ".join(curve.title for curve in plot), plot) for plot in plots.values()]


def _curves_item(title: str, plot: Sequence[Curve]) -> ShownItem:
    known = [value for curve in plot for value in curve.values if not math.isnan(value)]
    unit = " ".join(dict.fromkeys(curve.unit for curve in plot if curve.unit))
    first, last = min(curve.start for curve in plot), max(curve.end for curve in plot)
    span = f"{number_text(min(known))} to {number_text(max(known))} {unit}".rstrip() if known else "no value"
    along = f"along {number_text(first)} to {number_text(last)} {plot[0].step_unit}".rstrip()
    return ShownItem("curve", title, draw_curves(plot), note=f"{span}, {along}")


def _by_url(kind: str, title: str, url: str, alt: str, origins: Collection[str]) -> ShownItem:
    if kind == "link":
        return ShownItem("link", title, url)
    return ShownItem(kind if origin_of(url) in origins else "address", title, url, alt)
