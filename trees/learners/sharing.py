"""The division of rows with uncertain cells among several branches (theory §14).

An uncertain cell is a set of values or a range. Its row goes down every branch of these values, in proportion to the
weight of the node's rows with such a known value (C4.5's rule for missing values, restricted to the allowed values). If
no row has such a value, it goes down the allowed branches in equal parts.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.specification.attributes import Attribute, Nominal
from quercus.trees.growth.batch import OpenNode
from quercus.trees.learners.cells import ColumnParts
from quercus.trees.learners.table import Table

LEAST_PART: Final = 2.0**-10
"""Smaller parts of a row are not divided further: they go down the branch of their largest share (of equal ones, the
first). This bounds the number of parts of a row, however many of its cells are uncertain."""


@dataclass(frozen=True, eq=False)
class OpenCells:
    """The rows of a node in which the cell of one attribute is uncertain.

    Parameters
    ----------
    at
        (u,) positions of these rows among the rows of the node.
    parts
        The uncertain cells.
    whole
        (u,) whether a row is a part too small to be divided, see `LEAST_PART`.
    """

    at: Ints
    parts: ColumnParts
    whole: Bools

    @classmethod
    def of(cls, table: Table, place: OpenNode, k: int) -> "OpenCells | None":
        """Return the uncertain rows for an attribute at a node; None if there are none."""
        column = table.uncertain.get(k)
        found = None if column is None else column.among(place.rows)
        if found is None:
            return None
        at, parts = found
        own = table.weights[place.rows[at]]
        weights = own if place.weights is None else place.weights[at]
        return cls(at, parts, weights < own * LEAST_PART)

    def shares(self, attribute: Attribute, column: Floats, weights: Floats, thresholds: Floats) -> Floats:
        """Return the shares of the branches of each split, (splits, u, branches); each row's sum to 1.

        Parameters
        ----------
        attribute
            The declaration.
        column, weights
            (n,) values of the attribute in the rows of the node, NaN if unknown, and weights of the rows.
        thresholds
            (splits,) thresholds of a numeric attribute; ignored for a nominal one, which has one split with a branch
            per value.
        """
        known = ~np.isnan(column)
        column, weights = column[known], weights[known]
        if isinstance(attribute, Nominal):
            allowed = np.zeros((len(self.at), len(attribute.values)))
            cell = np.repeat(np.arange(len(self.at)), np.diff(self.parts.start))
            allowed[cell, self.parts.low.astype(np.int64)] = 1.0
            of_values = np.bincount(column.astype(np.int64), weights, minlength=len(attribute.values))
            return self._divided((allowed * of_values)[np.newaxis], allowed[np.newaxis])
        order = column.argsort(kind="stable")
        ranked = column[order]
        passed = np.concatenate([[0.0], np.cumsum(weights[order])])  # weight of the rows below each position
        first = np.searchsorted(ranked, self.parts.low, side="left")
        last = np.searchsorted(ranked, self.parts.high, side="right")
        at = np.searchsorted(ranked, thresholds, side="left")[:, np.newaxis]
        cut = np.clip(at, first, last)
        both = np.stack([passed[cut] - passed[first], passed[last] - passed[cut]], axis=-1)
        edge = thresholds[:, np.newaxis]
        reaches = np.stack([self.parts.low < edge, self.parts.high >= edge], axis=-1).astype(np.float64)
        cells = self.parts.start[:-1]  # each has at least one range
        return self._divided(
            np.add.reduceat(both, cells, axis=1), np.maximum.reduceat(reaches, cells, axis=1)
        )

    def _divided(self, weights: Floats, allowed: Floats) -> Floats:
        """Return shares proportional to weights (..., branches); if all are 0, equal shares of the allowed ones."""
        weights = np.where(weights.sum(axis=-1, keepdims=True) > 0.0, weights, allowed)
        shares: Floats = weights / weights.sum(axis=-1, keepdims=True)
        if self.whole.any():
            whole = shares[:, self.whole]
            first = (whole >= whole.max(axis=-1, keepdims=True)).argmax(axis=-1)
            shares[:, self.whole] = np.eye(shares.shape[-1])[first]
        return shares


def node_weights(table: Table, place: OpenNode) -> Floats:
    """Return the weights that a node's rows have at the node, (m,)."""
    return table.weights[place.rows] if place.weights is None else place.weights
