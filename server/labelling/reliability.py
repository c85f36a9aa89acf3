"""Labellers of a model, held against each other: agreement, and reliability estimated from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quercus.belief import agreement
from quercus.belief.codec import decode_contours
from quercus.storage import Event, Store

NEWEST: Final = 2000
"""Answers that reliability is estimated from: the newest, so that a labeller may get better."""

UNKNOWN: Final = agreement.PRIOR_RIGHT / (agreement.PRIOR_RIGHT + agreement.PRIOR_WRONG)
"""Reliability of a labeller of whom nothing is known."""


@dataclass(frozen=True)
class LabellerAgreement:
    """How a labeller stands among the others.

    Attributes
    ----------
    reliability : estimated, in (0, 1).
    agreement : mean chance that this labeller and another bet on the same class, over all they share.
    """

    reliability: float
    agreement: float


def estimate_reliability(store: Store, model: str, size: int, labeller: str) -> float:
    """Return the reliability of a labeller, estimated from the newest answers of all."""
    found = labeller_agreements(store.opinions(model, NEWEST), size).get(labeller)
    return UNKNOWN if found is None else found.reliability


def labeller_agreements(events: Sequence[Event], size: int) -> Mapping[str, LabellerAgreement]:
    """Return how labellers stand who share an instance with another, by name.

    Parameters
    ----------
    events : opinions and statements, oldest first; what a labeller says later of the same instance counts.
    size : number of classes.
    """
    said = {(event.instance, event.author): event.label for event in events}
    words = {key: label for key, label in said.items() if label is not None}
    by_instance: dict[int, list[int]] = {}
    for place, (instance, _) in enumerate(words):
        by_instance.setdefault(instance, []).append(place)
    pairs = [pair for places in by_instance.values() for pair in combinations(places, 2)]
    if not pairs:
        return {}
    contours = decode_contours(list(words.values()), size)
    instances, oracles = (np.unique([key[side] for key in words], return_inverse=True) for side in (0, 1))
    found = agreement.estimate(instances[1], oracles[1], contours)
    same = _agreement_of(np.array(pairs), oracles[1], contours, len(oracles[0]))
    return {
        str(name): LabellerAgreement(float(found.reliability[i]), float(same[i]))
        for i, name in enumerate(oracles[0])
        if not np.isnan(same[i])
    }


def _agreement_of(
    pairs: NDArray[np.int64], oracles: NDArray[np.int64], contours: NDArray[np.float64], count: int
) -> NDArray[np.float64]:
    chance = agreement.same_class(contours[pairs[:, 0]], contours[pairs[:, 1]])
    who, both = oracles[pairs].ravel(), np.repeat(chance, 2)
    shared = np.bincount(who, minlength=count)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.bincount(who, weights=both, minlength=count) / shared)
