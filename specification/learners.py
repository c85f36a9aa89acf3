"""Learners as the specification of a model names them: by name, with parameters and rules.

A learner is a class in a module of its own (`quercus.trees.learners.learner`), found by its name among the plug-ins.
All parameters are values: equal parameters and equal evidence give equal trees. A parameter out of bounds raises
`InvalidInput`.
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
"""The learner that predicts with a forest, and grows a tree beside it for people to read."""
DEFAULT: Final = ACTIVE_FOREST
"""The learner of a specification that names none."""


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
"""Parameters that a model's specification has, for all learners alike."""


class SpecifiedLearner(Plugin):
    """A learner as far as the specification of a model needs to know it.

    Parameters that a specification has too, such as ``min_instances``, are the model's.

    Attributes
    ----------
    asks
        What chooses the queries of a model that learns so: a tree, which grows beside it, or the learner's own forest.
    is_base
        Whether a forest may be made of it.
    forgets
        Whether it can learn from the last rows alone (``memory_rows``).
    certain_alone
        Reason why rows to learn from have no uncertain values, sets or ranges; empty: they may have them.
    engine
        The engine of the service that keeps this learner's model up to date event by event, as ``module:class``.
        Empty: there is none, and the model is learned again from all evidence.
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
        """True if it, or the tree that people read in its place, takes the pruning of the specification."""
        return hasattr(self, "pruning")

    @property
    def refusal_of_uncertain(self) -> str:
        """Reason to refuse an uncertain value in a row to learn from, in words; empty: there is none."""
        if not self.certain_alone:
            return ""
        why = f"learns from known values alone, as {self.certain_alone}"
        return f"is uncertain, but {self.name} {why}: give one value, or none"

    def check_classes(self, size: int) -> None:
        """Raise `InvalidInput` for a frame of `size` classes that is too large for what the learner combines."""

    def learning_cost(self, size: int) -> Mapping[str, int]:
        """Return how many trees are grown to learn once, of `size` classes, by the parameter that asks for them.

        A path of parameters has dots, as in ``base.folds``.
        """
        return {"trees": 1}

    def own_defaults(self, size: int) -> dict[str, float]:
        """Return the defaults that a specification of `size` classes takes from its learner."""
        return {
            each.name: getattr(self, each.name, each.default)
            for each in (parameters.MIN_INSTANCES, parameters.PREDICTION_LEVEL)
        }

    def with_parameters(self, **values: object) -> Self:
        """Return a copy with other parameters; those that it lacks are ignored."""
        known = {each.name for each in fields(self)}  # type: ignore[arg-type]  # subclasses are dataclasses
        given = {name: value for name, value in values.items() if name in known}
        return replace(self, **given)  # type: ignore[type-var]


def learner_classes() -> dict[str, type[SpecifiedLearner]]:
    """Return the classes of all learners by name; one that cannot be imported is left out."""
    return plugin_classes(SpecifiedLearner)


def default_learner() -> SpecifiedLearner:
    """Return the learner of a specification that names none."""
    return plugin_class(SpecifiedLearner, DEFAULT)()


@dataclass(frozen=True, slots=True)
class Declaration:
    """The declaration of a learner or a strategy, from which a form can be made.

    Attributes
    ----------
    name
        Its name.
    summary
        What it is, in a sentence; of a strategy: the instances that it selects.
    parameters
        Those that a model gives it.
    package
        The package that brings it, with its version; empty for those of Quercus.
    bases
        The learners that may grow the trees of a learner; empty if it lets none choose.
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
    """Return the declaration of a learner or a strategy, without the others that a learner lets choose."""
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
    """Return whether a learner makes a model of those of another, its ``base``."""
    return any(each.name == "base" for each in fields(kind))  # type: ignore[arg-type]
