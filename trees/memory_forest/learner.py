"""The forest of many memories as a learner."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from quercus.specification.attributes import Attribute, Nominal
from quercus.specification.parameter import parametric
from quercus.specification.parameters import FOREST_LEVEL, MEMBERS, SEED
from quercus.specification.strategies import Asks
from quercus.trees.learners.learner import Learner, TaskExecutor
from quercus.trees.learners.predicting import LearnedModel, TreeModel
from quercus.trees.learners.table import Table
from quercus.trees.learners.weights import repeat_rows

if TYPE_CHECKING:
    from quercus.trees.memory_forest.forest import MemoryForest


@parametric
class ActiveForest(Learner):
    """A forest whose trees learn from memories of different lengths, the default: it also selects queries.

    It is the forest of many memories of theory §10.
    """

    name: ClassVar[str] = "active-forest"
    asks: ClassVar[Asks] = "forest"
    forgets: ClassVar[bool] = True
    certain_alone: ClassVar[str] = ""
    trees: int = MEMBERS.dataclass_field()
    seed: int = SEED.dataclass_field()
    prediction_level: float = FOREST_LEVEL.dataclass_field()

    @property
    def engine(self) -> str:
        """The import path of the engine, in which the forest itself follows the log."""
        return "quercus.server.growth.engines:ForestEngine"

    @property
    def takes_pruning(self) -> bool:
        """True: the tree beside the forest is pruned."""
        return True

    def learning_cost(self, size: int) -> dict[str, int]:
        """Return the number of trees."""
        return {"trees": self.trees}

    def fit(self, table: Table, *, executor: TaskExecutor | None = None) -> LearnedModel:
        """Return the forest of many memories, with an active tree beside it."""
        # these modules are heavy, and a server that only reads forests needs neither
        from quercus.trees.learners.evidential import Abc45  # noqa: PLC0415
        from quercus.trees.memory_forest.publishing import served_forest  # noqa: PLC0415

        beside = Abc45().fit(table)
        if not isinstance(beside, TreeModel):
            raise TypeError(f"{type(beside).__name__} is not a tree")
        counts = repeat_rows(table)
        forest = forest_of(self, table.attributes, table.size)
        forest.observe(counts.values, counts.contours, counts.parts)
        return served_forest(forest, beside)


def forest_of(
    learner: ActiveForest, attributes: Sequence[Attribute], size: int, present: int | None = None
) -> "MemoryForest":
    """Return the forest of an empty log, whose rows have the first `present` attributes; None: all."""
    from quercus.trees.memory_forest.forest import MemoryForest  # noqa: PLC0415 - heavy, needed to grow only

    return MemoryForest(
        np.array([isinstance(attribute, Nominal) for attribute in attributes]),
        size,
        trees=learner.trees,
        seed=learner.seed,
        level=learner.prediction_level,
        attributes=present,
    )
