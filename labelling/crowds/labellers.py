"""The labellers of a model, and their reliability, estimated from the agreement of their labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quercus.belief.codec import decode_contours
from quercus.labelling.crowds.answers import CrowdAnswers
from quercus.labelling.crowds.coin import PRIOR_RELIABILITY
from quercus.labelling.crowds.confusion import CrowdEstimate, estimate_crowd
from quercus.labelling.event import Event

MAX_LABELS: Final = 2000
"""Most labels that reliability is estimated from. The newest count, so that estimates follow labellers who improve."""

MOST_CELLS: Final = 1 << 21
"""Most cells of all confusion matrices together: with many classes, fewer labels count."""

UNKNOWN: Final = PRIOR_RELIABILITY
"""Reliability of an unknown labeller."""


@dataclass(frozen=True)
class LabellerReliability:
    """The estimated reliability of a labeller.

    Attributes
    ----------
    reliability, reliability_deviation : estimated probability that an answer is right, and its standard deviation.
    """

    reliability: float
    reliability_deviation: float


@dataclass(frozen=True, eq=False)
class Crowd:
    """The labellers of a model, estimated from their labels.

    Attributes
    ----------
    numbers : number of each labeller in `estimate`, by name.
    estimate : None if no two labellers labelled the same instance.
    reliabilities : of labellers who share an instance with another, by name.
    """

    numbers: Mapping[str, int]
    estimate: CrowdEstimate | None
    reliabilities: Mapping[str, LabellerReliability]

    def reliability_of(self, labeller: str) -> float:
        """Return the reliability of a labeller, `UNKNOWN` for one who shares no instance with another."""
        found = self.reliabilities.get(labeller)
        return UNKNOWN if found is None else found.reliability

    def answer_evidence(self, labeller: str, contour: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return the evidence of an answer, as a contour (theory §13.4); None for a labeller without an estimate."""
        if self.estimate is None or labeller not in self.reliabilities:
            return None
        return self.estimate.answer_evidence(self.numbers[labeller], contour)


NOBODY: Final = Crowd({}, None, {})


def crowd_of(events: Sequence[Event], size: int) -> Crowd:
    """Estimate the reliability of labellers.

    Parameters
    ----------
    events : opinions and statements, oldest first; of each labeller and instance, the newest label counts.
    size : number of classes.
    """
    said = {(event.instance, event.author): event.label for event in events}
    told = [(key, label) for key, label in said.items() if label is not None][-(MOST_CELLS // size**2) :]
    by_instance: dict[int, list[int]] = {}
    for place, ((instance, _), _) in enumerate(told):
        by_instance.setdefault(instance, []).append(place)
    pairs = [pair for places in by_instance.values() for pair in combinations(places, 2)]
    if not pairs:
        return NOBODY
    contours = decode_contours([label for _, label in told], size)
    (_, instances), (names, who) = (
        np.unique([key[side] for key, _ in told], return_inverse=True) for side in (0, 1)
    )
    found = estimate_crowd(CrowdAnswers.of(instances, who, contours))
    shared = {str(names[i]) for i in np.unique(who[np.unique(np.array(pairs))]).tolist()}
    numbers = {str(name): i for i, name in enumerate(names)}
    reliabilities = {
        name: LabellerReliability(float(found.reliability[i]), float(found.deviation[i]))
        for name, i in numbers.items()
        if name in shared
    }
    return Crowd(numbers, found, reliabilities)
