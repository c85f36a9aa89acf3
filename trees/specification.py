"""What defines a model: its attributes, its frame and how its tree is grown.

With the log, the specification determines the tree (docs/ARCHITECTURE.md, promise 1).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from quercus.belief.errors import InvalidInput, shown
from quercus.belief.frame import Frame
from quercus.trees.algorithms import (
    Abc45,
    Algorithm,
    E2m,
    Forest,
    Pruning,
    PruningKind,
    check_classes,
    with_rules,
)
from quercus.trees.checks import MAX_COUNT, PREDICTION_LEVEL, check_alpha, check_count
from quercus.trees.strategies.names import PUBLISHED, STRATEGIES

__all__ = [
    "MAX_ATTRIBUTES",
    "MAX_BINS",
    "MAX_COUNT",
    "MAX_CUTS",
    "MAX_NAME_CHARS",
    "MAX_VALUES",
    "MIN_BINS",
    "MISSING_NAME",
    "STRATEGIES",
    "Attribute",
    "Missing",
    "Nominal",
    "Numeric",
    "Pruning",
    "PruningKind",
    "Specification",
    "check_alpha",
    "check_count",
]

MAX_ATTRIBUTES = 1_000
MAX_VALUES = 1_000  # of a nominal attribute, learned ones included
MIN_BINS, MAX_BINS = 2, 256
MAX_NAME_CHARS = 200
MAX_CUTS = MAX_BINS - 1  # candidate thresholds of a numeric attribute
MISSING_NAME = "?"  # of the branch that missing values take

Missing = Literal["branch", "reject"]


@dataclass(frozen=True, slots=True)
class Nominal:
    """An attribute with named values.

    Parameters
    ----------
    name
        Not empty.
    values
        Declared values, in order; at most 1,000, distinct, not empty. Values learned later come after them.
    missing
        ``"branch"``: a missing value is a branch of its own; ``"reject"``: a row that lacks it is refused.

    Raises
    ------
    InvalidInput
        When a name or a value breaks these rules.
    """

    name: str
    values: tuple[str, ...] = ()
    missing: Missing = "branch"

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        _check_name(self.name, "name")
        _check_missing(self.missing)
        if len(self.values) > MAX_VALUES:
            raise InvalidInput("values", f"are {len(self.values)}, at most {MAX_VALUES} are allowed")
        for index, value in enumerate(self.values):
            _check_name(value, f"values[{index}]")
            if value == MISSING_NAME and self.missing == "branch":
                raise InvalidInput(
                    f"values[{index}]", f"is {MISSING_NAME!r}, the name of the branch of missing values"
                )
        _check_distinct(self.values, "values")


@dataclass(frozen=True, slots=True)
class Numeric:
    """An attribute with numbers, cut into bins or split at thresholds.

    Parameters
    ----------
    name
        Not empty.
    bins
        Number of equal-width bins over the range of the model's first rows, 2 to 256; declared edges
        overrule it.
    edges
        Inner edges, finite and strictly increasing, at most 255; a value at an edge belongs to the bin above.
    missing
        As of `Nominal`.
    cuts
        None: every bin is a branch. A number, 1 to 255: a node splits at one threshold, chosen among at most
        this many candidate cuts: the declared edges, else quantiles of the model's first rows. Then the bins
        are what lies between the cuts, and their number is not looked at.

    Raises
    ------
    InvalidInput
        When one of these rules is broken.
    """

    name: str
    bins: int = 4
    edges: tuple[float, ...] | None = None
    missing: Missing = "branch"
    cuts: int | None = None

    def __post_init__(self) -> None:
        _check_name(self.name, "name")
        _check_missing(self.missing)
        check_count(self.bins, "bins", MIN_BINS, MAX_BINS)
        if self.cuts is not None:
            check_count(self.cuts, "cuts", 1, MAX_CUTS)
        if self.edges is None:
            return
        edges = tuple(float(edge) for edge in self.edges)
        if not 1 <= len(edges) < MAX_BINS:
            raise InvalidInput("edges", f"are {len(edges)}, must be 1 to {MAX_BINS - 1}")
        for index, edge in enumerate(edges):
            if not math.isfinite(edge):
                raise InvalidInput(f"edges[{index}]", f"is {edge}, must be finite")
            if index and edge <= edges[index - 1]:
                raise InvalidInput(
                    f"edges[{index}]",
                    f"is {edge}, must be greater than the edge before it, {edges[index - 1]}",
                )
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "bins", len(edges) + 1)
        if self.cuts is not None and self.cuts != len(edges):
            raise InvalidInput("cuts", f"are {self.cuts}, but {len(edges)} edges are declared")


Attribute = Nominal | Numeric


@dataclass(frozen=True, slots=True)
class Specification:
    """What defines a model.

    Parameters
    ----------
    attributes
        1 to 1,000, with distinct names, in declared order.
    frame
        The classes, in declared order.
    alpha
        Level of the likelihood cut, in [0, 1].
    budget
        Most queries ever answered or leased.
    min_instances
        A node with fewer instances is a leaf; at least 1.
    max_depth
        Depth at which every node is a leaf (the root has depth 0), or no limit.
    warmup_rows
        Rows that set the bins of numeric attributes without declared edges; at least 1.
    strategy
        Name of the query strategy, one of `quercus.trees.strategies.names.STRATEGIES`.
    pruning
        Of the tree that is published; the growing tree stays whole. None: no pruning.
    algorithm
        What grows the tree. `alpha`, `min_instances`, `max_depth`, `pruning` and `prediction_level` hold for it where
        it has such parameters: it is kept with theirs. Only `Abc45` asks; another has no budget.

    prediction_level
        Level of the likelihood cut that belief and plausibility of predictions are bounds over, in [0, 1], apart from
        `alpha`, which decides what is split and asked. The lower, the more cautious are set-valued predictions.

    Raises
    ------
    InvalidInput
        When one of these rules is broken.
    """

    attributes: tuple[Attribute, ...]
    frame: Frame
    alpha: float = 0.8
    budget: int = 0
    min_instances: int = 2
    max_depth: int | None = None
    warmup_rows: int = 100
    strategy: str = PUBLISHED
    pruning: Pruning | None = None
    algorithm: Algorithm = Abc45()  # noqa: RUF009 - frozen
    prediction_level: float = PREDICTION_LEVEL

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        if not 1 <= len(self.attributes) <= MAX_ATTRIBUTES:
            raise InvalidInput("attributes", f"are {len(self.attributes)}, must be 1 to {MAX_ATTRIBUTES}")
        _check_distinct([attribute.name for attribute in self.attributes], "attributes")
        object.__setattr__(self, "alpha", check_alpha(self.alpha))
        level = check_alpha(self.prediction_level, "prediction_level")
        object.__setattr__(self, "prediction_level", level)
        check_count(self.budget, "budget", 0)
        check_count(self.min_instances, "min_instances", 1)
        if self.max_depth is not None:
            check_count(self.max_depth, "max_depth", 0)
        check_count(self.warmup_rows, "warmup_rows", 1)
        if self.strategy not in STRATEGIES:
            names = ", ".join(STRATEGIES)
            raise InvalidInput("strategy", f"is {shown(self.strategy)}, must be one of {names}")
        self._check_algorithm()

    def _check_algorithm(self) -> None:
        algorithm = self.algorithm
        if not isinstance(algorithm, Algorithm):
            raise InvalidInput("algorithm", f"is {shown(algorithm)}, must be one of quercus.trees.algorithms")
        check_classes(algorithm, self.frame.size)
        base = algorithm.base if isinstance(algorithm, Forest) else algorithm
        if self.pruning is not None and not isinstance(base, Abc45 | E2m):
            raise InvalidInput(
                "pruning", f"is given, but {base.name} is pruned by parameters of its own, or never"
            )
        in_force = with_rules(
            algorithm,
            alpha=self.alpha,
            min_instances=self.min_instances,
            max_depth=self.max_depth,
            pruning=self.pruning,
            prediction_level=self.prediction_level,
        )
        object.__setattr__(self, "algorithm", in_force)


def _check_name(name: object, field: str) -> None:
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput(field, f"is {shown(name)}, must be text and not empty")
    if len(name) > MAX_NAME_CHARS:
        raise InvalidInput(field, f"has {len(name)} characters, at most {MAX_NAME_CHARS} are allowed")


def _check_missing(missing: object) -> None:
    if missing not in ("branch", "reject"):
        raise InvalidInput("missing", f"is {shown(missing)}, must be 'branch' or 'reject'")


def _check_distinct(names: Sequence[str], field: str) -> None:
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if name in first:
            raise InvalidInput(
                f"{field}[{index}]", f"is {shown(name)}, the same as {field}[{first[name]}]; must be distinct"
            )
        first[name] = index
