"""The predictions of belief-entropy trees (theory §6)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import product
from typing import Literal

import numpy as np

from quercus.belief.arrays import Floats, Ints
from quercus.belief.errors import InvalidInput
from quercus.belief.mass import MassFunction
from quercus.belief.rules import disjunctive
from quercus.specification.attributes import Attribute
from quercus.trees.learners.cells import Range, UncertainValues
from quercus.trees.learners.components import Component, Frequencies, branch_of
from quercus.trees.learners.nested import (
    ConsonantMasses,
    log_commonalities,
    log_commonalities_of,
    mass_function,
    normalised_masses,
)
from quercus.trees.learners.predicting import (
    LearnedModel,
    disjunction_of_ends,
    last_common_node,
    to_mass_function,
)
from quercus.trees.learners.predictions import Predictions, first_most_likely
from quercus.trees.tree.flat import FlatTree

Rule = Literal["OBE", "LBE", "IBE"]
MAX_ALTERNATIVES = 4_096
"""Maximum number of combinations of a row's uncertain values."""
CHUNK = 65_536
"""Number of combinations of several rows that are processed together."""


@dataclass(frozen=True, eq=False)
class Alternatives:
    """Combinations of values that rows may have, as ranges.

    Parameters
    ----------
    owner
        (m,) row of each combination, ascending; every row has at least one.
    low, high
        (m, K) ends of the ranges, equal for a number, NaN where unknown.
    """

    owner: Ints
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class BeliefEntropyModel(LearnedModel):
    """A belief-entropy tree, ready to predict.

    All combinations of an uncertain row's possible values in the tested attributes are tried. Their masses are combined
    by the disjunctive rule, since one of them is right. OBE, which has no masses, averages. A `Between` is one
    observation, whose density under a class is the probability of the range. An unknown value does not distinguish
    classes, and takes the branch of the most frequent one.

    Parameters
    ----------
    attributes
        Declarations of the columns.
    size
        Number of classes.
    kind
        The leaf rule.
    flat
        The tree, whose branch codes are classes.
    components
        (nodes,) fitted split of each inner node, None at leaves.
    commonalities
        (nodes, 2^l) log commonalities of the nodes' masses, more accurate than the masses; empty for OBE and IBE, and
        if the tree is not in a forest that combines masses.
    """

    attributes: tuple[Attribute, ...]
    size: int
    kind: Rule
    flat: FlatTree
    components: tuple[Component | None, ...]
    commonalities: Floats

    @property
    def branches_are_classes(self) -> bool:
        """True: a row goes to the class of highest density."""
        return True

    @property
    def flat_trees(self) -> tuple[FlatTree, ...]:
        """The tree as arrays."""
        return (self.flat,)

    def predict_cells(self, cells: UncertainValues) -> Predictions:
        """Return the tree's predictions for rows of cells.

        Raises
        ------
        InvalidInput
            When a row has more than 4,096 combinations of values.
        """
        return _join_parts([self._predict_part(part) for part in self._alternative_chunks(cells)])

    def log_commonalities(self, cells: UncertainValues) -> Floats:
        """Return the log commonality of every set, (n, 2^l), of each row's mass; at most 16 classes."""
        return np.concatenate([self._log_commonalities(part) for part in self._alternative_chunks(cells)])

    def _predict_part(self, part: Alternatives) -> Predictions:
        nodes = self._end_nodes(part)
        count, plain = _combination_count(part)
        flat = self.flat
        if self.kind == "IBE":
            masses, conflict = normalised_masses(self._log_commonalities(part))
            predicted = Predictions.of_dense(masses, conflict)
        elif plain and flat.has_masses:
            predicted = Predictions.of_masses(self.size, flat.masses, nodes)
        elif flat.has_masses:
            predicted = Predictions.of_masses(
                self.size, *disjunction_of_ends(flat.masses, part.owner, nodes, count)
            )
        else:
            combinations = np.bincount(part.owner, minlength=count)[:, np.newaxis]
            theta, belief, plausibility = (
                np.stack([np.bincount(part.owner, values, count) for values in column[nodes].T], axis=1)
                / combinations
                for column in (flat.theta, flat.belief, flat.plausibility)
            )
            predicted = Predictions(
                first_most_likely(plausibility), theta, belief, plausibility, ranking=plausibility
            )
        ends = nodes if plain else last_common_node(flat, part.owner, nodes, count)
        return predicted.ending_at(ends)

    def _log_commonalities(self, part: Alternatives) -> Floats:
        count, plain = _combination_count(part)
        if self.kind != "IBE":
            nodes = self._end_nodes(part)
            if plain and len(self.commonalities):
                return self.commonalities[nodes]
            masses = self.flat.masses or to_mass_function(self.flat)
            distinct, index = disjunction_of_ends(masses, part.owner, nodes, count)
            of_each = np.array([log_commonalities_of(mass) for mass in distinct])
            logs = of_each.reshape(-1, 1 << self.size)[index]
            if len(self.commonalities):
                # a row that ends in one node gets bit-identical results with and without uncertain rows in the batch
                starts = np.searchsorted(part.owner, np.arange(count))
                first, last = np.minimum.reduceat(nodes, starts), np.maximum.reduceat(nodes, starts)
                sole = np.flatnonzero(first == last)
                logs[sole] = self.commonalities[first[sole]]
            return logs
        found = np.empty((len(part.owner), 1 << self.size))
        tested: list[tuple[int, ...]] = [()] * len(part.owner)
        for node, rows, passed in self._walk_to_ends(part):
            if passed:
                found[rows] = sum((log_commonalities(step) for step in passed), np.zeros(1))
            else:
                found[rows] = log_commonalities_of(to_mass_function(self.flat)[node])
            if not plain:
                own = int(self.flat.attribute[node])
                on_the_way = (*(k for k, _ in self.flat.path(node)), *((own,) if own >= 0 else ()))
                for row in rows.tolist():
                    tested[row] = on_the_way
        return found if plain else self._disjoined_masses(part, found, tested, count)

    def _disjoined_masses(
        self, part: Alternatives, logs: Floats, tested: list[tuple[int, ...]], count: int
    ) -> Floats:
        """Return the disjunction of the masses of each row's combinations.

        Since the rule is not idempotent, combinations that differ only in untested attributes count once.
        """
        bounds = np.searchsorted(part.owner, np.arange(count + 1))
        found = np.empty((count, logs.shape[1]))
        for row in range(count):
            different: dict[tuple[bytes, bytes], int] = {}
            for at in range(bounds[row], bounds[row + 1]):
                seen = list(tested[at])
                different.setdefault((bytes(str(seen), "ascii"), part.low[at, seen].tobytes()), at)
            some = list(different.values())
            if len(some) == 1:
                found[row] = logs[some[0]]
                continue
            masses = [mass_function(mass) for mass in normalised_masses(logs[some])[0]]
            found[row] = log_commonalities_of(reduce(disjunctive, masses))
        return found

    def _end_nodes(self, part: Alternatives) -> Ints:
        nodes = np.empty(len(part.owner), dtype=np.int64)
        for node, rows, _ in self._walk_to_ends(part):
            nodes[rows] = node
        return nodes

    def _walk_to_ends(self, part: Alternatives) -> Iterator[tuple[int, Ints, tuple[Floats, ...]]]:
        """Yield the nodes where rows end, the rows, and their log contours at the splits passed.

        A row whose branch has no training rows stays at the node above.
        """
        start, below = self.flat.children
        pending: list[tuple[int, Ints, tuple[Floats, ...]]] = [(0, np.arange(len(part.owner)), ())]
        while pending:
            node, rows, passed = pending.pop()
            component, k = self.components[node], int(self.flat.attribute[node])
            if component is None:
                yield node, rows, passed
                continue
            low, high = part.low[rows, k], part.high[rows, k]
            logs = component.log_densities(low, high)
            codes = branch_of(component, low, logs)
            if self.kind == "IBE":
                passed = (*passed, ConsonantMasses.of(logs).log_contours())
            stay = np.ones(len(rows), dtype=bool)
            for child in below[start[node] : start[node + 1]].tolist():
                here = codes == self.flat.branch[child]
                stay &= ~here
                if here.any():
                    pending.append((child, rows[here], tuple(p[here] for p in passed)))
            if stay.any():
                yield node, rows[stay], tuple(p[stay] for p in passed)

    def _alternative_chunks(self, cells: UncertainValues) -> Iterator[Alternatives]:
        if not cells.parts:
            for part in cells.chunks(CHUNK):
                values = self._known_values(part.values)
                yield Alternatives(np.arange(len(part)), values, values)
            return
        tested = set(self.flat.attribute.tolist())
        choices: dict[int, dict[int, tuple[Range, ...]]] = {}
        for (row, k), ranges in cells.parts.items():
            choices.setdefault(row, {})[k] = ranges if k in tested else ranges[:1]
        rows: list[int] = []
        size = 0
        for row in range(len(cells)):
            ways = math.prod(len(ranges) for ranges in choices.get(row, {}).values())
            if ways > MAX_ALTERNATIVES:
                raise InvalidInput(
                    f"rows[{row}]",
                    f"has {ways} combinations of values, at most {MAX_ALTERNATIVES} are allowed",
                )
            if size + ways > CHUNK:
                yield self._make_alternatives(cells, rows, choices)
                rows, size = [], 0
            rows.append(row)
            size += ways
        yield self._make_alternatives(cells, rows, choices)

    def _known_values(self, values: Floats) -> Floats:
        """Return values with NaN for nominal values not known in training, which carry no information."""
        known: Floats = np.where(values >= self._known_counts, np.nan, values)
        return known

    @cached_property
    def _known_counts(self) -> Floats:
        """(K,) number of values that were known in training of a nominal attribute that is tested, else NaN."""
        limits = np.full(len(self.attributes), np.nan)
        for k, component in zip(self.flat.attribute.tolist(), self.components, strict=True):
            if isinstance(component, Frequencies):
                limits[k] = component.log_table.shape[1]
        return limits

    def _make_alternatives(
        self, cells: UncertainValues, rows: list[int], choices: dict[int, dict[int, tuple[Range, ...]]]
    ) -> Alternatives:
        owner: list[int] = []
        combinations: list[tuple[tuple[int, ...], tuple[Range, ...]]] = []
        for at, row in enumerate(rows):
            uncertain = choices.get(row, {})
            for some in product(*uncertain.values()):
                owner.append(at)
                combinations.append((tuple(uncertain), some))
        values = cells.values[np.array(rows, dtype=np.int64)][np.array(owner, dtype=np.int64)]
        low, high = values.copy(), values.copy()
        for at, (columns, some) in enumerate(combinations):
            for k, (bottom, top) in zip(columns, some, strict=True):
                low[at, k], high[at, k] = bottom, top
        return Alternatives(
            np.array(owner, dtype=np.int64), self._known_values(low), self._known_values(high)
        )


def _combination_count(part: Alternatives) -> tuple[int, bool]:
    """Return the number of rows, and whether each has one combination."""
    count = int(part.owner[-1]) + 1 if len(part.owner) else 0
    return count, count == len(part.owner)


def _join_parts(parts: list[Predictions]) -> Predictions:
    if len(parts) == 1:
        return parts[0]
    masses: list[MassFunction] | None = None
    if parts[0].masses is not None:
        masses = [mass for part in parts for mass in part.masses or ()]
    return Predictions(
        klass=np.concatenate([part.klass for part in parts]),
        theta=np.concatenate([part.theta for part in parts]),
        belief=np.concatenate([part.belief for part in parts]),
        plausibility=np.concatenate([part.plausibility for part in parts]),
        masses=masses,
        nodes=np.concatenate([part.nodes for part in parts if part.nodes is not None]),
        conflict=np.concatenate([part.conflict for part in parts]),
        ranking=None if parts[0].ranking is None else np.concatenate([part.plausibility for part in parts]),
    )
