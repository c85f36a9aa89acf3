"""Random logs for a model: rows to push, and answers, refusals and corrections of every kind.

All is drawn from numbers given, so that a log shrinks well: what row i holds does not depend on what happens to it.
"""

from dataclasses import dataclass, replace

import numpy as np

from quercus.belief.frame import Frame
from quercus.specification.attributes import Attribute, Nominal, Numeric
from quercus.specification.model import Specification
from quercus.trees.ask.query import Query, QueryPosition
from quercus.trees.growth.stream import Answered, Corrected, Event, Observed, Refused, Respecified
from quercus.trees.tree.encoding import cut_counts
from quercus.trees.tree.splits import Splits
from support.batch import Evidence
from support.published import published_tree

ROWS = 60
ALPHAS = (0.0, 0.3, 0.8, 0.99, 1.0)
Floats = np.ndarray


@dataclass(frozen=True, eq=False)
class World:
    """A model, and the rows that arrive one day: values (n, K), contours (n, l), what is true (n,)."""

    specification: Specification
    values: Floats
    contours: Floats
    truth: np.ndarray

    def pushed(self, start: int, count: int) -> Observed:
        rows = slice(start, start + count)
        return Observed(self.values[rows].copy(), self.contours[rows].copy())


def world(classes: int, arities: list[int], alpha: float, seed: int, *, cut: bool = False) -> World:
    """Rows whose values often, and labels mostly, determine the class; with `cut`, most attributes split at cuts."""
    rng = np.random.default_rng([seed, classes, len(arities)])
    truth = rng.integers(0, classes, ROWS)
    kinds = rng.dirichlet(np.full(5, rng.choice([0.3, 1.0])))
    attributes, columns = zip(
        *(
            (_cut if cut and rng.random() < 0.7 else _attribute)(rng, k, a, truth)
            for k, a in enumerate(arities)
        ),
        strict=True,
    )
    if rng.random() < 0.1:  # every class is equally frequent at both values: no gain
        truth, kinds = np.arange(ROWS) // 2 % classes, np.eye(5)[0]
        attributes = tuple(Nominal(f"a{k}") for k in range(len(arities)))
        columns = tuple(np.arange(ROWS) % 2.0 for _ in arities)
    return World(
        published_tree(
            attributes,
            Frame(tuple(f"c{j}" for j in range(classes))),
            alpha=alpha,
            budget=int(rng.choice([0, 5, 100, 100])),
            min_instances=int(rng.choice([1, 2, 2, 4])),
            max_depth=None if rng.random() < 0.8 else int(rng.integers(0, 4)),
            warmup_rows=int(rng.choice([1, 5, 20, 100])),
            strategy="published",
            split_significance=float(np.random.default_rng([seed, 12]).choice([0.0, 0.0, 0.5, 10.0])),
        ),
        np.column_stack(columns),
        np.array([label(rng, classes, klass, kinds) for klass in truth]),
        truth,
    )


def _attribute(rng: np.random.Generator, k: int, arity: int, truth: np.ndarray) -> tuple[Attribute, Floats]:
    missing = "branch" if rng.random() < 0.5 else "reject"
    told = rng.random(ROWS) < rng.choice([0.1, 0.6, 0.9, 1.0])  # the rows whose value determines the class
    column = np.where(told, truth % arity, rng.integers(0, arity, ROWS)).astype(float)
    attribute: Attribute
    if arity > 1 and rng.random() < 0.4:
        edges = tuple(np.arange(1, arity) - 0.5) if rng.random() < 0.3 else ()
        attribute = Numeric(f"a{k}", arity, edges, missing)
        column += rng.uniform(-0.4, 0.4, ROWS)
    else:  # values not declared are learned, and the last of all comes late
        declared = int(rng.integers(0, arity + 1))
        attribute = Nominal(f"a{k}", tuple(f"v{i}" for i in range(declared)), missing)
        early = np.arange(ROWS) < rng.integers(0, ROWS)
        column[early & (column == arity - 1)] = 0.0
    if missing == "branch":
        column[rng.random(ROWS) < rng.choice([0.0, 0.2])] = np.nan
    return attribute, column


def _cut(rng: np.random.Generator, k: int, arity: int, truth: np.ndarray) -> tuple[Attribute, Floats]:
    """An attribute that is split at cuts: many values or few, the warm-up sees them all or not, some are missing."""
    missing = "branch" if rng.random() < 0.5 else "reject"
    told = rng.random(ROWS) < rng.choice([0.1, 0.6, 0.9, 1.0])
    column = np.where(told, truth + rng.choice([0.0, 0.4]), rng.integers(0, arity + 1, ROWS)).astype(float)
    if rng.random() < 0.6:
        column += rng.normal(0, 0.3, ROWS)
    if missing == "branch":
        column[rng.random(ROWS) < rng.choice([0.0, 0.2, 0.9])] = np.nan
    edges = tuple(np.arange(1, arity + 1) - 0.5) if rng.random() < 0.3 else ()
    cuts = len(edges) if edges else int(rng.choice([1, 2, 5, 12]))
    return Numeric(f"a{k}", edges=edges, missing=missing, cuts=cuts), column


def label(rng: np.random.Generator, classes: int, klass: int, kinds: Floats) -> Floats:
    """A contour: precise, a set, vacuous, plausibilities, or plausibilities that do not reach 1."""
    match int(rng.choice(5, p=kinds)):
        case 0:
            return np.eye(classes)[klass]
        case 1:
            chosen = (rng.random(classes) < 0.5).astype(float)
            chosen[klass] = 1.0
            return chosen
        case 2:
            return np.full(classes, rng.choice([1.0, 1.0, 0.4]))
        case 3:
            return _plausible(rng, classes, klass)
        case _:
            return _plausible(rng, classes, klass) * rng.choice([0.5, 0.9, 1e-3])


