"""Values about labellers: policies, filters, statistics, the history of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from quercus.client.results import Value

ANY = "-"
"""Name that means any model: all models that have queries, in turn."""


@dataclass(frozen=True)
class Filter:
    """The queries that a labeller wants; an empty field excludes nothing.

    Attributes
    ----------
    classes
        Classes that the labeller can identify: only queries whose plausible classes are all among these.
    values
        Values of nominal attributes that the row must have.
    tags
        Tags that the model must have, all of them; for any model (``"-"``).
    """

    classes: Sequence[str] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    tags: Sequence[str] = ()


@dataclass(frozen=True)
class LabellingPolicy:
    """The labelling policy of a model.

    Attributes
    ----------
    answers_per_query
        Number of labellers who answer each query, combined by Dempster's rule; 1 to 20.
    max_conflict
        Answers in more conflict than this ask for one more labeller, up to twice ``answers_per_query``; in [0, 1].
    reliability
        Reliability of an answer that was sent without one: ``"declared"``: 1; ``"estimated"``: estimated from the
        agreement of the labellers.
    per_labeller, per_hour
        Most answers of one labeller, and of all within an hour; ``None``: no bound but the model's budget.
    max_held
        Maximum number of queries that one labeller holds at once; 1 to 100.
    corrections
        Labellers who may correct an answer: the one who gave it (``"own"``), ``"anyone"``, ``"nobody"``.
    tags
        Tags by which labellers who answer for any model may choose.
    """

    answers_per_query: int = 1
    max_conflict: float = 0.5
    reliability: Literal["declared", "estimated"] = "declared"
    per_labeller: int | None = None
    per_hour: int | None = None
    max_held: int = 20
    corrections: Literal["own", "anyone", "nobody"] = "own"
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Neighbour:
    """A row of known class that is like the row of a query.

    ``same_leaf``: it ends in the same leaf of the tree. ``distance``: mean over the attributes, in [0, 1].
    ``differing``: the attributes in which they differ most.
    """

    instance: str
    values: Mapping[str, Value]
    class_name: str
    same_leaf: bool
    distance: float
    differing: tuple[str, ...]


@dataclass(frozen=True)
class Labeller:
    """The counts of a labeller for a model.

    ``agreement``: chance that this labeller and another who answered the same query bet on the same class;
    ``reliability``: chance that the labeller's answer is right, estimated from one confusion matrix per labeller.
    ``agreement_deviation``, ``reliability_deviation``: standard deviations of these two estimates. All are ``None`` if
    no query was shared.
    ``median_s``: median time of the newest 1,000 answers. ``stated``: number of statements.
    """

    name: str
    answered: int
    refused: int
    skipped: int
    postponed: int
    expired: int
    corrected: int
    undone: int
    held: int
    agreement: float | None
    reliability: float | None
    median_s: float | None
    stated: int = 0
    agreement_deviation: float | None = None
    reliability_deviation: float | None = None


@dataclass(frozen=True)
class QueryStep:
    """A step in the history of a query: kind, state after it, labeller, time, reason.

    ``clock``: time of the step in seconds of the lease clock, which never goes back. ``until``: end of the lease or of
    the postponement, on the same clock. ``lease`` identifies the lease; it is not its token.
    """

    query: int
    kind: str
    state: str
    labeller: str
    lease: str
    at: datetime
    clock: float
    until: float | None
    sequence: int
    why: str
