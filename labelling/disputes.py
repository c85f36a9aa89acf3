"""Disputes: instances whose labellers name different classes, and how far labellers agree beyond chance."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from quercus.belief.arrays import Ints
from quercus.belief.label import contour
from quercus.labelling.crowds.kappa import cohen_kappa, krippendorff_alpha
from quercus.labelling.event import SHARED, Event
from quercus.labelling.history import (
    LabelEvent,
    LabelKind,
    known_contour,
    own_labels,
    standing_labels,
    stored_label,
)


def first_shared(history: Sequence[Event]) -> int:
    """Return the number of the first event of an instance after which several labellers may have labelled it."""
    return next(event.sequence for event in history if event.kind in SHARED)


def named_classes(event: Event, size: int) -> frozenset[int]:
    """Return the most plausible classes of the label of an event; none if it has no label or a vacuous one."""
    if event.label is None:
        return frozenset()
    said = contour(stored_label(event.label, size), size)
    top = said == said.max()
    return frozenset() if top.all() else frozenset(np.flatnonzero(top).tolist())


def are_in_dispute(labels: Iterable[LabelEvent], size: int) -> bool:
    """Return whether two labels have no most plausible class in common. A label that says nothing contradicts none."""
    named = [found for each in labels if (found := named_classes(each.event, size))]
    return any(one.isdisjoint(other) for one, other in combinations(named, 2))


def is_disputed(history: Sequence[Event], size: int) -> bool:
    """Return whether the labels of an instance that stand now are in dispute."""
    return are_in_dispute(standing_labels(history), size)


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """The agreement of two labellers.

    Attributes
    ----------
    first, second : str
        Their names, in order.
    rows : int
        Instances for which both named one class.
    same : int
        Those of which it was the same class.
    kappa : float or None
        Cohen's kappa; None where both always named one and the same class, so that chance explains all.
    """

    first: str
    second: str
    rows: int
    same: int
    kappa: float | None


@dataclass(frozen=True, slots=True)
class LabellerConfusion:
    """The classes that a labeller named, against those that hold.

    Attributes
    ----------
    labeller : str
    counts : int64 (l, l)
        Instances by the class that the labeller named (row) and the class that holds now (column).
    """

    labeller: str
    counts: Ints


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of the labellers of a model.

    Attributes
    ----------
    shared : int
        Instances with labels of two or more labellers.
    disputed : int
        Those in dispute now.
    adjudicated : int
        Those that somebody has decided.
    alpha : float or None
        Krippendorff's alpha for nominal data; None where it is not defined.
    alpha_rows, alpha_labels : int
        Instances for which two or more labellers named one class, and these labels.
    pairs : sequence of PairAgreement
        Those with the most instances first.
    confusions : sequence of LabellerConfusion
        In order of name.
    """

    shared: int = 0
    disputed: int = 0
    adjudicated: int = 0
    alpha: float | None = None
    alpha_rows: int = 0
    alpha_labels: int = 0
    pairs: Sequence[PairAgreement] = ()
    confusions: Sequence[LabellerConfusion] = ()


def agreement_of(histories: Collection[Sequence[Event]], size: int) -> Agreement:
    """Return the agreement of labellers, each by their own newest label, also where it was overruled.

    A label counts where it has one most plausible class. It is held against the one class that is most plausible by all
    evidence of the instance; where there is none, it is in no confusion matrix.

    Parameters
    ----------
    histories
        All events of each instance, oldest first; those without labels of two labellers count for nothing.
    size
        Number of classes, l.
    """
    tally = _Tally(size)
    for history in histories:
        tally.add(history)
    return tally.agreement()


@dataclass(slots=True)
class _Tally:
    """Counts of instances with several labellers."""

    size: int
    shared: int = 0
    disputed: int = 0
    adjudicated: int = 0
    votes: list[Mapping[str, int]] = field(default_factory=list)
    confusions: dict[str, Ints] = field(default_factory=dict)

    def add(self, history: Sequence[Event]) -> None:
        labels = own_labels(history)
        if len(labels) < 2:
            return
        self.shared += 1
        standing = standing_labels(history)
        self.disputed += are_in_dispute(standing, self.size)
        self.adjudicated += any(each.kind is LabelKind.ADJUDICATED for each in standing)
        named = {each.event.author: named_classes(each.event, self.size) for each in labels}
        votes = {author: next(iter(classes)) for author, classes in named.items() if len(classes) == 1}
        self.votes.append(votes)
        known = known_contour(history, self.size)
        top = np.flatnonzero(known == known.max())
        if len(top) == 1:
            for author, voted in votes.items():
                counts = self.confusions.setdefault(author, np.zeros((self.size, self.size), np.int64))
                counts[voted, int(top[0])] += 1

    def agreement(self) -> Agreement:
        both: dict[tuple[str, str], Ints] = {}
        for votes in self.votes:
            for one, other in combinations(sorted(votes), 2):
                counts = both.setdefault((one, other), np.zeros((self.size, self.size), np.int64))
                counts[votes[one], votes[other]] += 1
        pairs = [
            PairAgreement(one, other, int(counts.sum()), int(np.trace(counts)), cohen_kappa(counts))
            for (one, other), counts in both.items()
        ]
        several = np.array([_counts_of(votes, self.size) for votes in self.votes if len(votes) > 1])
        several = several.reshape(-1, self.size)
        return Agreement(
            self.shared,
            self.disputed,
            self.adjudicated,
            krippendorff_alpha(several),
            len(several),
            int(several.sum()),
            sorted(pairs, key=lambda pair: (-pair.rows, pair.first, pair.second)),
            [LabellerConfusion(*each) for each in sorted(self.confusions.items())],
        )


def _counts_of(votes: Mapping[str, int], size: int) -> Ints:
    return np.bincount(list(votes.values()), minlength=size).astype(np.int64)
