"""The presentation of a model's rows to people, a part of the specification that learning ignores."""

import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import quote, urlsplit

from quercus.belief.errors import InvalidInput, field_prefix, shown
from quercus.specification.attributes import check_distinct, check_name, is_finite_number
from quercus.specification.hosts import is_loopback

MAX_TITLE: Final = 200
MAX_DESCRIPTION: Final = 2_000
MAX_URL: Final = 2_000
MAX_SERIES: Final = 16
MAX_MEDIA: Final = 16
MAX_COORDINATE: Final = 1e100
"""Largest absolute value of a number of a curve, so that sums and differences of such numbers are finite."""

WITHHOLDABLE: Final = ("reason", "guess", "belief", "neighbours")
"""Parts of a query that may bias a labeller: its reason, the model's guess in it, the belief about the row, and similar
rows of known class."""

MediaKind = Literal["image", "audio", "link"]
MEDIA_KINDS: Final = ("image", "audio", "link")

_FORMAT: Final = re.compile(r"\.[0-9]{1,2}[efg%]")
_WHOLE: Final = 2**53  # floats represent all whole numbers up to this one
_PLACE: Final = re.compile(r"\{([^{}]*)\}")
_UNSAFE: Final = re.compile(r"[\x00-\x20\x7f-\x9f\"<>\\^`{|}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class AttributeView:
    """The presentation of the values of one attribute.

    Parameters
    ----------
    attribute
        Its name.
    title
        Shown in place of the name; at most 200 characters.
    unit
        Shown after the value, as in ``mm/s``.
    description
        At most 2,000 characters.
    format
        Format of a number, as in ``.2f``: a point, digits, and one of e, f, g, %.
    group
        Attributes of one group are shown together, under its name.
    hidden
        Whether labellers do not see it.
    """

    attribute: str
    title: str = ""
    unit: str = ""
    description: str = ""
    format: str = ""
    group: str = ""
    hidden: bool = False

    def __post_init__(self) -> None:
        check_name(self.attribute, "attribute")
        if not isinstance(self.hidden, bool):
            raise InvalidInput("hidden", f"is {shown(self.hidden)}, must be true or false")
        for name in ("title", "unit", "group"):
            check_text(getattr(self, name), name, MAX_TITLE)
        check_text(self.description, "description", MAX_DESCRIPTION)
        check_text(self.format, "format", MAX_TITLE)
        if self.format and _FORMAT.fullmatch(self.format) is None:
            raise InvalidInput("format", f"is {shown(self.format)}, must be like .2f, .3g, .1e or .0%")


@dataclass(frozen=True, slots=True)
class SeriesView:
    """Numeric attributes that form a curve.

    Parameters
    ----------
    title
        Not empty.
    attributes
        At least two, in order.
    start, step
        Position of the first value, and the distance between two values.
    unit, step_unit
        Unit of the values, and of start and step.
    plot
        Name of the plot; curves with the same name share a picture.
    """

    title: str
    attributes: tuple[str, ...]
    start: float = 0.0
    step: float = 1.0
    unit: str = ""
    step_unit: str = ""
    plot: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.attributes, str) or not isinstance(self.attributes, Iterable):
            raise InvalidInput("attributes", f"is {shown(self.attributes)}, must be a list of names")
        object.__setattr__(self, "attributes", tuple(self.attributes))
        for i, name in enumerate(self.attributes):
            check_name(name, f"attributes[{i}]")
        check_title(self.title)
        for name in ("unit", "step_unit", "plot"):
            check_text(getattr(self, name), name, MAX_TITLE)
        if len(self.attributes) < 2:
            raise InvalidInput("attributes", f"are {len(self.attributes)}, must be at least 2")
        check_distinct(self.attributes, "attributes")
        check_steps(self.start, self.step)


@dataclass(frozen=True, slots=True)
class MediaTemplate:
    """A picture, a sound or a link whose URL follows from the row.

    Parameters
    ----------
    kind
        ``image``, ``audio`` or ``link``.
    title
        Not empty.
    url
        With ``{id}`` and ``{attribute}``, as in ``https://cam.example/{id}.jpg?line={line}``; values are
        percent-encoded. The host is fixed.

    Examples
    --------
    >>> MediaTemplate("image", "camera", "https://cam.example/{id}.jpg?line={line}").fill_url("a/7", {"line": "B 2"})
    'https://cam.example/a%2F7.jpg?line=B%202'
    """

    kind: MediaKind
    title: str
    url: str

    def __post_init__(self) -> None:
        if self.kind not in MEDIA_KINDS:
            raise InvalidInput("kind", f"is {shown(self.kind)}, must be one of {', '.join(MEDIA_KINDS)}")
        check_title(self.title)
        if not isinstance(self.url, str):
            raise InvalidInput("url", f"is {shown(self.url)}, must be text")
        check_url(_PLACE.sub("x", self.url), "url")
        if "{" in self.url.split("//", 1)[1].partition("/")[0]:
            raise InvalidInput("url", f"is {shown(self.url)}: its host must not depend on the row")

    @property
    def place_names(self) -> tuple[str, ...]:
        """The names in braces."""
        return tuple(_PLACE.findall(self.url))

    def fill_url(self, instance: str, values: Mapping[str, object]) -> str | None:
        """Return the URL of a row; None if a value in it is missing or uncertain."""
        row = {"id": instance} | dict(values)
        if not all(isinstance(row.get(name), str | float | int) for name in self.place_names):
            return None
        return _PLACE.sub(lambda match: quote(_value_text(row[match[1]]), safe=""), self.url)


