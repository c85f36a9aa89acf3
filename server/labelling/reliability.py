"""Labellers of a model, held against each other: agreement, and what their answers are worth, estimated from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quercus.belief import agreement
from quercus.belief.codec import decode_contours
from quercus.labelling.crowds import PRIOR_RELIABILITY, CrowdAnswers, CrowdEstimate, estimate_crowd
from quercus.server.core.service_core import ServiceCore
from quercus.server.wire.schema import ModelSchema
from quercus.storage import Event, Reliability, Store

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


async def crowd_of_model(core: ServiceCore, schema: ModelSchema) -> Crowd:
    """Return the labellers of a model, by the newest answers of all: a function of the log, and estimated once."""
    newest = await core.read(_newest_answer, core.store, schema.model)
    return await _get_estimate(core, schema, newest)


async def crowd_where_estimated(core: ServiceCore, schema: ModelSchema) -> Crowd | None:
    """Return the crowd of a model; None if its policy takes reliabilities as declared."""
    newest = await core.read(_newest_answer_that_counts, core.store, schema.model)
    return None if newest is None else await _get_estimate(core, schema, newest)


async def _get_estimate(core: ServiceCore, schema: ModelSchema, newest: int) -> Crowd:
    crowd: Crowd = await core.estimates.get_estimate(
        schema.key, newest, partial(_make_estimate, core.store, schema)
    )
    return crowd


def _newest_answer_that_counts(store: Store, model: str) -> int | None:
    if store.policy(model).reliability is Reliability.DECLARED:
        return None
    return _newest_answer(store, model)


def _newest_answer(store: Store, model: str) -> int:
    """Number of the newest event that the estimate depends on, 0 when there is none."""
    newest = store.opinions(model, 1)
    return newest[-1].sequence if newest else 0


def _make_estimate(store: Store, schema: ModelSchema) -> tuple[int, Crowd]:
    events = store.opinions(schema.model, MAX_LABELS)
    if store.get_model(schema.model).key != schema.key:  # the labels may belong to another model
        return 0, NOBODY
    return events[-1].sequence if events else 0, crowd_of(events, schema.frame.size)


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
