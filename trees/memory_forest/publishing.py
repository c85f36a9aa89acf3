"""Conversion of a forest that grows into one that is served."""

import numpy as np

from quercus.trees.learners.predicting import TreeModel
from quercus.trees.memory_forest.forest import MemoryForest
from quercus.trees.memory_forest.groves import nodes_of
from quercus.trees.memory_forest.served import BayesTable, ServedForest, ServedMembers


def served_forest(forest: MemoryForest, tree: TreeModel) -> ServedForest:
    """Return the present forest for serving, with a tree of the same log."""
    return ServedForest(tree.attributes, tree.size, tree, served_members(forest), forest.calibration())


def served_members(forest: MemoryForest) -> ServedMembers:
    """Return the present members for serving."""
    members = forest.bounded_members()
    trees, l = members.trees, members.size
    distinct = {id(each): each for each in members.bayes}
    order = {key: number for number, key in enumerate(distinct)}
    return ServedMembers(
        book=members.book,
        size=l,
        keys=np.array([tree.key for tree in trees], dtype=np.uint64),
        node_counts=np.array([len(tree) for tree in trees], dtype=np.int64),
        opinion_counts=np.array([len(tree.opinions) for tree in trees], dtype=np.int64),
        nodes=np.ascontiguousarray(nodes_of(trees).T),
        opinions=np.concatenate([np.empty((0, 3, l)), *(tree.opinions for tree in trees)]),
        bayes=tuple(
            BayesTable(each.weight, each.prior, each.means, each.deviations, each.frequencies)
            for each in distinct.values()
        ),
        bayes_numbers=np.array([order[id(each)] for each in members.bayes], dtype=np.int64),
        weights=forest.weights,
        level=forest.level,
        labelled=len(members.labelled),
    )
