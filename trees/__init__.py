"""Evidential decision trees: likelihood, intervals of entropy, growth, queries, learners.

``likelihood`` evidential likelihood, its maximiser, certified intervals of entropy
``rules``      the rules of a split: gain, dominance, significance
``growth``     trees from a sample (`batch`), and from a log (`stream`, `incremental`)
``tree``       a tree as a value: nodes, arrays, branch codes, text and pictures
``ask``        which label to ask for: queries, candidates, strategies
``learners``   the trees of the literature behind one interface
``memory_forest``  the forest of many memories: members, weights, queries

The names below are for use outside this package. Each is imported at its first use.
"""

if __name__ != "quercus.trees":  # by another name every class would exist twice
    raise ImportError(f"import quercus.trees, not {__name__}")

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quercus.trees.ask.query import Query
    from quercus.trees.growth.abc45 import Induction, induce
    from quercus.trees.growth.sample import Sample
    from quercus.trees.growth.stream import Answered, GrowthState, Observed, Refused, grow
    from quercus.trees.learners.model import Learned, fit
    from quercus.trees.learners.predictions import Predictions
    from quercus.trees.learners.table import Table
    from quercus.trees.likelihood.interval import entropy_interval, entropy_intervals
    from quercus.trees.precompile import prepare
    from quercus.trees.tree.flat import FlatTree
    from quercus.trees.tree.node import Node
    from quercus.trees.tree.svg_drawing import to_svg
    from quercus.trees.tree.text_drawing import Names, to_dot, to_text

_PLACES = {
    "ask.query": ["Query"],
    "growth.abc45": ["Induction", "induce"],
    "growth.sample": ["Sample"],
    "growth.stream": ["Answered", "GrowthState", "Observed", "Refused", "grow"],
    "learners.model": ["Learned", "fit"],
    "learners.predictions": ["Predictions"],
    "learners.table": ["Table"],
    "likelihood.interval": ["entropy_interval", "entropy_intervals"],
    "precompile": ["prepare"],
    "tree.flat": ["FlatTree"],
    "tree.node": ["Node"],
    "tree.svg_drawing": ["to_svg"],
    "tree.text_drawing": ["Names", "to_dot", "to_text"],
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}

__all__ = [
    "Answered",
    "FlatTree",
    "GrowthState",
    "Induction",
    "Learned",
    "Names",
    "Node",
    "Observed",
    "Predictions",
    "Query",
    "Refused",
    "Sample",
    "Table",
    "entropy_interval",
    "entropy_intervals",
    "fit",
    "grow",
    "induce",
    "prepare",
    "to_dot",
    "to_svg",
    "to_text",
]


def __getattr__(name: str) -> Any:
    """Import a public name at its first use: a server that only reads trees compiles nothing."""
    if name not in _PLACE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
