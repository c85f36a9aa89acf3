"""Conversion of displays and presentations between the wire and their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from google.protobuf.message import Message

from quercus.belief.errors import InvalidInput
from quercus.client.errors import invalid
from quercus.client.messages import filled, message_of
from quercus.specification.display import (
    Display,
    DisplayItem,
    LinkItem,
    MediaItem,
    SeriesItem,
    TextItem,
    check_items,
)
from quercus.specification.guidance import ClassExample, Guidance
from quercus.specification.presentation import (
    MEDIA_KINDS,
    WITHHOLDABLE,
    AttributeView,
    MediaTemplate,
    Presentation,
    SeriesView,
)
from quercus.v1 import display_pb2, model_pb2

_KINDS: Final[Mapping[str, Any]] = {name: number for number, name in enumerate(MEDIA_KINDS, 1)}
_KIND_NAMES: Final[Mapping[int, Any]] = {number: name for name, number in _KINDS.items()}


def message_of_display(items: Sequence[DisplayItem] | None, row: int) -> display_pb2.Display:
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
            series = message_of(display_pb2.DisplaySeries, item)
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


def display_of(message: display_pb2.Display) -> Display:
    """Return the items of a message, without those of a kind that only newer versions know."""
    items: list[DisplayItem] = []
    for item in message.items:
        match item.WhichOneof("content"):
            case "text":
                items.append(TextItem(item.title, item.text))
            case "series":
                items.append(SeriesItem(item.title, **_fields_of(item.series)))
            case "image" | "audio" as kind:
                media: display_pb2.DisplayMedia = getattr(item, kind)
                items.append(MediaItem(kind, item.title, media.url, media.data, media.alt))
            case "link":
                items.append(LinkItem(item.title, item.link))
    return tuple(items)


def message_of_presentation(given: Presentation) -> display_pb2.Presentation:
    """Return the message of a presentation."""
    return display_pb2.Presentation(
        attributes=[message_of(display_pb2.AttributeView, view) for view in given.attributes],
        series=[message_of(display_pb2.SeriesView, curve) for curve in given.series],
        media=[
            display_pb2.MediaTemplate(kind=_KINDS[each.kind], title=each.title, url=each.url)
            for each in given.media
        ],
        withheld=given.withheld,
    )


def presentation_of(message: display_pb2.Presentation) -> Presentation:
    """Return the presentation in a message."""
    return Presentation(
        tuple(AttributeView(**_fields_of(view)) for view in message.attributes),
        tuple(SeriesView(**_fields_of(curve)) for curve in message.series),
        tuple(
            MediaTemplate(_KIND_NAMES[m.kind], m.title, m.url) for m in message.media if m.kind in _KIND_NAMES
        ),
        tuple(part for part in message.withheld if part in WITHHOLDABLE),
    )


def message_of_guidance(given: Guidance) -> model_pb2.Guidance:
    """Return the message of a guidance."""
    examples = [message_of(model_pb2.ClassExample, each) for each in given.examples]
    return filled(model_pb2.Guidance, title=given.title, text=given.text, examples=examples)


def guidance_of(message: model_pb2.Guidance) -> Guidance:
    """Return the guidance in a message."""
    return Guidance(
        message.title, message.text, tuple(ClassExample(**_fields_of(each)) for each in message.examples)
    )


def _fields_of(message: Message) -> dict[str, Any]:
    """Return the fields of a message by name, without those that are absent."""
    return {
        field.name: tuple(getattr(message, field.name)) if field.is_repeated else getattr(message, field.name)
        for field in message.DESCRIPTOR.fields
        if not field.has_presence or message.HasField(field.name)
    }
