"""The evidence of an instance from the events of the log."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from quercus.belief.evidence import ReportedLabel, combined_contour, known_after
from quercus.belief.label import Label, contour
from quercus.server.wire.labels import decode_stored
from quercus.storage import Event, EventKind

KINDS_WITHOUT_EVIDENCE = frozenset({EventKind.OPINION, EventKind.STATEMENT})
"""Kinds of events with the label of one labeller, which counts through the event of the combination that follows."""


def reported_label(event: Event, size: int) -> ReportedLabel[Label] | None:
    """Return the label that an event reports; None if it counts only through the combination of all labels.

    Parameters
    ----------
    event : event of an instance, of any kind.
    size : number of classes.
    """
    if event.kind in KINDS_WITHOUT_EVIDENCE:
        return None
    label = None if event.label is None else decode_stored(event.label, size)
    return ReportedLabel(label, event.reliability, replaces=event.kind is EventKind.CORRECTION)


def known_contour(history: Sequence[Event], size: int) -> NDArray[np.float64]:
    """Combine everything said about an instance, oldest first, into a contour, float64 (size,).

    Parameters
    ----------
    history : the instance's events; the first is its own INSTANCE event.
    size : number of classes.
    """
    label = history[0].label
    if label is None:
        raise ValueError("an instance without a label event")
    pushed = known = contour(decode_stored(label, size), size)
    as_contour = partial(contour, size=size)
    for event in history[1:]:
        reported = reported_label(event, size)
        if reported is not None:
            known = known_after(pushed, known, reported.with_label(as_contour), combined_contour)
    return known
