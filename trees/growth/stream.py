"""The service's fold over the log: events in, tree and agenda out.

The result does not depend on how the log was divided into calls: a state holds the evidence, and its tree and agenda
are functions of it. The tree is updated in one sweep (`quercus.trees.growth.incremental`) when it is read; only parts
that may have changed are recomputed.
"""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import numpy as np

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.belief.contour import check_contour, check_contours, is_vacuous
from quercus.belief.errors import InvalidInput
from quercus.belief.evidence import ReportedLabel, combined_contour, known_after
from quercus.belief.rules import check_reliability
from quercus.specification.attributes import Numeric
from quercus.specification.learners import Pruning
from quercus.specification.model import Specification
from quercus.specification.strategies import QueryStrategy
from quercus.trees.ask.agenda import agenda_of
from quercus.trees.ask.query import Query, QueryContext, QueryPosition
from quercus.trees.growth.incremental.growing import TreeRules
from quercus.trees.growth.incremental.live_tree import LiveTree
from quercus.trees.growth.remembering import RowMemory
from quercus.trees.growth.sample import Sample
from quercus.trees.tree.encoding import (
    Codes,
    Edges,
    Encoder,
    Parts,
    attribute_edges,
    branch_names,
    check_uncertain,
    cut_counts,
    declared_count,
    edges_in_force,
    middle_codes,
)
from quercus.trees.tree.flat import FlatTree
from quercus.trees.tree.node import Node


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """New instances: values (n, K) as in `quercus.trees.tree.encoding`, contours (n, l).

    `parts` are ranges that uncertain values may lie in, by row and attribute; `values` has NaN there.
    """

    values: Floats
    contours: Floats
    parts: Parts = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """An oracle answered: `contour` (l,) of instance number `instance`, discounted by `reliability`."""

    instance: int
    contour: Floats
    reliability: float
    asked: QueryPosition


@dataclass(frozen=True, slots=True)
class Refused:
    """An oracle could not tell the class of instance number `instance`."""

    instance: int
    asked: QueryPosition


@dataclass(frozen=True, slots=True, eq=False)
class Corrected:
    """A correction: `contour` (l,) replaces all answers about an instance.

    None retracts all answers: the evidence is the pushed label, and an oracle may be asked again.
    """

    instance: int
    contour: Floats | None
    reliability: float = 1.0


@dataclass(frozen=True, slots=True)
class Respecified:
    """The model's level, budget or stopping rules changed; its attributes and frame may not.

    `attributes`: the number of attributes that rows have from now on, see `GrowthState`; None: unchanged.
    """

    specification: Specification
    attributes: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class LaterAttributes:
    """Attributes that were added together, after the model was created.

    Parameters
    ----------
    row
        Number of rows before they were added.
    first
        Number of the first of them.
    values
        (n, attributes) their values in the rows since then, at most as many rows as set the bins.
    """

    row: int
    first: int
    values: Floats

    def after_rows(self, values: Floats, most: int) -> "LaterAttributes":
        """Return these attributes after further rows (n, K), of which values are kept until there are `most`."""
        mine = values[: most - len(self.values), self.first : self.first + self.values.shape[1]]
        return replace(self, values=np.concatenate([self.values, mine])) if len(mine) else self

    def sets_bins(self, row: int, k: int, most: int) -> bool:
        """Return whether the value of attribute `k` in this row of the log is one of those that set its bins."""
        return self.row <= row < self.row + most and self.first <= k < self.first + self.values.shape[1]

    def setting_rows(self, most: int) -> Floats:
        """Return the rows that set the bins: the first 1, 2, 4, ..., `most`, so that rows are rarely encoded anew."""
        count = len(self.values)
        return self.values[: count if count in {0, most} else 1 << (count.bit_length() - 1)]


Event = Observed | Answered | Refused | Corrected | Respecified


class SpentStateError(RuntimeError):
    """A state was used after another one was grown from it."""