@dataclass(frozen=True, slots=True)
class Presentation:
    """The presentation of the rows of a model.

    Parameters
    ----------
    attributes
        At most one for each attribute.
    series
        At most 16.
    media
        At most 16.
    withheld
        Parts that labellers do not see: some of `WITHHOLDABLE`.
    """

    attributes: tuple[AttributeView, ...] = ()
    series: tuple[SeriesView, ...] = ()
    media: tuple[MediaTemplate, ...] = ()
    withheld: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("attributes", "series", "media", "withheld"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name, most in (("series", MAX_SERIES), ("media", MAX_MEDIA)):
            if len(getattr(self, name)) > most:
                raise InvalidInput(name, f"are {len(getattr(self, name))}, at most {most} are allowed")
        check_distinct([view.attribute for view in self.attributes], "attributes")
        for k, part in enumerate(self.withheld):
            if part not in WITHHOLDABLE:
                known = ", ".join(WITHHOLDABLE)
                raise InvalidInput(f"withheld[{k}]", f"is {shown(part)}, must be one of {known}")
        check_distinct(self.withheld, "withheld")

    def check_names(self, names: Collection[str], numeric: Collection[str]) -> None:
        """Refuse attributes that the model does not have, and curves of attributes that are not numeric.

        Raises
        ------
        InvalidInput
            Naming the place.
        """
        for k, view in enumerate(self.attributes):
            _check_known(view.attribute, names, f"attributes[{k}].attribute")
            if view.format and view.attribute not in numeric:
                raise InvalidInput(
                    f"attributes[{k}].format", f"is given, but {view.attribute} is not numeric"
                )
        for k, curve in enumerate(self.series):
            for i, name in enumerate(curve.attributes):
                _check_known(name, names, f"series[{k}].attributes[{i}]")
                if name not in numeric:
                    raise InvalidInput(
                        f"series[{k}].attributes[{i}]", f"is {shown(name)}, which is not numeric"
                    )
        for k, template in enumerate(self.media):
            for name in template.place_names:
                _check_known(name, {"id", *names}, f"media[{k}].url")

    def check_drawable(self) -> None:
        """Refuse curves with a position that is too large to be drawn.

        New presentations are checked; one that was stored before can still be read.

        Raises
        ------
        InvalidInput
            Naming the place.
        """
        for k, curve in enumerate(self.series):
            with field_prefix(f"series[{k}]"):
                check_positions(curve.start, curve.step, len(curve.attributes))

    def view_of(self, attribute: str) -> AttributeView:
        """Return the presentation of an attribute."""
        return next(
            (view for view in self.attributes if view.attribute == attribute), AttributeView(attribute)
        )

    def shown_views(self, attributes: Iterable[str]) -> list[AttributeView]:
        """Return the views of the attributes that are neither hidden nor part of a curve, by group."""
        in_curves = {name for curve in self.series for name in curve.attributes}
        views = [self.view_of(name) for name in attributes if name not in in_curves]
        return sorted((view for view in views if not view.hidden), key=lambda view: view.group)


def check_text(text: object, field: str, most: int) -> None:
    """Refuse values that are not text, or too long.

    Raises
    ------
    InvalidInput
        With the field and the bound.
    """
    if not isinstance(text, str):
        raise InvalidInput(field, f"is {shown(text)}, must be text")
    if len(text) > most:
        raise InvalidInput(field, f"has {len(text)} characters, at most {most:,} are allowed")


def check_title(text: object) -> None:
    """Refuse invalid titles: 1 to 200 characters are allowed."""
    check_text(text, "title", MAX_TITLE)
    if not str(text).strip():
        raise InvalidInput("title", "is empty, must be text")


def check_steps(start: float, step: float) -> None:
    """Refuse a start that is not finite, and a step that is not positive."""
    if not is_finite_number(start):
        raise InvalidInput("start", f"is {shown(start)}, must be a finite number")
    if not (is_finite_number(step) and step > 0):
        raise InvalidInput("step", f"is {shown(step)}, must be a positive and finite number")


def check_positions(start: float, step: float, count: int) -> None:
    """Refuse positions of `count` values that are too large to be drawn."""
    check_coordinates((start,), "start")
    check_coordinates((step, start + step * (count - 1)), "step")


def check_coordinates(numbers: Iterable[float], field: str) -> None:
    """Refuse numbers of a curve that are too large to be drawn; NaN is a gap."""
    worst = max((abs(number) for number in numbers if not math.isnan(number)), default=0.0)
    if worst > MAX_COORDINATE:
        raise InvalidInput(field, f"leads to {worst:.6g}, must lead to numbers in [-1e100, 1e100]")


def check_url(url: object, field: str) -> None:
    """Refuse URLs that are unsafe in a browser; https is allowed, and http of this machine.

    Raises
    ------
    InvalidInput
        For an invalid URL; it names the field and the error.
    """
    check_text(url, field, MAX_URL)
    text = str(url)
    if _UNSAFE.search(text):
        raise InvalidInput(field, f"is {shown(text)}, has a character that no URL has")
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidInput(field, f"is {shown(text)}: {error}") from None
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host or "")):
        raise InvalidInput(
            field, f"is {shown(text)}, must begin with https:// (or http:// and a loopback address)"
        )
    if not host or "@" in parts.netloc:
        raise InvalidInput(field, f"is {shown(text)}, must name a host and no user")


def _check_known(name: str, names: Collection[str], field: str) -> None:
    if name not in names:
        raise InvalidInput(field, f"names {shown(name)}, which the model does not have")


def _value_text(value: object) -> str:
    if isinstance(value, float):  # with all digits, so that different rows have different pictures
        return str(int(value)) if value.is_integer() and abs(value) < _WHOLE else f"{value:.15g}"
    return str(value)
