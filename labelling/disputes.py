"""Disputes (instances whose labellers name different classes), and agreement of labellers beyond chance."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

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

MOST_LABELLERS: Final = 200
"""Most labellers whose pairs and confusions are counted: those with the most labels."""


def first_shared(history: Sequence[Event]) -> int:
    """Return the number of the first OPINION or STATEMENT about an instance: two labels hold at once only after it."""
    return next(event.sequence for event in history if event.kind in SHARED)


def named_classes(event: Event, size: int) -> frozenset[int]:
    """Return the most plausible classes of an event's label; an empty set if it has no label or a vacuous one."""
    if event.label is None:
        return frozenset()
    said = contour(stored_label(event.label, size), size)
    top = said == said.max()
    return frozenset() if top.all() else frozenset(np.flatnonzero(top).tolist())


def are_in_dispute(labels: Iterable[LabelEvent], size: int) -> bool:
    """Return whether two of the labels have no most plausible class in common. A vacuous label contradicts none."""
    named = {found for each in labels if (found := named_classes(each.event, size))}
    return any(one.isdisjoint(other) for one, other in combinations(named, 2))


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """The agreement of two labellers.

    Attributes
    ----------
    first, second : str
        Their names, sorted.
    rows : int
        Instances for which each of them named a single class.
    same : int
        Those for which both named the same class.
    kappa : float or None
        Cohen's kappa; None if both named the same class for every instance, so that chance explains all agreement.
    """

    first: str
    second: str
    rows: int
    same: int
    kappa: float | None


@dataclass(frozen=True, slots=True)
class LabellerAgreement:
    """The agreement of a labeller with all others.

    Attributes
    ----------
    agreement : float
        Share of pairs (an instance, another labeller of it) in which both named the same class.
    agreement_deviation : float
        Standard deviation of that share, by the number of instances.
    """

    agreement: float
    agreement_deviation: float


@dataclass(frozen=True, slots=True)
class LabellerConfusion:
    """The classes that a labeller named, compared with those that hold.

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
        Those that were adjudicated.
    alpha : float or None
        Krippendorff's alpha for nominal data; None where it is undefined.
    alpha_rows, alpha_labels : int
        Instances for which two or more labellers named a single class, and the number of these labels.
    pairs : sequence of PairAgreement
        Of the `MOST_LABELLERS` labellers with the most labels; pairs with the most instances first.
    confusions : sequence of LabellerConfusion
        Of the same labellers, sorted by name.
    labellers : mapping of str to LabellerAgreement
        Of all labellers who share an instance with another, by name.
    """

    shared: int = 0
    disputed: int = 0
    adjudicated: int = 0
    alpha: float | None = None
    alpha_rows: int = 0
    alpha_labels: int = 0
    pairs: Sequence[PairAgreement] = ()
    confusions: Sequence[LabellerConfusion] = ()
    labellers: Mapping[str, LabellerAgreement] = field(default_factory=dict)


def agreement_of(histories: Iterable[Sequence[Event]], size: int) -> Agreement:
    """Return the agreement of labellers, by the newest label of each, even if it was overruled.

    A label counts if it has a single most plausible class. Confusion matrices compare it with the single class that is
    most plausible by all evidence of the instance, and leave out instances that have no such class.

    Parameters
    ----------
    histories
        All events of each instance, oldest first; instances without labels of two labellers are ignored.
    size
        Number of classes, l.
    """
    disputed = adjudicated = 0
    rows: list[
        tuple[dict[str, int], int | None]
    ] = []  # of an instance: the class by labeller, and the one that holds
    for history in histories:
        labels = own_labels(history)
        if len(labels) < 2:
            continue
        standing = standing_labels(history)
        disputed += are_in_dispute(standing, size)
        adjudicated += any(each.kind is LabelKind.ADJUDICATED for each in standing)
        named = ((each.event.author, named_classes(each.event, size)) for each in labels)
        known = known_contour(history, size)
        top = np.flatnonzero(known == known.max()).tolist()
        votes = {author: next(iter(classes)) for author, classes in named if len(classes) == 1}
        rows.append((votes, top[0] if len(top) == 1 else None))

    spoken = Counter(author for votes, _ in rows for author in votes)
    busiest = set(sorted(spoken, key=lambda author: (-spoken[author], author))[:MOST_LABELLERS])
    both: defaultdict[tuple[str, str], Counter[tuple[int, int]]] = defaultdict(Counter)
    confusions: defaultdict[str, Ints] = defaultdict(lambda: np.zeros((size, size), np.int64))
    for votes, holds in rows:
        mine = sorted(busiest & votes.keys())
        for one, other in combinations(mine, 2):
            both[one, other][votes[one], votes[other]] += 1
        for author in mine if holds is not None else ():
            confusions[author][votes[author], holds] += 1
    several = [list(votes.values()) for votes, _ in rows if len(votes) > 1]
    counts = np.array([np.bincount(each, minlength=size) for each in several]).reshape(-1, size)
    pairs = [_pair_of(*names, cells, size) for names, cells in both.items()]
    return Agreement(
        len(rows),
        disputed,
        adjudicated,
        krippendorff_alpha(counts),
        len(several),
        sum(map(len, several)),
        sorted(pairs, key=lambda pair: (-pair.rows, pair.first, pair.second)),
        [LabellerConfusion(*each) for each in sorted(confusions.items())],
        _by_labeller(votes for votes, _ in rows),
    )


def _by_labeller(rows: Iterable[Mapping[str, int]]) -> Mapping[str, LabellerAgreement]:
    """Return the agreement of each labeller; `rows` has the class by labeller of each instance."""
    instances, pairs, same = Counter[str](), Counter[str](), Counter[str]()
    for votes in rows:
        named = Counter(votes.values())
        for author, voted in votes.items() if len(votes) > 1 else ():
            instances[author] += 1
            pairs[author] += len(votes) - 1
            same[author] += named[voted] - 1
    shares = {author: same[author] / pairs[author] for author in sorted(pairs)}
    return {
        author: LabellerAgreement(share, _share_deviation(share, instances[author]))
        for author, share in shares.items()
    }


def _share_deviation(share: float, count: int) -> float:
    """Return the standard deviation of a share of `count` cases, by its Beta posterior from a uniform prior."""
    mean = (share * count + 1.0) / (count + 2.0)
    return math.sqrt(mean * (1.0 - mean) / (count + 3.0))


def _pair_of(first: str, second: str, cells: Mapping[tuple[int, int], int], size: int) -> PairAgreement:
    counts = np.zeros((size, size), np.int64)
    for cell, rows in cells.items():
        counts[cell] = rows
    return PairAgreement(first, second, int(counts.sum()), int(np.trace(counts)), cohen_kappa(counts))