class GrowthState:
    """The evidence of the log so far, and its tree.

    `grow` moves the columns to the state that it returns; the state it was given cannot be used any more.

    Parameters
    ----------
    specification
        The current specification.
    small
        Nodes with fewer rows are grown again rather than updated; the tree does not depend on it. None: a default that
        depends on the attributes.
    attributes
        How many of the attributes the rows have initially, from the first on; None: all. A `Respecified` event adds the
        others: their values are missing in earlier rows, and later rows set their bins.
    """

    def __init__(
        self, specification: Specification, small: int | None = None, attributes: int | None = None
    ) -> None:
        self.specification = specification
        self.answers = 0
        self.asked: QueryPosition | None = None
        self._warmup = np.empty((0, len(specification.attributes)))  # values of the rows that set the bins
        self._later: tuple[LaterAttributes, ...] = ()
        self._attributes = len(specification.attributes) if attributes is None else attributes
        self._warmup_parts: Parts = {}  # uncertain values of these rows
        self._edges = edges_in_force(specification, self._warmup)
        self._pushed: dict[int, int] = {}  # pushed contour of answered rows
        self._small = small
        self._live = self._empty_tree()
        memory = specification.memory_rows
        self._memory = None if memory is None else RowMemory(memory)
        self._remembered: tuple[LiveTree, Ints | None] | None = (
            None  # tree of the remembered rows, and these rows
        )
        self._splits = sum(max(1, cuts) for cuts in cut_counts(specification.attributes))
        self._pruned: tuple[FlatTree, Pruning, FlatTree] | None = (
            None  # the tree, the pruning, and the pruned tree
        )
        self._spent = False

    def _empty_tree(self) -> LiveTree:
        specification = self.specification
        return LiveTree(
            declared_codes(specification),
            specification.frame.size,
            rules_of(specification),
            self._small,
            cuts=cut_counts(specification.attributes),
            edges=self._edges,
        )

    @classmethod
    def initial(cls, specification: Specification, attributes: int | None = None) -> "GrowthState":
        """Return the state of an empty log whose rows have this number of attributes; None: all."""
        return cls(specification, attributes=attributes)

    @property
    def instance_count(self) -> int:
        """Number of instances."""
        return self._live_tree().count

    @property
    def evidence(self) -> Sample:
        """Codes, labels, and which instances may be asked about."""
        return self._live_tree().sample

    @property
    def edges(self) -> Edges:
        """Current inner edges of each attribute, see `quercus.trees.tree.encoding.edges_in_force`."""
        return self._edges

    @property
    def attribute_starts(self) -> Ints:
        """(K,) the number of rows before each attribute was added; for future ones, the number of all rows."""
        starts = np.zeros(len(self.specification.attributes), np.int64)
        starts[self._attributes :] = self.instance_count
        for later in self._later:
            starts[later.first : later.first + later.values.shape[1]] = later.row
        return starts

    @property
    def flat(self) -> FlatTree:
        """The tree as arrays, pruned as specified; with provisional splits where the labels do not decide."""
        whole, pruning = self.unpruned_tree, self.specification.pruning
        if pruning is None:
            return whole
        if self._pruned is None or self._pruned[0] is not whole or self._pruned[1] != pruning:
            self._pruned = whole, pruning, self._grown_tree()[0].pruned_tree(pruning)
        return self._pruned[2]

    @property
    def unpruned_tree(self) -> FlatTree:
        """The unpruned tree as arrays; queries are about its nodes."""
        return self._grown_tree()[0].flat

    @property
    def tree(self) -> Node:
        """The tree as a value."""
        return self.flat.tree()

    def agenda(
        self,
        limit: int,
        closed: Bools | None = None,
        *,
        forest: Any = None,
        strategy: QueryStrategy | None = None,
    ) -> tuple[Query, ...]:
        """Return the next queries, in order, within the rest of the budget.

        Parameters
        ----------
        limit
            Greatest number of queries.
        closed
            (n,) whether a row must not be asked about now; None: no row.
        forest
            The `quercus.trees.memory_forest.forest.MemoryForest` of the same log, if it selects the queries instead of
            the tree.
        strategy
            The strategy; None: that of the specification.
        """
        most = min(limit, self.specification.budget - self.answers)
        if most <= 0:
            return ()
        context = self.context() if closed is None else self.context().without_closed(closed)
        context = replace(context, forest=forest)
        queries = agenda_of(context, self.asked, most, strategy or self.specification.strategy)
        rows = context.instances
        return queries if rows is None else tuple(replace(q, instance=int(rows[q.instance])) for q in queries)

    def context(self) -> QueryContext:
        """Return the context for choosing queries."""
        tree, rows = self._grown_tree()
        in_order = tuple(
            declared_count(attribute) if isinstance(attribute, Numeric) else 0
            for attribute in self.specification.attributes
        )
        return replace(tree.context(in_order), instances=rows)

    def contour(self, instance: int) -> Floats:
        """Return the current contour of an instance, (l,)."""
        live = self._live_tree()
        contour: Floats = live.table.contours[live.contour_id(instance)]
        return contour

    @property
    def encoder(self) -> Encoder:
        """The encoder that turns values into the codes of this tree."""
        return Encoder(self.specification.attributes, self._edges)

    def names(self, learned: Mapping[int, Sequence[str]]) -> tuple[tuple[str, ...], ...]:
        """Return the name of every branch code of every attribute, given the names of learned values."""
        return branch_names(self.specification.attributes, self._edges, learned)

    @property
    def branch_names(self) -> tuple[tuple[str, ...], ...]:
        """Name of every branch code; learned values are numbered, since their names are not known here."""
        known, arities = declared_codes(self.specification), self.evidence.arities
        learned = {k: [f"learned value {i}" for i in range(arities[k] - known[k])] for k in range(len(known))}
        return self.names(learned)

    def _grown_tree(self) -> tuple[LiveTree, Ints | None]:
        """Return the tree of the remembered rows, and these rows (None: all rows)."""
        live = self._live_tree()
        if self._memory is None:
            return live, None
        if self._remembered is None:
            rows = self._memory.remembered_rows()
            if rows.size == live.count:
                self._remembered = live, None
            else:
                live.follow_rules(rules_of(self.specification))  # drops its own tree, which is not read again
                sample, tree = live.sample, self._empty_tree()
                place = {int(row): at for at, row in enumerate(rows)} if live.parts else {}
                parts = {(place[i], k): each for (i, k), each in live.parts.items() if i in place}
                tree.append_rows(sample.codes[rows], sample.table.contours[sample.ids[rows]], parts)
                tree.sample.askable[:] = sample.askable[
                    rows
                ]  # nothing has been grown, so no tree has counted them
                self._remembered = tree, rows
        return self._remembered

    def _live_tree(self) -> LiveTree:
        if self._spent:
            raise SpentStateError("this state was grown from; use the one that `grow` returned")
        return self._live


