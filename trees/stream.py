"""The service's fold: the log goes in event by event, tree and agenda come out.

How the log was cut into calls cannot matter: a state holds the evidence, and tree and agenda are
functions of all of it, computed when first looked at. The evidence keeps small integers a row: branch
codes and the numbers of interned contours.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from quercus.belief.contour import check_contours
from quercus.belief.errors import InvalidInput
from quercus.trees.abc45 import open_desk, with_answer
from quercus.trees.encoding import (
    Edges,
    Encoder,
    branch_names,
    check_values,
    declared_count,
    edges_in_force,
)
from quercus.trees.query import Asked, Desk, Query, agenda
from quercus.trees.sample import ContourTable, Sample
from quercus.trees.specification import Attribute, Specification
from quercus.trees.tree import Node

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """Instances arrived: values (n, K) as of `quercus.trees.encoding`, contours (n, l)."""

    values: Floats
    contours: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """An oracle answered: `contour` (l,) of instance number `instance`, right with chance `reliability`."""

    instance: int
    contour: Floats
    reliability: float
    asked: Asked


@dataclass(frozen=True, slots=True)
class Refused:
    """An oracle could not tell."""

    instance: int
    asked: Asked


@dataclass(frozen=True, slots=True)
class Respecified:
    """The model's level, budget or stopping rules changed; its attributes and frame may not."""

    specification: Specification


Event = Observed | Answered | Refused | Respecified


@dataclass(frozen=True, eq=False)
class GrowthState:
    """All that the log says so far.

    Parameters
    ----------
    specification
        In force now.
    values
        (n, K) the instances.
    evidence
        Codes, labels, and which instances were answered or refused.
    edges
        Inner edges in force of each attribute, see `quercus.trees.encoding.edges_in_force`.
    answers
        Number of queries answered.
    asked
        Where the last answered or refused query stood.
    """

    specification: Specification
    values: Floats
    evidence: Sample
    edges: Edges
    answers: int = 0
    asked: Asked | None = None

    @classmethod
    def initial(cls, specification: Specification) -> "GrowthState":
        """Return the state of an empty log."""
        values = np.empty((0, len(specification.attributes)))
        evidence = Sample(
            codes=np.empty(values.shape, dtype=np.int16, order="F"),
            arities=(1,) * values.shape[1],
            ids=np.empty(0, dtype=np.int32),
            askable=np.empty(0, dtype=bool),
            table=ContourTable(specification.frame.size),
        )
        return cls(specification, values, evidence, edges_in_force(specification, values))

    @property
    def instance_count(self) -> int:
        """Number of instances."""
        return len(self.values)

    @cached_property
    def _desk(self) -> Desk:
        spec = self.specification
        return open_desk(self.evidence, spec.alpha, spec.min_instances, spec.max_depth)

    @cached_property
    def tree(self) -> Node:
        """The tree, whole; provisional splits stand where the labels do not decide."""
        return self._desk.growth.tree()

    def agenda(self, limit: int) -> tuple[Query, ...]:
        """Return up to `limit` queries, in order; never more than the budget has left."""
        left = self.specification.budget - self.answers
        return agenda(self._desk, self.asked, max(0, min(limit, left)))

    def contour(self, instance: int) -> Floats:
        """Return what is believed of an instance's class now: (l,)."""
        contour: Floats = self.evidence.table.contours[self.evidence.ids[instance]]
        return contour

    @property
    def encoder(self) -> Encoder:
        """What turns values into the codes of this tree."""
        return Encoder(self.specification.attributes, self.edges)

    def names(self, learned: Mapping[int, Sequence[str]]) -> tuple[tuple[str, ...], ...]:
        """Return the name of every branch code of every attribute, given the names of learned values."""
        return branch_names(self.specification.attributes, self.edges, learned)

    @property
    def branch_names(self) -> tuple[tuple[str, ...], ...]:
        """Name of every branch code; learned values are numbered, for their names are not known here."""
        learned = {}
        for k, attribute in enumerate(self.specification.attributes):
            known = declared_count(attribute) + (attribute.missing == "branch")
            learned[k] = [f"learned value {i}" for i in range(self.evidence.arities[k] - known)]
        return self.names(learned)


def grow(state: GrowthState, events: Iterable[Event]) -> GrowthState:
    """Return the state after `events`.

    Raises
    ------
    InvalidInput
        When an event does not fit the model.
    """
    for kind, run in groupby(events, type):
        if kind is Observed:  # rows that came one by one are stored in one piece
            state = _observe(state, [event for event in run if isinstance(event, Observed)])
            continue
        for event in run:
            match event:
                case Answered():
                    state = _settle(state, event, event.contour, event.reliability)
                case Refused():
                    state = _settle(state, event, None, 1.0)
                case Respecified():
                    state = _respecify(state, event.specification)
                case Observed():
                    raise AssertionError("taken above")
    return state


def _observe(state: GrowthState, events: list[Observed]) -> GrowthState:
    spec, old = state.specification, state.evidence
    batches = [_check(spec, event) for event in events]
    fresh = np.concatenate([values for values, _ in batches])
    labels = np.concatenate([contours for _, contours in batches])
    values = np.concatenate([state.values, fresh])
    edges, kept = state.edges, old.codes
    if len(state.values) < spec.warmup_rows:  # the bins may still move
        edges, kept, fresh = edges_in_force(spec, values), old.codes[:0], values
    codes = np.asfortranarray(np.concatenate([kept, Encoder(spec.attributes, edges).codes(fresh)]))
    evidence = Sample(
        codes=codes,
        arities=_arities(spec.attributes, codes),
        ids=np.concatenate([old.ids, old.table.intern(labels)]),
        askable=np.concatenate([old.askable, np.ones(len(labels), dtype=bool)]),
        table=old.table,
    )
    return replace(state, values=values, evidence=evidence, edges=edges)


def _check(spec: Specification, event: Observed) -> tuple[Floats, Floats]:
    values = check_values(spec, event.values)
    contours = check_contours(event.contours, spec.frame.size)
    if len(values) != len(contours):
        raise InvalidInput("contours", f"are {len(contours)}, must be one for each of {len(values)} rows")
    return values, contours


def _arities(attributes: tuple[Attribute, ...], codes: NDArray[np.int16]) -> tuple[int, ...]:
    seen = codes.max(axis=0, initial=0) + 1
    declared = [declared_count(attribute) + (attribute.missing == "branch") for attribute in attributes]
    return tuple(max(a, int(b)) for a, b in zip(declared, seen, strict=True))


def _settle(
    state: GrowthState, event: Answered | Refused, contour: Floats | None, reliability: float
) -> GrowthState:
    if not 0 <= event.instance < state.instance_count:
        raise InvalidInput("instance", f"is {event.instance}, there are {state.instance_count} instances")
    evidence = with_answer(state.evidence, event.instance, contour, reliability)
    answers = state.answers + (contour is not None)
    return replace(state, evidence=evidence, answers=answers, asked=event.asked)


def _respecify(state: GrowthState, specification: Specification) -> GrowthState:
    before = state.specification
    fixed = ("attributes", "frame", "warmup_rows")
    for name in fixed:
        if getattr(before, name) != getattr(specification, name):
            raise InvalidInput(name, "cannot change once the model exists")
    return replace(state, specification=specification)
