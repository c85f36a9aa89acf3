"""The name of a labeller's screen: different presentations have different names."""

from __future__ import annotations

import hashlib

from google.protobuf.message import Message

from quercus.client.display_messages import message_of_display, message_of_presentation
from quercus.client.results import Model, Query


def shown_text(query: Query, model: Model) -> str:
    """Return the name of a query's presentation on the screen, which is kept with its answer.

    It contains digests of the presentation in force and of the row's display, and the version of the
    tree whose reason is shown; ``-`` where there is none. The row itself never changes.
    """
    presentation = model.specification.presentation
    presentation_digest = (
        "-" if presentation is None else _message_digest(message_of_presentation(presentation))
    )
    display_digest = _message_digest(message_of_display(query.display, 0)) if query.display else "-"
    withheld = presentation is not None and "reason" in presentation.withheld
    return f"presentation={presentation_digest} display={display_digest} tree={'-' if withheld else query.tree_version}"


def _message_digest(message: Message) -> str:
    return hashlib.sha256(message.SerializeToString(deterministic=True)).hexdigest()[:16]
