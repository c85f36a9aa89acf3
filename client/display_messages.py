"""Conversion of displays and presentations between the wire and their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from quercus.belief.errors import InvalidInput
from quercus.client.errors import invalid
from quercus.specification.display import (
    Display,
    DisplayItem,
    LinkItem,
    MediaItem,
    SeriesItem,
    TextItem,
    check_items,
)
from quercus.specification.presentation import (
    MEDIA_KINDS,
    WITHHOLDABLE,
    AttributeView,
    MediaTemplate,
    Presentation,
    SeriesView,
)
from quercus.v1 import display_pb2

_KINDS: Final[Mapping[str, Any]] = {name: number for number, name in enumerate(MEDIA_KINDS, 1)}
_KIND_NAMES: Final[Mapping[int, Any]] = {number: name for name, number in _KINDS.items()}


def display_to_proto(items: Sequence[DisplayItem] | None, row: int) -> display_pb2.Display:
    """Return the message of a row's display; an empty one for None."""
    try:
        check_items(items or ())
        return display_pb2.Display(items=[_item_to_proto(item) for item in items or ()])
    except InvalidInput as error:
        raise invalid(f"displays[{row}].{error.field}", error.reason) from None
    except TypeError as error:
        raise invalid(f"displays[{row}]", str(error)) from None


def _item_to_proto(item: DisplayItem) -> display_pb2.DisplayItem:
    match item:
        case TextItem():
            return display_pb2.DisplayItem(title=item.title, text=item.text)
        case SeriesItem():
            series = display_pb2.DisplaySeries(
                values=item.values, start=item.start, step=item.step, unit=item.unit, step_unit=item.step_unit
            )
            return display_pb2.DisplayItem(title=item.title, series=series)
        case MediaItem():
            media = display_pb2.DisplayMedia(alt=item.alt)
            if item.url:
                media.url = item.url
            else:
                media.data = item.data
            if item.kind == "image":
                return display_pb2.DisplayItem(title=item.title, image=media)
            return display_pb2.DisplayItem(title=item.title, audio=media)
        case LinkItem():
            return display_pb2.DisplayItem(title=item.title, link=item.url)
        case _:
            raise TypeError(
                f"expected TextItem, SeriesItem, MediaItem or LinkItem, got {type(item).__name__}"
            )


def display_from_proto(message: display_pb2.Display) -> Display:
    """Return the items of a message, without those of a kind that only a later server knows."""
    items = [_item_from_proto(item) for item in message.items]
    return tuple(item for item in items if item is not None)


def _item_from_proto(item: display_pb2.DisplayItem) -> DisplayItem | None:
    match item.WhichOneof("content"):
        case "text":
            return TextItem(item.title, item.text)
        case "series":
            series = item.series
            step = series.step if series.HasField("step") else 1.0
            return SeriesItem(
                item.title, tuple(series.values), series.start, step, series.unit, series.step_unit
            )
        case "image" | "audio" as kind:
            media: display_pb2.DisplayMedia = getattr(item, kind)
            return MediaItem(kind, item.title, media.url, media.data, media.alt)
        case "link":
            return LinkItem(item.title, item.link)
        case _:
            return None


def presentation_to_proto(given: Presentation) -> display_pb2.Presentation:
    """Return the message of a presentation."""
    return display_pb2.Presentation(
        attributes=[display_pb2.AttributeView(**asdict(view)) for view in given.attributes],
        series=[display_pb2.SeriesView(**asdict(curve)) for curve in given.series],
        media=[
            display_pb2.MediaTemplate(kind=_KINDS[each.kind], title=each.title, url=each.url)
            for each in given.media
        ],
        withheld=given.withheld,
    )


def presentation_from_proto(message: display_pb2.Presentation) -> Presentation:
    """Return a presentation as the server holds it."""
    return Presentation(
        tuple(
            AttributeView(v.attribute, v.title, v.unit, v.description, v.format, v.group, v.hidden)
            for v in message.attributes
        ),
        tuple(
            SeriesView(
                *(c.title, tuple(c.attributes), c.start, c.step if c.HasField("step") else 1.0),
                *(c.unit, c.step_unit, c.plot),
            )
            for c in message.series
        ),
        tuple(
            MediaTemplate(_KIND_NAMES[m.kind], m.title, m.url) for m in message.media if m.kind in _KIND_NAMES
        ),
        tuple(part for part in message.withheld if part in WITHHOLDABLE),
    )
