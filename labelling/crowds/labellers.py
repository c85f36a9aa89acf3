"""Labellers of a model, held against each other: agreement, and what their answers are worth, estimated from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quercus.belief import agreement
from quercus.belief.codec import decode_contours
from quercus.labelling.crowds.answers import CrowdAnswers
from quercus.labelling.crowds.coin import PRIOR_RELIABILITY
from quercus.labelling.crowds.confusion import CrowdEstimate, estimate_crowd
from quercus.labelling.event import Event

MAX_LABELS: Final = 2000
"""Answers that reliability is estimated from: the newest, so that a labeller may get better."""

MOST_CELLS: Final = 1 << 21
"""Most cells of all confusion matrices together; where classes are many, fewer of the newest answers count."""

UNKNOWN: Final = PRIOR_RELIABILITY
"""Reliability of an unknown labeller."""


@dataclass(frozen=True)
class LabellerAgreement:
    """The estimated reliability of a labeller, and the agreement with the others.

    Attributes
    ----------
    reliability, reliability_deviation : estimated chance that an answer is right, and its standard deviation.
    agreement, agreement_deviation : mean chance that this labeller and another bet on the same class, over all shared
        instances, and the standard deviation of its estimate.
    """

    reliability: float
    reliability_deviation: float
    agreement: float
    agreement_deviation: float


@dataclass(frozen=True, eq=False)
class Crowd:
    """The labellers of a model, estimated from their labels.

    Attributes
    ----------
    numbers : numbers of the labellers in `estimate`, by name.
    agreements : agreements of labellers who share an instance with another one, by name.
    """

    numbers: Mapping[str, int]
    estimate: CrowdEstimate | None
    agreements: Mapping[str, LabellerAgreement]

    def reliability_of(self, labeller: str) -> float:
        """Return the reliability of a labeller, `UNKNOWN` for one who shares no instance with another."""
        found = self.agreements.get(labeller)
        return UNKNOWN if found is None else found.reliability

    def answer_evidence(self, labeller: str, contour: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return the contour that an answer gives evidence for (theory §13.4); None if the labeller is not known."""
        if self.estimate is None or labeller not in self.agreements:
            return None
        return self.estimate.answer_evidence(self.numbers[labeller], contour)


NOBODY: Final = Crowd({}, None, {})


def crowd_of(events: Sequence[Event], size: int) -> Crowd:
    """Return the estimates of the labellers.

    Parameters
    ----------
    events : opinions and statements, oldest first; a labeller's latest label of an instance counts.
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
    same, shared = _agreement_of(np.array(pairs), who, contours, len(names))
    numbers = {str(name): i for i, name in enumerate(names)}
    agreements = {
        name: LabellerAgreement(
            float(found.reliability[i]),
            float(found.deviation[i]),
            float(same[i]),
            _share_deviation(float(same[i]), int(shared[i])),
        )
        for name, i in numbers.items()
        if shared[i]
    }
    return Crowd(numbers, found, agreements)


def _agreement_of(
    pairs: NDArray[np.int64], who: NDArray[np.int64], contours: NDArray[np.float64], count: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the mean agreement of each labeller with others, and the number of answers that others share."""
    chance = agreement.same_class(contours[pairs[:, 0]], contours[pairs[:, 1]])
    sides, both = who[pairs].ravel(), np.repeat(chance, 2)
    times = np.bincount(sides, minlength=count)
    shared = np.bincount(who[np.unique(pairs)], minlength=count)
    return np.bincount(sides, weights=both, minlength=count) / np.maximum(times, 1), shared


def _share_deviation(share: float, count: int) -> float:
    """Return the standard deviation of a share of `count` cases, by its Beta distribution from a uniform prior."""
    mean = (share * count + 1.0) / (count + 2.0)
    return float(np.sqrt(mean * (1.0 - mean) / (count + 3.0)))