def grow(state: GrowthState, events: Iterable[Event]) -> GrowthState:
    """Return the state after `events`; `state` itself cannot be used any more.

    Raises
    ------
    InvalidInput
        If an event does not fit the model; then `state` is unchanged.
    SpentStateError
        If another state was already grown from `state`.
    """
    checked = _checked_events(state, events)
    grown = copy.copy(state)
    state._spent = True
    grown._remembered = None
    for kind, run in groupby(checked, type):
        if kind is Observed:  # rows that came one by one are stored together
            _observe_rows(grown, [event for event in run if isinstance(event, Observed)])
            continue
        for event in run:
            match event:
                case Answered():
                    _fold_label(grown, event.instance, ReportedLabel(event.contour, event.reliability))
                    grown.answers += 1
                    grown.asked = event.asked
                case Refused():
                    grown._live.set_label(event.instance, None)
                    grown.asked = event.asked
                case Corrected():
                    _fold_label(
                        grown, event.instance, ReportedLabel(event.contour, event.reliability, replaces=True)
                    )
                case Respecified():
                    grown.specification = event.specification
                    grown._live.follow_rules(rules_of(event.specification))
                    more = (event.attributes or 0) - grown._attributes
                    if more > 0:
                        later = LaterAttributes(grown._live.count, grown._attributes, np.empty((0, more)))
                        grown._later += (later,)
                        grown._attributes += more
    return grown


def _checked_events(state: GrowthState, events: Iterable[Event]) -> list[Event]:
    """Return the events with their arrays checked, before any of them is applied."""
    spec, count = state.specification, state.instance_count
    checked: list[Event] = []
    for event in events:
        match event:
            case Observed():
                values = check_uncertain(spec, event.values, event.parts)
                contours = check_contours(event.contours, spec.frame.size)
                if len(values) != len(contours):
                    raise InvalidInput(
                        "contours", f"are {len(contours)}, must be one for each of {len(values)} rows"
                    )
                count += len(values)
                checked.append(Observed(values, contours, event.parts))
            case Respecified():
                for name in ("attributes", "frame", "warmup_rows", "memory_rows"):
                    if getattr(spec, name) != getattr(event.specification, name):
                        raise InvalidInput(name, "cannot change once the model exists")
                if event.attributes is not None and event.attributes > len(spec.attributes):
                    raise InvalidInput(
                        "attributes", f"are {event.attributes}, there are {len(spec.attributes)}"
                    )
                checked.append(event)
            case _:
                if not 0 <= event.instance < count:
                    raise InvalidInput("instance", f"is {event.instance}, there are {count} instances")
                if isinstance(event, Answered | Refused):
                    for split in (*event.asked.rivals, *(split for split, _ in event.asked.path)):
                        if not 0 <= split < state._splits:
                            raise InvalidInput("asked", f"names attribute {split}, there are {state._splits}")
                if not isinstance(event, Refused) and event.contour is not None:
                    check_contour(event.contour, spec.frame.size, "answer")
                    check_reliability(event.reliability)
                checked.append(event)
    return checked


