"""Conversion of presentations and displays between the wire and their checked values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from quercus.belief.errors import InvalidInput, field_prefix
from quercus.server.wire.refusals import WHOLE, RowFault, RowFaults
from quercus.specification.display import (
    MAX_DISPLAY_BYTES,
    MAX_ITEMS,
    DisplayItem,
    LinkItem,
    MediaItem,
    SeriesItem,
    TextItem,
    check_drawable,
)
from quercus.specification.guidance import ClassExample, Guidance
from quercus.specification.presentation import (
    MEDIA_KINDS,
    AttributeView,
    MediaTemplate,
    Presentation,
    SeriesView,
)
from quercus.v1 import display_pb2, model_pb2

_CONTENTS: Final = "text, series, image, audio or link"


def decode_presentation(message: display_pb2.Presentation) -> Presentation:
    """Return a presentation, checked as far as possible without its model.

    Raises
    ------
    InvalidInput
        If it is invalid; the error names the field below ``presentation``.
    """
    attributes, series, media = [], [], []
    for k, view in enumerate(message.attributes):
        with field_prefix(f"attributes[{k}]"):
            attributes.append(
                AttributeView(
                    view.attribute,
                    view.title,
                    view.unit,
                    view.description,
                    view.format,
                    view.group,
                    view.hidden,
                )
            )
    for k, curve in enumerate(message.series):
        with field_prefix(f"series[{k}]"):
            step = curve.step if curve.HasField("step") else 1.0
            names = tuple(curve.attributes)
            series.append(
                SeriesView(curve.title, names, curve.start, step, curve.unit, curve.step_unit, curve.plot)
            )
    for k, template in enumerate(message.media):
        with field_prefix(f"media[{k}]"):
            kinds: Any = dict(enumerate(MEDIA_KINDS, 1))
            if template.kind not in kinds:
                raise InvalidInput("kind", f"is {template.kind}, must be image, audio or link")
            media.append(MediaTemplate(kinds[template.kind], template.title, template.url))
    return Presentation(tuple(attributes), tuple(series), tuple(media), tuple(message.withheld))


def check_presentation(specification: model_pb2.Specification) -> None:
    """Check the presentation of a specification.

    Raises
    ------
    InvalidInput
        If it is invalid, names something that the model does not have, or cannot be drawn; the error names the field
        below ``specification.presentation``.
    """
    if not specification.HasField("presentation"):
        return
    names = {each.name for each in specification.attributes}
    numeric = {each.name for each in specification.attributes if each.HasField("numeric")}
    with field_prefix("specification.presentation"):
        presentation = decode_presentation(specification.presentation)
        presentation.check_names(names, numeric)
        presentation.check_drawable()


def check_guidance(specification: model_pb2.Specification) -> None:
    """Check the guidance of a specification.

    Raises
    ------
    InvalidInput
        If it is too long, or has examples of a class that the model does not have; the error names the field below
        ``specification.guidance``.
    """
    if not specification.HasField("guidance"):
        return
    given, examples = specification.guidance, []
    with field_prefix("specification.guidance"):
        for k, each in enumerate(given.examples):
            with field_prefix(f"examples[{k}]"):
                examples.append(ClassExample(each.class_name, each.instance, each.remark))
        Guidance(given.title, given.text, tuple(examples)).check_classes(specification.classes)


def decode_displays(
    messages: Sequence[display_pb2.Display], count: int, faults: RowFaults = WHOLE
) -> tuple[bytes, ...]:
    """Return the stored form of the displays of `count` rows; none if none are sent.

    `faults` receives the faults of rows.

    Raises
    ------
    InvalidInput
        If there is not one display per row.
    """
    if not messages:
        return ()
    if len(messages) != count:
        raise InvalidInput("displays", f"has {len(messages)} entries, must have one for each of {count} rows")
    return tuple(_display_bytes(message, k, faults) for k, message in enumerate(messages))


def _display_bytes(message: display_pb2.Display, row: int, faults: RowFaults) -> bytes:
    try:
        return _check_display(message, row)
    except InvalidInput as error:
        faults.add(RowFault(row, error.field, error.reason))
        return b""


def _check_display(message: display_pb2.Display, row: int) -> bytes:
    with field_prefix(f"displays[{row}]"):
        size = message.ByteSize()
        if size > MAX_DISPLAY_BYTES:
            raise InvalidInput("items", f"take {size:,} bytes, at most {MAX_DISPLAY_BYTES:,} are allowed")
        if len(message.items) > MAX_ITEMS:
            raise InvalidInput("items", f"are {len(message.items)}, at most {MAX_ITEMS} are allowed")
        for k, item in enumerate(message.items):
            with field_prefix(f"items[{k}]"):
                check_drawable(_check_item(item))
    clean = display_pb2.Display()
    clean.CopyFrom(message)
    clean.DiscardUnknownFields()
    return clean.SerializeToString(deterministic=True)


def _check_item(item: display_pb2.DisplayItem) -> DisplayItem:
    """Convert an item to the domain, which checks it."""
    match item.WhichOneof("content"):
        case "text":
            return TextItem(item.title, item.text)
        case "series":
            found = item.series
            step = found.step if found.HasField("step") else 1.0
            return SeriesItem(item.title, tuple(found.values), found.start, step, found.unit, found.step_unit)
        case "image" | "audio" as kind:
            media: display_pb2.DisplayMedia = getattr(item, kind)
            return MediaItem(kind, item.title, media.url, media.data, media.alt)
        case "link":
            return LinkItem(item.title, item.link)
        case _:
            raise InvalidInput("content", f"is missing: say {_CONTENTS}")


def encode_display(data: bytes | None) -> display_pb2.Display | None:
    """Return a stored display for the wire; None if there is none."""
    return None if data is None else display_pb2.Display.FromString(data)
