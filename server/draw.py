"""Drawings of a tree message: text, DOT, SVG."""

from __future__ import annotations

from typing import Final

from quercus.proto.v1 import tree_pb2
from quercus.server.convert_trees import decode_tree
from quercus.trees.drawing import Names, to_dot, to_svg, to_text

_Request = tree_pb2.RenderTreeRequest

MEDIA_TYPES: Final[dict[int, str]] = {
    _Request.FORMAT_TEXT: "text/plain; charset=utf-8",
    _Request.FORMAT_DOT: "text/vnd.graphviz",
    _Request.FORMAT_SVG: "image/svg+xml",
}


def draw(message: tree_pb2.Tree, form: int) -> tree_pb2.RenderTreeResponse:
    """Draw a tree.

    Parameters
    ----------
    message : the tree.
    form : one of ``MEDIA_TYPES``.
    """
    flat = decode_tree(message)
    names = Names(
        tuple(message.classes),
        tuple(each.attribute for each in message.attributes),
        tuple(tuple(each.branches) for each in message.attributes),
    )
    if form == _Request.FORMAT_TEXT:
        content = to_text(flat, names)
    elif form == _Request.FORMAT_DOT:
        content = to_dot(flat, names)
    else:
        content = to_svg(flat, names)
    return tree_pb2.RenderTreeResponse(content=content, media_type=MEDIA_TYPES[form])
