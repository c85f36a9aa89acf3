# Generated from proto/quercus/v1/model.proto by `make proto`.
"""The definition of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quercus.specification.attributes import Attribute
from quercus.specification.guidance import Guidance
from quercus.specification.learners import Pruning
from quercus.specification.presentation import Presentation


@dataclass(frozen=True)
class Specification:
    """The definition of a model: together with the log it determines the tree.

    Parameters
    ----------
    attributes
        1 to 1,000, in order, with distinct names.
    classes
        The frame, in order; 2 to 64 distinct names.
    alpha
        Level of the likelihood cut, in [0, 1]; default 0.8.
    budget
        Greatest number of queries answered or leased in all; default 0: never ask.
    min_instances
        A node with fewer instances is a leaf; default 2.
    max_depth
        Depth at which every node is a leaf; ``None``: no limit.
    warmup_rows
        Rows that set the bins of numeric attributes without declared edges; default 100.
    pruning
        ``None``: no pruning.
    learner
        The learner: a name, or a mapping of a name and parameters. ``None``: active-forest. It cannot change once
        the model exists.
    prediction_level
        Level of the likelihood cut that bounds belief and plausibility of predictions, in [0, 1]; default 0.15, for
        active-forest 0.75. Independent of alpha, which decides splits and queries. A lower level gives more
        cautious sets of classes.
    presentation
        The presentation of rows. Learning ignores it.
    split_significance
        Level of the test that a split must pass against "do not split", halved at each depth, in [0, 1000]: a
        smaller level gives fewer splits. 0: no test. ``None``: 10.
    memory_rows
        The active tree, or the tree beside the forest, learns from this number of the last rows with an informative
        label, 1 to 1,000,000, and from the rows without one. ``None``: from all. It cannot change once the model
        exists.
    strategy
        The query strategy: a name, or a mapping of a name and parameters; docs/strategies.md names the default.
    guidance
        Guidance of the lead for labellers: a title, guidelines and example rows. Learning ignores it.

    Examples
    --------
    >>> from quercus.client import Nominal, Numeric
    >>> Specification([Nominal("X", "abc"), Numeric("age")], ["ill", "well"], budget=5).classes
    ('ill', 'well')
    """

    attributes: Sequence[Attribute]
    classes: Sequence[str]
    alpha: float | None = None
    budget: int | None = None
    min_instances: int | None = None
    max_depth: int | None = None
    warmup_rows: int | None = None
    pruning: Pruning | None = None
    learner: str | Mapping[str, Any] | None = None
    prediction_level: float | None = None
    presentation: Presentation | None = None
    split_significance: float | None = None
    memory_rows: int | None = None
    strategy: str | Mapping[str, Any] | None = None
    guidance: Guidance | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        object.__setattr__(self, "classes", tuple(self.classes))
