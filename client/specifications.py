"""The definition of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quercus.specification.algorithms import Pruning
from quercus.specification.attributes import Attribute
from quercus.specification.presentation import Presentation


@dataclass(frozen=True)
class Specification:
    """The definition of a model; ``None`` leaves the default, see :mod:`quercus.specification.parameters`.

    ``algorithm`` is the learner: a name, or a mapping of a name and parameters (:mod:`quercus.client.algorithms`).
    ``presentation``: the presentation of rows to people (:mod:`quercus.specification.presentation`).
    ``prediction_level``: how cautious sets of classes are, from 1 (least) to 0 (the whole frame).

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
    strategy: str | None = None
    pruning: Pruning | None = None
    algorithm: str | Mapping[str, Any] | None = None
    prediction_level: float | None = None
    presentation: Presentation | None = None
    split_significance: float | None = None
    ask: str | None = None
    memory_rows: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        object.__setattr__(self, "classes", tuple(self.classes))