def _plausible(rng: np.random.Generator, classes: int, klass: int) -> Floats:
    values = (
        rng.choice([0.0, 0.1, 0.3, 0.5, 0.7, 1.0], classes) if rng.random() < 0.6 else rng.random(classes)
    )
    values[klass] = 1.0
    return values


def answer(rng: np.random.Generator, classes: int, klass: int) -> tuple[Floats, float]:
    """Return the label of an oracle, wrong in one case of ten, and its reliability."""
    klass = int(rng.integers(0, classes)) if rng.random() < 0.1 else klass
    return label(rng, classes, klass, np.array([0.5, 0.2, 0.1, 0.1, 0.1])), float(
        rng.choice([1.0, 1.0, 0.9, 0.5, 0.0])
    )


def correction(rng: np.random.Generator, instance: int, classes: int, klass: int) -> Corrected:
    """Return a correction by an oracle, which replaces all labels so far, or takes them back."""
    if rng.random() < 0.4:
        return Corrected(instance, None, 1.0)
    return Corrected(instance, *answer(rng, classes, klass))


def elsewhere(rng: np.random.Generator, arities: list[int]) -> QueryPosition:
    """Return a position in a round that may or may not be in the tree: answers may come in any order."""
    order = rng.permutation(len(arities)).tolist()
    depth = int(rng.integers(0, min(3, len(order))))
    path = tuple((k, int(rng.integers(0, arities[k]))) for k in order[:depth])
    rivals = tuple(sorted(order[depth:][: int(rng.integers(1, 4))]))
    attribute = int(rng.choice(rivals))
    return QueryPosition(path, attribute, int(rng.integers(0, arities[attribute])), rivals)


@dataclass(frozen=True, eq=False)
class Writer:
    """Writes the next event of a log, given the evidence so far and, where one was asked, a query."""

    world: World
    evidence: Evidence
    rng: np.random.Generator

    @property
    def _arities(self) -> list[int]:
        return [5] * Splits((1,) * len(self._cuts), self._cuts).split_count

    @property
    def _cuts(self) -> tuple[int, ...]:
        return cut_counts(self.world.specification.attributes)

    def _instance(self) -> int:
        return int(self.rng.integers(0, self.evidence.size))

    def observed(self) -> Observed:
        return self.world.pushed(self.evidence.size, int(self.rng.choice([0, 1, 1, 2, 5, 13, 40])))

    def answered(self, query: Query | None) -> Event:
        instance = self._instance() if query is None else query.instance
        asked = elsewhere(self.rng, self._arities) if query is None else query.asked
        if self.rng.random() < 0.3:
            return Refused(instance, asked)
        return Answered(instance, *self._said(instance), asked)

    def corrected(self) -> Event:
        answered = sorted(self.evidence.closed)
        usual = answered and self.rng.random() < 0.8
        instance = int(self.rng.choice(answered)) if usual else self._instance()
        size = self.world.specification.frame.size
        return correction(self.rng, instance, size, int(self.world.truth[instance]))

    def _said(self, instance: int) -> tuple[Floats, float]:
        return answer(self.rng, self.world.specification.frame.size, int(self.world.truth[instance]))

    def respecified(self) -> Event:
        changes = {
            "alpha": float(self.rng.choice(ALPHAS)),
            "min_instances": int(self.rng.choice([1, 2, 3, 8])),
            "max_depth": None if self.rng.random() < 0.7 else int(self.rng.integers(0, 4)),
            "budget": int(self.rng.integers(0, 60)),
            "split_significance": float(self.rng.choice([0.0, 2.0])),
        }
        name = str(self.rng.choice(list(changes)))
        return Respecified(replace(self.evidence.specification, **{name: changes[name]}))

    def unfit(self) -> Event:
        """An event that does not fit the model, in one of all the ways there are."""
        spec, n = self.evidence.specification, self.evidence.size
        size, width = spec.frame.size, len(spec.attributes)
        where = elsewhere(self.rng, self._arities)
        row, contour = self.world.values[:1], np.ones((1, size))
        fine = np.ones(size)
        wrong = np.where(np.arange(size) == 0, 1.5, 1.0)
        events: list[Event] = [
            Observed(np.zeros((2, width + 1)), np.ones((2, size))),
            Observed(np.concatenate([row, row]), np.concatenate([contour, 0 * contour])),
            Observed(np.concatenate([row, row]), contour),
            Observed(row, np.ones((1, size + 1))),
            Observed(np.full((1, width), np.inf), contour),
            Answered(n, fine, 1.0, where),
            Refused(-1, where),
            Corrected(n, None, 1.0),
            Answered(0, wrong, 1.0, where),
            Answered(0, fine, 1.5, where),
            Corrected(0, wrong, 1.0),
            Corrected(0, fine, float("nan")),
            Respecified(replace(spec, frame=Frame(tuple(f"other{j}" for j in range(size))))),
            Respecified(replace(spec, warmup_rows=spec.warmup_rows + 1)),
            Respecified(replace(spec, attributes=(*spec.attributes, Nominal("one more")))),
        ]
        if n == 0:
            events = [event for event in events if getattr(event, "instance", 1) != 0]
        return events[int(self.rng.integers(0, len(events)))]
