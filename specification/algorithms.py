"""Learners as the specification of a model names them: by name, with parameters and rules.

A learner is a class in a module of its own (`quercus.trees.learners.learner`), found by its name among the plug-ins.
All parameters are values: equal parameters and equal evidence give equal trees. A parameter out of bounds raises
`InvalidInput`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, Final, Literal, Self, cast

from quercus.belief.errors import InvalidInput, shown
from quercus.specification import parameters
from quercus.specification.parameter import (
    Parameter,
    check_parameters,
    parameters_of,
    parametric,
    summary_of,
)
from quercus.specification.plugins import (
    LEARNERS,
    PluginError,
    foreign_package,
    load_plugin,
    missing_package,
    plugin_names,
)
from quercus.specification.strategies import DEFAULT_STRATEGY, Asks, strategies

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


class Algorithm:
    """A learner as far as the specification of a model needs to know it.

    Subclasses are `parametric`. Parameters that a specification has too, such as ``min_instances``, are the model's.

    Attributes
    ----------
    name
        Name under which it is installed.
    asks
        What chooses the queries of a model that learns so: a tree, which grows beside it, or the learner's own forest.
    is_base
        Whether a forest may be made of it.
    forgets
        Whether it can learn from the last rows alone (``memory_rows``).
    engine
        Class of the service that follows the log in its place, as ``module:class``. Empty: the model is learned
        again from all evidence.
    """

    __slots__ = ()

    name: ClassVar[str]
    asks: ClassVar[Asks] = "tree"
    is_base: ClassVar[bool] = False
    forgets: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def engine(self) -> str:
        """See the class."""
        return ""

    @property
    def takes_pruning(self) -> bool:
        """True if it, or the tree that people read in its place, takes the pruning of the specification."""
        return hasattr(self, "pruning")

    def check_classes(self, size: int) -> None:
        """Raise `InvalidInput` for a frame of `size` classes that is too large for what the learner combines."""

    def learning_cost(self, size: int) -> Mapping[str, int]:
        """Return how many trees are grown to learn once, of `size` classes, by the parameter that asks for them.

        A path of parameters has dots, as in ``base.folds``.
        """
        return {"trees": 1}

    def own_defaults(self, size: int) -> dict[str, float | str]:
        """Return the defaults that a specification of `size` classes takes from its learner."""
        return {
            each.name: getattr(self, each.name, each.default)
            for each in (parameters.MIN_INSTANCES, parameters.PREDICTION_LEVEL)
        } | {"strategy": DEFAULT_STRATEGY[self.asks]}

    def with_parameters(self, **values: object) -> Self:
        """Return a copy with other parameters; those that it lacks are ignored."""
        known = {each.name for each in fields(self)}  # type: ignore[arg-type]  # subclasses are dataclasses
        given = {name: value for name, value in values.items() if name in known}
        return replace(self, **given)  # type: ignore[type-var]


OF_THE_MODEL = frozenset(
    ("alpha", "min_instances", "max_depth", "pruning", "prediction_level", "split_significance")
)
"""Parameters that a model's specification has, for all learners alike."""


def algorithm_class(name: str, package: str = "") -> type[Algorithm]:
    """Return a learner's class by its name.

    Parameters
    ----------
    name
        The name.
    package
        The package that brought it when a model was made, with its version; empty for those of Quercus.

    Raises
    ------
    InvalidInput
        When no package brings it, two do, or it cannot be imported.
    """
    try:
        return cast("type[Algorithm]", load_plugin(LEARNERS, name, Algorithm))
    except PluginError as error:
        if package and name not in plugin_names(LEARNERS):
            raise InvalidInput("name", f"is {shown(name)}, {missing_package('learner', package)}") from None
        raise InvalidInput("name", f"is {shown(name)}, {error.reason}") from None


def algorithm_classes() -> dict[str, type[Algorithm]]:
    """Return the classes of all learners by name; one that cannot be imported is left out."""
    found = {}
    for name in plugin_names(LEARNERS):
        try:
            found[name] = algorithm_class(name)
        except InvalidInput:
            continue  # `quercus doctor` says why
    return found


def default_algorithm() -> Algorithm:
    """Return the learner of a specification that names none."""
    return algorithm_class(DEFAULT)()


def served_parameters(kind: type[Algorithm]) -> tuple[Parameter, ...]:
    """Return the parameters that a model gives its learner, beside those of the model itself.

    Examples
    --------
    >>> [each.name for each in served_parameters(algorithm_class("c45"))]
    ['max_cuts', 'min_branch', 'confidence']
    """
    return tuple(each for each in parameters_of(kind) if each.is_served and each.name not in OF_THE_MODEL)


@dataclass(frozen=True, slots=True)
class Declaration:
    """The declaration of a learner, from which a form can be made.

    Attributes
    ----------
    name
        Its name.
    summary
        What it is, in a sentence.
    parameters
        Those that a model gives it.
    bases
        The learners that may grow its trees; empty if it lets none choose.
    strategies
        The strategies that can choose the queries of its models, each with a sentence: which instances it selects. The
        default is the first.
    package
        The package that brings it, with its version; empty for those of Quercus.
    """

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    bases: tuple[str, ...] = ()
    strategies: Mapping[str, str] = field(default_factory=dict)
    package: str = ""


def declarations() -> tuple[Declaration, ...]:
    """Return the declarations of all learners."""
    classes = algorithm_classes()
    bases = tuple(name for name, each in classes.items() if each.is_base)
    return tuple(
        Declaration(
            name,
            summary_of(each),
            served_parameters(each),
            bases if has_base(each) else (),
            strategies(each.asks),
            foreign_package(LEARNERS, name),
        )
        for name, each in classes.items()
    )


def has_base(kind: type[Algorithm]) -> bool:
    """Return whether a learner makes a model of those of another, its ``base``."""
    return any(each.name == "base" for each in fields(kind))  # type: ignore[arg-type]
