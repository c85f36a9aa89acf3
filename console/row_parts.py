"""The parts of a row on a page: pictures and sounds, values, and folded values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.responses import Response

from quercus.client.results import Model, Reason
from quercus.specification.display import Display, MediaItem, media_type
from quercus.view.queries import fold_values
from quercus.view.rows import ShownItem, ShownValue, shown_curves, shown_items

Group = tuple[str, list[ShownValue]]


@dataclass(frozen=True)
class RowParts:
    """The parts of a row.

    Attributes
    ----------
    pictures, beside
        Pictures that the page may load, and other items beside the values, each with its URL.
    first, rest
        Groups of values: those shown at once, and the folded ones.
    more
        Number of attributes that are not listed.
    """

    pictures: Sequence[tuple[ShownItem, str]]
    beside: Sequence[tuple[ShownItem, str]]
    first: Sequence[Group]
    rest: Sequence[Group]
    more: int

    @property
    def rest_count(self) -> int:
        """Number of attributes not shown at once."""
        return sum(len(values) for _, values in self.rest) + self.more

    @classmethod
    def of(
        cls,
        items: Sequence[tuple[ShownItem, str]],
        groups: list[Group],
        more: int,
        reason: Reason,
    ) -> RowParts:
        """Return the parts of a row; attributes tested in its reason are shown at once."""
        pictures = [each for each in items if is_picture(*each)]
        beside = [each for each in items if not is_picture(*each)]
        return cls(pictures, beside, *fold_values(groups, reason), more)


def items_of(
    row: str,
    values: Mapping[str, Any],
    display: Display,
    model: Model,
    origins: Collection[str],
    data_url: str,
) -> list[tuple[ShownItem, str]]:
    """Return the items shown beside the values of a row, each with its URL."""
    shown = (*shown_curves(values, model), *shown_items(row, values, display, model))
    return [item_address(each, origins, data_url) for each in shown]


def is_picture(item: ShownItem, address: str) -> bool:
    """Return whether an item is a picture that the page may load."""
    return item.kind == "image" and bool(address)


def item_address(item: ShownItem, origins: Collection[str], data_url: str) -> tuple[ShownItem, str]:
    """Return an item and its URL; the URL is empty if the operator did not allow its origin.

    Pushed bytes are at ``data_url``, followed by the position of the item.
    """
    if item.kind not in {"image", "audio"}:
        return item, item.url
    if item.data:
        return item, f"{data_url}{item.place}"
    return item, item.url if origin_of(item.url) in origins else ""


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL.

    Examples
    --------
    >>> origin_of("https://cam.example:8443/a.jpg?x=1")
    'https://cam.example:8443'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


def media_response(display: Display, place: str) -> Response:
    """Return the picture or sound at a position among the items pushed beside a row.

    Raises
    ------
    HTTPException
        When there is none.
    """
    item = dict(zip(map(str, range(len(display))), display, strict=True)).get(place)
    kind = media_type(item.data) if isinstance(item, MediaItem) else None
    if not isinstance(item, MediaItem) or kind is None:
        raise HTTPException(404)
    headers = {"Content-Security-Policy": "sandbox; default-src 'none'"}
    return Response(item.data, media_type=kind, headers=headers)
