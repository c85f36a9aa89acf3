"""The definition of a model: its attributes, its frame and how its tree is grown.

With the log, the specification determines the tree (docs/ARCHITECTURE.md, promise 1).
"""

from dataclasses import dataclass, field

from quercus.belief.errors import InvalidInput, shown
from quercus.belief.frame import Frame
from quercus.specification import parameters
from quercus.specification.attributes import MISSING_NAME, Attribute, Nominal, check_distinct
from quercus.specification.learners import OF_THE_MODEL, Pruning, SpecifiedLearner, default_learner, has_base
from quercus.specification.parameter import check_parameters, parameters_of, with_parameter_docs
from quercus.specification.parameters import MAX_ATTRIBUTES
from quercus.specification.strategies import QueryStrategy, chosen_strategy


@with_parameter_docs
@dataclass(frozen=True, slots=True)
class Specification:
    """The definition of a model.

    Parameters
    ----------
    attributes
        1 to 1,000, with distinct names, in declared order.
    frame
        The classes, in declared order.
    strategy
        The query strategy, or its name for its default parameters. None for the default of the learner.
    pruning
        Pruning of the published tree, or of the tree beside an active forest; the growing tree is not pruned. None for
        no pruning.
    learner
        The learner. `alpha`, `min_instances`, `max_depth`, `pruning`, `prediction_level` and
        `split_significance` override the learner's parameters of the same name. `split_significance` applies only to
        single trees, since the trees of a forest should differ.

    Raises
    ------
    InvalidInput
        If one of these rules is broken.
    """

    attributes: tuple[Attribute, ...]
    frame: Frame
    alpha: float = parameters.ALPHA.dataclass_field()
    budget: int = parameters.BUDGET.dataclass_field()
    min_instances: int = parameters.MODEL_INSTANCES.dataclass_field()
    max_depth: int | None = parameters.MAX_DEPTH.dataclass_field()
    warmup_rows: int = parameters.WARMUP_ROWS.dataclass_field()
    strategy: QueryStrategy = field(default=None)  # type: ignore[assignment]  # the learner's default then
    pruning: Pruning | None = None
    learner: SpecifiedLearner = field(default_factory=default_learner)
    prediction_level: float = parameters.MODEL_LEVEL.dataclass_field()
    split_significance: float = parameters.MODEL_SIGNIFICANCE.dataclass_field()
    memory_rows: int | None = parameters.MEMORY_ROWS.dataclass_field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        if not 1 <= len(self.attributes) <= MAX_ATTRIBUTES:
            raise InvalidInput(
                "attributes", f"has {len(self.attributes)} attributes, must have 1 to {MAX_ATTRIBUTES}"
            )
        check_distinct([attribute.name for attribute in self.attributes], "attributes")
        self._check_missing_names()
        check_parameters(self)
        self._check_learner()

    def _check_missing_names(self) -> None:
        """Refuse to declare a value with the name of the branch of missing values; a learned value may have it."""
        for k, attribute in enumerate(self.attributes):
            declared = attribute.values if isinstance(attribute, Nominal) else ()
            if attribute.missing == "branch" and MISSING_NAME in declared:
                raise InvalidInput(
                    f"attributes[{k}].values[{declared.index(MISSING_NAME)}]",
                    f"is {MISSING_NAME!r}, the name of the branch of missing values",
                )

    def _check_learner(self) -> None:
        learner = self.learner
        if not isinstance(learner, SpecifiedLearner):
            raise InvalidInput("learner", f"is {shown(learner)}, must be a learner")
        learner.check_classes(self.frame.size)
        for name, value in learner.own_defaults(self.frame.size).items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        if self.pruning is not None and not learner.takes_pruning:
            raise InvalidInput(
                "pruning", f"is given, but {learner.name} is pruned by parameters of its own, or never"
            )
        if self.memory_rows is not None and not learner.forgets:
            raise InvalidInput(
                "memory_rows", f"is {self.memory_rows}, but {learner.name} learns from all rows"
            )
        object.__setattr__(self, "strategy", chosen_strategy(self.strategy, learner.asks))
        shared = {name: getattr(self, name) for name in OF_THE_MODEL}
        if has_base(type(learner)):
            shared["split_significance"] = 0.0
        object.__setattr__(self, "learner", learner.with_parameters(**shared))


CHANGEABLE = (
    *(each.name for each in parameters_of(Specification) if not each.is_fixed),
    "strategy",
    "pruning",
    "guidance",
    "presentation",
)
"""Fields of the specification that may change after the model was created; learning ignores the last two."""
