"""Descriptions of a labeller's screen, which distinguish different presentations."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from google.protobuf.message import Message

from quercus.client.display_messages import message_of_display, message_of_presentation
from quercus.client.guess import guess_of
from quercus.client.results import Model, Query

_GUESS: Final = re.compile(r"(?:^| )guess=([0-9]{1,9})$")


def shown_text(query: Query, model: Model) -> str:
    """Return the description of a query's presentation on the screen, which is kept with its answer.

    It has digests of the current presentation and of the row's display, and the version of the tree whose reason is
    shown, each ``-`` if there is none; and the index of the guessed class, if the reason shows a guess. The row itself
    never changes.
    """
    presentation = model.specification.presentation
    presentation_digest = (
        "-" if presentation is None else _message_digest(message_of_presentation(presentation))
    )
    display_digest = _message_digest(message_of_display(query.display, 0)) if query.display else "-"
    withheld = presentation is not None and "reason" in presentation.withheld
    guess = guess_of(query, model)
    return (
        f"presentation={presentation_digest} display={display_digest} "
        f"tree={'-' if withheld else query.tree_version}{'' if guess is None else f' guess={guess[0]}'}"
    )


def guess_in(shown: str) -> int | None:
    """Return the index of the class shown as the guess, from the description of a screen; ``None`` if none was shown.

    Examples
    --------
    >>> guess_in("presentation=- display=- tree=7 guess=1"), guess_in("presentation=- display=- tree=7")
    (1, None)
    """
    found = _GUESS.search(shown)
    return None if found is None else int(found[1])


def _message_digest(message: Message) -> str:
    return hashlib.sha256(message.SerializeToString(deterministic=True)).hexdigest()[:16]
