"""Learners as the specification of a model refers to them: by name, with parameters.

A learner is a class in a module of its own (`quercus.trees.learners.learner`), found by its name among the plug-ins.
Equal parameters and equal evidence give equal trees. A parameter out of bounds raises `InvalidInput`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Final, Literal, Self

from quercus.specification import parameters
from quercus.specification.parameter import Parameter, check_parameters, parametric, summary_of
from quercus.specification.plugins import (
    LEARNERS,
    Plugin,
    foreign_package,
    plugin_class,
    plugin_classes,
    served_parameters,
)
from quercus.specification.strategies import Asks, strategies

PruningKind = Literal["chi-square", "likelihood"]

ACTIVE_FOREST: Final = "active-forest"
"""The learner that predicts with a forest, and also grows a tree for people to read."""
DEFAULT: Final = ACTIVE_FOREST
"""The learner of a specification without one."""


@parametric
class Pruning:
    """The pruning of a grown tree before it is used."""

    kind: PruningKind = parameters.PRUNING_KIND.dataclass_field()
    level: float = parameters.LEVEL.dataclass_field()

    def __post_init__(self) -> None:
        check_parameters(self)


OF_THE_MODEL = frozenset(
    ("alpha", "min_instances", "max_depth", "pruning", "prediction_level", "split_significance")
)
"""Parameters in a model's specification that apply to all learners."""


class SpecifiedLearner(Plugin):
    """The part of a learner that the specification of a model uses.

    Parameters that a specification has as well, such as ``min_instances``, are taken from it.

    Attributes
    ----------
    asks
        The part that chooses the queries of its models: the tree that is also grown, or the learner's own forest.
    is_base
        Whether a forest may consist of its trees.
    forgets
        Whether it can learn only from the last rows (``memory_rows``).
    certain_alone
        Reason why it cannot learn from rows with sets or ranges; empty if it can.
    engine
        The engine of the service that updates this learner's model event by event, as ``module:class``. If empty, the
        model is learned again from all evidence.
    """

    __slots__ = ()

    group = LEARNERS
    noun = "learner"
    of_the_model = OF_THE_MODEL
    asks: ClassVar[Asks] = "tree"
    is_base: ClassVar[bool] = False
    forgets: ClassVar[bool] = False
    certain_alone: ClassVar[str] = "it has no rule for a row that may go down several branches"

    @property
    def engine(self) -> str:
        """See the class."""
        return ""

    @property
    def takes_pruning(self) -> bool:
        """True if it, or the tree that people read instead, is pruned as the specification says."""
        return hasattr(self, "pruning")

    @property
    def refusal_of_uncertain(self) -> str:
        """Reason to refuse an uncertain value in a row to learn from; empty if there is none."""
        if not self.certain_alone:
            return ""
        why = f"learns from known values alone, as {self.certain_alone}"
        return f"is uncertain, but {self.name} {why}: give one value, or none"

    def check_classes(self, size: int) -> None:
        """Raise `InvalidInput` if a frame of `size` classes is too large for the learner."""

    def learning_cost(self, size: int) -> Mapping[str, int]:
        """Return the number of trees that are grown to learn `size` classes once, by the parameter that causes them.

        The path of a parameter has dots, as in ``base.folds``.
        """
        return {"trees": 1}

    def own_defaults(self, size: int) -> dict[str, float]:
        """Return the defaults that a specification of `size` classes takes from its learner."""
        return {
            each.name: getattr(self, each.name, each.default)
            for each in (parameters.MIN_INSTANCES, parameters.PREDICTION_LEVEL)
        }

    def with_parameters(self, **values: object) -> Self:
        """Return a copy with other parameters; unknown ones are ignored."""
        known = {each.name for each in fields(self)}  # type: ignore[arg-type]  # subclasses are dataclasses
        given = {name: value for name, value in values.items() if name in known}
        return replace(self, **given)  # type: ignore[type-var]


def learner_classes() -> dict[str, type[SpecifiedLearner]]:
    """Return the classes of all learners that can be imported, by name."""
    return plugin_classes(SpecifiedLearner)


def default_learner() -> SpecifiedLearner:
    """Return the learner of a specification without one."""
    return plugin_class(SpecifiedLearner, DEFAULT)()


@dataclass(frozen=True, slots=True)
class Declaration:
    """The declaration of a learner or a strategy, from which a form can be made.

    Attributes
    ----------
    name
        Its name.
    summary
        Sentence that describes it; for a strategy, the instances that it selects.
    parameters
        Parameters that a model sets.
    package
        The package that provides it, with its version; empty for Quercus.
    bases
        The learners that may grow the trees of a learner; empty if there is no choice.
    strategies
        The strategies that can choose the queries of a learner's models; the default first.
    """

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    package: str = ""
    bases: tuple[str, ...] = ()
    strategies: tuple["Declaration", ...] = ()


def declaration_of(kind: type[Plugin]) -> Declaration:
    """Return the declaration of a learner or a strategy, without bases and strategies."""
    return Declaration(
        kind.name, summary_of(kind), served_parameters(kind), foreign_package(kind.group, kind.name)
    )


def declarations() -> tuple[Declaration, ...]:
    """Return the declarations of all learners."""
    classes = learner_classes()
    bases = tuple(name for name, each in classes.items() if each.is_base)
    return tuple(
        replace(
            declaration_of(each),
            bases=bases if has_base(each) else (),
            strategies=tuple(map(declaration_of, strategies(each.asks).values())),
        )
        for each in classes.values()
    )


def has_base(kind: type[SpecifiedLearner]) -> bool:
    """Return whether a learner combines the models of another, its ``base``."""
    return any(each.name == "base" for each in fields(kind))  # type: ignore[arg-type]
