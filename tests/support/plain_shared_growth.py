"""ABC4.5 over codes in the plainest way, whose rows may go down several branches in parts (theory §14)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from quercus.trees.growth.batch import NodePrediction, OpenNode, SplitChoice
from quercus.trees.learners.evidential import evidential_prediction
from quercus.trees.tree.node import Path
from quercus.trees.tree.splits import ABOVE, BELOW
from support.plain_growth import PlainGrowth, PlainRules

Cell = tuple[int, int]


@dataclass(frozen=True)
class PlainSharedRules(PlainRules):
    """The rules; `allowed` are the codes of each uncertain cell, by row and attribute."""

    allowed: Mapping[Cell, frozenset[int]] = field(default_factory=dict)
    parts_at: dict[Path, dict[int, Fraction]] = field(default_factory=dict)

    def parts(self, place: OpenNode) -> dict[int, Fraction]:
        """Return the part of each row that is at a node."""
        return self.parts_at.setdefault(place.path, {int(row): Fraction(1) for row in place.rows})

    def divided(self, place: OpenNode, k: int) -> list[tuple[int, int, Fraction]]:
        """Return rows, codes of an attribute, and parts."""
        here, found = self.parts(place), []
        known: dict[int, Fraction] = {}
        for row, part in here.items():
            if (row, k) not in self.allowed:
                code = int(self.sample.codes[row, k])
                known[code] = known.get(code, Fraction(0)) + part
                found.append((row, code, part))
        splits = self.sample.splits
        for row, part in here.items():
            if (row, k) in self.allowed:
                codes = {
                    code
                    for code in self.allowed[row, k]
                    if all(
                        splits.branches_of(split, np.array([code]))[0] == branch
                        for split, branch in place.path
                        if splits.attribute[split] == k
                    )
                }
                weights = {code: known.get(code, Fraction(0)) for code in sorted(codes)}
                if not any(weights.values()):
                    weights = dict.fromkeys(sorted(codes), Fraction(1))
                if part < Fraction(1, 1024):
                    best = max(weights, key=lambda code: (weights[code], -code))
                    weights = {best: Fraction(1)}
                total = sum(weights.values())
                found += [(row, code, part * weight / total) for code, weight in weights.items() if weight]
        return found

    def _counts(self, place: OpenNode) -> np.ndarray:
        counts = np.zeros(self.sample.table.size)
        for row, part in self.parts(place).items():
            counts[self.sample.ids[row]] += float(part)
        return counts

    def _tables(self, place: OpenNode) -> dict[int, np.ndarray]:
        splits, found = self.sample.splits, {}
        for k in sorted({int(splits.attribute[split]) for split in place.attributes}):
            table = np.zeros((self.sample.arities[k], self.sample.table.size))
            for row, code, part in self.divided(place, k):
                table[code, self.sample.ids[row]] += float(part)
            cuts = splits.cuts[k]
            if not cuts:
                if np.count_nonzero(table.any(axis=1)) > 1:
                    found[int(splits.first_splits[k])] = table
                continue
            lost, seen, telling = table[cuts + 1 :].sum(axis=0), set(), False
            for cut in range(cuts):
                below, above = table[: cut + 1].sum(axis=0), table[cut + 1 : cuts + 1].sum(axis=0)
                parted = tuple(table[: cut + 1].any(axis=1))
                key = sum(parted)
                if below.any() and above.any() and key not in seen:
                    seen.add(key)
                    telling = True
                    found[int(splits.first_splits[k]) + cut] = np.stack([below, above, lost])
            known = table[: cuts + 1].sum(axis=0)
            first = int(splits.first_splits[k])
            if not telling and known.any() and lost.any():
                found[first] = np.stack([table[0], table[1 : cuts + 1].sum(axis=0), lost])
        return {split: table for split, table in found.items() if split in place.attributes}

    def branches(self, place: OpenNode, choice: SplitChoice) -> list[OpenNode]:
        splits, split = self.sample.splits, choice.attribute
        below: dict[int, dict[int, Fraction]] = {}
        for row, code, part in self.divided(place, int(splits.attribute[split])):
            branch = int(splits.branches_of(split, np.array([code]))[0])
            of = below.setdefault(branch, {})
            of[row] = of.get(row, Fraction(0)) + part
        left, found = tuple(k for k in place.attributes if k != split), []
        for branch, parts in sorted(below.items()):
            rows = np.array(sorted(parts))
            weights = np.array([float(parts[row]) for row in rows.tolist()])
            found.append(place.child(split, branch, rows, left, weights))
            self.parts_at[found[-1].path] = parts
        return found

    def leaf_prediction(self, place: OpenNode) -> NodePrediction:
        return evidential_prediction(self.sample, place, self.solver, self.prediction_level)


def plain_shared_tree(sample, alpha, rules, allowed, significance) -> PlainGrowth:
    """Return the tree, decided as it is looked at."""
    mine = PlainSharedRules(
        sample, sample.table.solver(alpha), *rules, significance, allowed=allowed, parts_at={}
    )
    root = OpenNode((), np.arange(len(sample.ids)), tuple(range(sample.splits.split_count)))
    return PlainGrowth(root, mine)


assert (BELOW, ABOVE) == (0, 1)