def _observe_rows(state: GrowthState, events: list[Observed]) -> None:
    values = np.concatenate([event.values for event in events])
    starts = np.cumsum([0, *(len(event.values) for event in events)]).tolist()
    parts = {
        (start + row, k): ranges
        for start, event in zip(starts, events, strict=False)
        for (row, k), ranges in event.parts.items()
    }
    spec, live = state.specification, state._live
    first = live.count < spec.warmup_rows
    if first or any(
        len(each.values) < spec.warmup_rows for each in state._later
    ):  # the bins may still change
        if first:
            state._warmup = np.concatenate([state._warmup, values[: spec.warmup_rows]])
            state._warmup = state._warmup[: spec.warmup_rows].copy()
        state._later = tuple(each.after_rows(values, spec.warmup_rows) for each in state._later)
        edges = edges_of(state)
        if edges != state._edges:
            state._edges = edges
            codes, code_parts = _codes_again(state)
            live.recode_rows(codes, edges, code_parts)
        if parts:
            state._warmup_parts = {**state._warmup_parts} | {
                (live.count + row, k): each
                for (row, k), each in parts.items()
                if live.count + row < spec.warmup_rows
                or any(later.sets_bins(live.count + row, k, spec.warmup_rows) for later in state._later)
            }
    contours = np.concatenate([event.contours for event in events])
    codes, code_parts = _coded(state.encoder, values, parts)
    live.append_rows(codes, contours, code_parts)
    if state._memory is not None:
        state._memory.append(~is_vacuous(contours))


def edges_of(state: GrowthState) -> Edges:
    """Return the inner edges of each attribute, from the rows that set them so far."""
    spec = state.specification
    edges = list(edges_in_force(spec, state._warmup))
    for later in state._later:
        for k, column in enumerate(later.setting_rows(spec.warmup_rows).T, later.first):
            edges[k] = attribute_edges(spec.attributes[k], column)
    return tuple(edges)


def _codes_again(state: GrowthState) -> tuple[Codes, Parts]:
    """Return the codes (n, K) of all rows by the current edges, and the codes that uncertain values allow.

    Codes of attributes with final edges are kept.
    """
    spec, live, edges = state.specification, state._live, state._edges
    if live.count <= len(state._warmup):
        return _coded(state.encoder, state._warmup[: live.count], state._warmup_parts)
    codes, parts = np.array(live.sample.codes, np.int16, order="F"), dict(live.parts)
    for later in state._later:
        known = later.values[: live.count - later.row]
        if later.row + len(known) == live.count:
            mine = slice(later.first, later.first + known.shape[1])
            codes[later.row :, mine] = Encoder(spec.attributes[mine], edges[mine]).codes(known)
            uncertain = {
                (row, k): ranges
                for (row, k), ranges in state._warmup_parts.items()
                if later.sets_bins(row, k, spec.warmup_rows)
            }
            found = state.encoder.code_parts(uncertain)
            parts |= found
            for (row, k), code in middle_codes(found).items():
                codes[row, k] = code
    return codes, parts


def _coded(encoder: Encoder, values: Floats, parts: Parts) -> tuple[Codes, Parts]:
    """Return the codes of values (n, K), the middle code for uncertain ones, and the codes that the latter allow."""
    codes, found = encoder.codes(values), encoder.code_parts(parts)
    for (row, k), code in middle_codes(found).items():
        codes[row, k] = code
    return codes, found


def _fold_label(state: GrowthState, instance: int, reported: ReportedLabel[Floats]) -> None:
    """Fold a label event; if it retracts the answers, the instance may be asked about again."""
    live = state._live
    known = live.contour_id(instance)
    pushed = state._pushed.setdefault(instance, known)
    contours = live.table.contours
    contour = known_after(contours[pushed], contours[known], reported, combined_contour)
    live.set_label(instance, contour, askable=reported.label is None)
    if state._memory is not None:
        state._memory.set_labelled(instance, labelled=not is_vacuous(contour))


def rules_of(specification: Specification) -> TreeRules:
    """Return the growth rules of a model's tree."""
    frugal = specification.alpha < 1  # at level 1 the exact interval is as cheap as its bounds
    return TreeRules(
        specification.alpha,
        specification.min_instances,
        specification.max_depth,
        frugal,
        specification.prediction_level,
        specification.split_significance,
    )


def declared_codes(specification: Specification) -> tuple[int, ...]:
    """Return the number of codes of each attribute before any value is learned."""
    return tuple(
        declared_count(attribute) + (attribute.missing == "branch") for attribute in specification.attributes
    )
