"""Functions that grow a tree, as learners of a forest."""

from __future__ import annotations

from collections.abc import Callable

from quercus.trees import LearnedModel, Node, Table, TreeModel
from quercus.trees.learners.stopping_rules import Wrap


def as_model(grow: Callable[..., Node], table: Table, *, wrap: Wrap | None) -> LearnedModel:
    """Return the tree that a function grows as a model: ``grow(table, wrap=...) -> Node``."""
    return TreeModel.of(grow(table, wrap=wrap), table.attributes)
