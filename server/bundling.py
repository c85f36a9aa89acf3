"""Small pushes to one model become one: the store's cost a call is many times its cost a row.

Each push still gets its own outcome, and a bad one does not harm the others: when a bundle is refused its pushes are
stored one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from quercus.server.limits import BUNDLE_ROWS
from quercus.storage.records import Appended, Push
from quercus.storage.store import Store

Outcome: TypeAlias = Appended | Exception


class Bundle:
    """Pushes to one model that are stored as one.

    Parameters
    ----------
    first : position of the first push in its group.
    push : the push.
    """

    def __init__(self, first: int, push: Push) -> None:
        self.positions = [first]
        self.pushes = [push]
        self._ids = set(push.ids)

    def takes(self, push: Push) -> bool:
        """Whether `push` may join: nothing new to learn, no id twice, not too many rows."""
        first = self.pushes[0]
        return (
            not first.new_values
            and not push.new_values
            and first.values.shape[1] == push.values.shape[1]
            and len(self._ids) + len(push.ids) <= BUNDLE_ROWS
            and self._ids.isdisjoint(push.ids)
        )

    def add(self, position: int, push: Push) -> None:
        """Let `push` join."""
        self.positions.append(position)
        self.pushes.append(push)
        self._ids.update(push.ids)

    def merged(self) -> Push:
        """All of them as one push."""
        if len(self.pushes) == 1:
            return self.pushes[0]
        return Push(
            self.pushes[0].model,
            [identifier for push in self.pushes for identifier in push.ids],
            np.concatenate([push.values for push in self.pushes]),
            [label for push in self.pushes for label in push.labels],
        )

    def shares(self, store: Store, whole: Appended) -> list[Appended]:
        """What became of each push, given what became of all together."""
        before = whole.committed_sequence - whole.stored
        if not whole.known:
            ends = np.cumsum([len(push.ids) for push in self.pushes]).tolist()
            return [
                Appended(before + end, len(push.ids), 0) for end, push in zip(ends, self.pushes, strict=True)
            ]
        model = self.pushes[0].model
        new = (
            {event.id for event in store.read_events(model, before, whole.stored)} if whole.stored else set()
        )
        counts = [len(new.intersection(push.ids)) for push in self.pushes]
        return [
            Appended(whole.committed_sequence, count, len(push.ids) - count)
            for count, push in zip(counts, self.pushes, strict=True)
        ]


def bundle(pushes: Sequence[Push]) -> list[Bundle]:
    """Bundle what may be bundled; the order of the pushes to one model stays."""
    bundles: list[Bundle] = []
    newest: dict[str, Bundle] = {}
    for position, push in enumerate(pushes):
        there = newest.get(push.model)
        if there is not None and there.takes(push):
            there.add(position, push)
        else:
            newest[push.model] = Bundle(position, push)
            bundles.append(newest[push.model])
    return bundles


def store_pushes(store: Store, pushes: Sequence[Push]) -> list[Outcome]:
    """Store pushes in one commit (two when a bundle was refused) and say what became of each.

    Returns
    -------
    list : one a push, an exception where it was refused.
    """
    bundles = bundle(pushes)
    outcomes: dict[int, Outcome] = {}
    refused: list[tuple[int, Push]] = []
    for each, outcome in zip(bundles, store.append_group([each.merged() for each in bundles]), strict=True):
        if len(each.pushes) == 1:
            outcomes[each.positions[0]] = outcome
        elif isinstance(outcome, Appended):
            outcomes.update(zip(each.positions, each.shares(store, outcome), strict=True))
        else:
            refused.extend(zip(each.positions, each.pushes, strict=True))
    if refused:
        singly = store.append_group([push for _, push in refused])
        outcomes.update(zip([position for position, _ in refused], singly, strict=True))
    return [outcomes[position] for position in range(len(pushes))]
