"""Names for the numbers in a tree."""

import math
from dataclasses import dataclass

from quercus.specification.attributes import threshold_branch
from quercus.specification.class_marks import CLASS_MARKS, ClassMark
from quercus.trees.tree.flat import FlatTree


@dataclass(frozen=True, slots=True)
class TreeNames:
    """Names for the numbers in a tree.

    Parameters
    ----------
    classes
        The frame.
    attributes
        Names, in declared order.
    branches
        Name of every branch code of every attribute.
    marks
        Mark of each class; empty: the marks of `CLASS_MARKS`, in order.
    """

    classes: tuple[str, ...]
    attributes: tuple[str, ...]
    branches: tuple[tuple[str, ...], ...]
    marks: tuple[ClassMark, ...] = ()

    def mark_of(self, klass: int) -> ClassMark:
        """Return the mark of a class."""
        return (self.marks or CLASS_MARKS)[klass]

    def branch(self, attribute: int, code: int) -> str:
        """Return the name of a branch, or its code if it has no name."""
        known = self.branches[attribute]
        return known[code] if code < len(known) else f"#{code}"

    def step(self, flat: FlatTree, node: int) -> str:
        """Return the name of the branch that leads to a node from its parent."""
        parent, code = int(flat.parent[node]), int(flat.branch[node])
        threshold = float(flat.threshold[parent])
        if not math.isnan(threshold):
            return threshold_branch(threshold, code)
        return self.branch(int(flat.attribute[parent]), code)
