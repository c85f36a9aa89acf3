"""Bounds of names, texts and times that several parts share."""

import re
from typing import Final

from quercus.belief.errors import InvalidInput

MODEL_ID: Final = re.compile(r"[a-z][a-z0-9_-]{0,62}")

MAX_ID_CHARACTERS: Final = 200
"""Most characters of the id of an instance or of a batch."""

MAX_LABELLER_CHARACTERS: Final = 100

MAX_AUTHOR_CHARACTERS: Final = 200
"""Most characters of the joined names of the labellers of a combined label, in the log."""

MAX_COMMENT_CHARACTERS: Final = 2000
"""Most characters of a labeller's comment."""

MAX_SHOWN_CHARACTERS: Final = 200
"""Most characters of the name of a labeller's screen."""

MAX_STATEMENTS: Final = 10_000
"""Most statements in one request."""

MAX_GOLD: Final = 1_000
"""Most gold questions of a model."""

MAX_ANSWERS_PER_QUERY: Final = 20

MAX_POLICY_COUNT: Final = 2**31 - 1
"""Highest bound that a labelling policy may set to numbers of answers."""

MAX_DELAY_S: Final = 86_400.0
"""Longest time for which a query may be postponed, in seconds."""

MAX_TOOK_S: Final = 31_536_000.0
"""Longest time that a labeller may report for an answer, in seconds (a year)."""


def check_model_id(model: str, field: str) -> str:
    """Return `model` if it is a valid id, else raise ``InvalidInput``."""
    if MODEL_ID.fullmatch(model) is None:
        raise InvalidInput(
            field, f"{model[:80]!r} is not 1 to 63 characters of [a-z0-9_-] that start with a letter"
        )
    return model
