"""The labels of an instance, read from its events."""

from itertools import permutations

import numpy as np

from quercus.belief.codec import decode, encode
from quercus.belief.label import ClassSet, Plausibilities, contour
from quercus.labelling.combining import joint_event
from quercus.labelling.history import LabelKind, LabelState, label_events
from quercus.labelling.policy import Combination
from quercus.storage import Event, EventKind

EVERYTHING, FIRST = encode(ClassSet(3)), encode(ClassSet(1))


def said(sequence: int, kind: EventKind, author: str, label: bytes | None, query: int = 1) -> Event:
    """An event about the only instance."""
    values = b"" if kind is EventKind.INSTANCE else None
    return Event(sequence, kind, 1, "a", values, label, author, 1.0, None, False, None, 0.0, query)


def test_a_refusal_counts_after_all_other_answers_were_taken_back() -> None:
    """The query wanted several answers; who had given one took it back, and the next labeller cannot tell."""
    history = [
        said(1, EventKind.INSTANCE, "source", EVERYTHING, 0),
        said(2, EventKind.OPINION, "ann", FIRST),
        said(3, EventKind.OPINION, "ann", None),
        said(4, EventKind.REFUSAL, "bob", None),
    ]
    found = [(each.event.author, each.kind, each.state) for each in label_events(history)]
    assert found == [
        ("ann", LabelKind.ANSWERED, LabelState.UNDONE),
        ("ann", LabelKind.UNDONE, LabelState.EMPTY),
        ("bob", LabelKind.REFUSED, LabelState.EMPTY),
    ]
    history += [
        said(5, EventKind.STATEMENT, "eve", FIRST, 0),
        said(6, EventKind.STATEMENT, "eve", None, 0),
    ]
    joint = joint_event(history, 2, None, Combination.DEMPSTER, 7, 0.0)
    assert joint.label == EVERYTHING  # else it would be asked about again
    taken_back = said(7, EventKind.CORRECTION, "bob", None)
    assert joint_event([*history, taken_back], 2, None, Combination.DEMPSTER, 8, 0.0).label is None


def test_statements_of_labellers_who_confer() -> None:
    """In any order the same label; of those who say the same, the strongest reason counts (.99 of each is believed)."""
    labels = {name: encode(Plausibilities(each)) for name, each in SAID.items()}
    found = set()
    for order in permutations(labels):
        history = [said(1, EventKind.INSTANCE, "source", EVERYTHING, 0)]
        history += [said(2 + at, EventKind.STATEMENT, name, labels[name], 0) for at, name in enumerate(order)]
        found.add(joint_event(history, 2, None, Combination.CAUTIOUS, 9, 0.0).label)
    (only,) = found
    assert only is not None
    together = contour(decode(only, 2), 2)
    np.testing.assert_allclose(together / together.max(), [1.0, 0.208 / 0.5545], atol=1e-12)


SAID = {"ann": (1.0, 0.2), "bob": (1.0, 0.4), "cleo": (0.55, 1.0)}
