"""Drawings of a stored tree as text, DOT or SVG; of several trees, an overview."""

from __future__ import annotations

from typing import Final

from quercus.server.wire import snapshots
from quercus.server.wire.trees import choose_member, member_classes, names_of
from quercus.storage import Snapshot
from quercus.trees.learners.stored import part_trees
from quercus.v1 import tree_pb2
from quercus.view.trees.dot import to_dot
from quercus.view.trees.overview import Overview
from quercus.view.trees.svg import to_svg
from quercus.view.trees.text import to_text

_Request = tree_pb2.RenderTreeRequest

MEDIA_TYPES: Final[dict[int, str]] = {
    _Request.FORMAT_TEXT: "text/plain; charset=utf-8",
    _Request.FORMAT_DOT: "text/vnd.graphviz",
    _Request.FORMAT_SVG: "image/svg+xml",
}


def draw_tree(
    snapshot: Snapshot, form: int, member: int | None = None, depth: int | None = None
) -> tree_pb2.RenderTreeResponse:
    """Draw a stored tree.

    Parameters
    ----------
    snapshot : the stored version.
    form : one of ``MEDIA_TYPES``.
    member : number of one tree of several; None for the only one, or an overview of all.
    depth : levels below the root; None for all.

    Raises
    ------
    InvalidInput
        If there is no such member, the depth is negative, or the tree is too large for a picture.
    """
    stored = snapshots.read_snapshot(snapshot.data)
    flats = part_trees(stored.columns)
    if member is None and len(flats) > 1:
        classes = [member_classes(stored.head.classes, flat, at) for at, flat in enumerate(flats)]
        content = _draw_overview(
            Overview.of(flats, names_of(stored.head, flats[0], 0).attributes, classes), form
        )
    else:
        flat = choose_member(flats, member or 0)
        names = names_of(stored.head, flat, member or 0)
        if form == _Request.FORMAT_TEXT:
            content = to_text(flat, names, depth)
        else:
            content = (to_dot if form == _Request.FORMAT_DOT else to_svg)(flat, names, depth)
    return tree_pb2.RenderTreeResponse(content=content, media_type=MEDIA_TYPES[form])


def _draw_overview(overview: Overview, form: int) -> str:
    if form == _Request.FORMAT_TEXT:
        return overview.text()
    return overview.dot() if form == _Request.FORMAT_DOT else overview.svg()
