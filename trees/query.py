"""Which label to ask for next (ALGORITHMS §3.3)."""

from dataclasses import dataclass

Path = tuple[tuple[int, int], ...]  # (attribute, code) of each test from the root


@dataclass(frozen=True, slots=True)
class Asked:
    """Where in a round of queries a query stood; it travels with its answer through the log.

    Parameters
    ----------
    path
        The undecided node.
    attribute, code
        The child of that node that the query stands for.
    rivals
        Non-dominated attributes when the round began, in declared order.
    """

    path: Path
    attribute: int
    code: int
    rivals: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """A question to an oracle, with its reason.

    Parameters
    ----------
    instance
        0-based ordinal of the instance.
    path
        The undecided node.
    attribute, code
        The child of that node that the instance stands for.
    score
        How much asking narrows the child, in bits (ALGORITHMS §3.3).
    rivals
        Attribute, lower and upper end of the gain ratio of each rival, now.
    asked
        To be stored with the answer or refusal.
    node_count
        Number of instances in the undecided node.
    """

    instance: int
    path: Path
    attribute: int
    code: int
    score: float
    rivals: tuple[tuple[int, float, float], ...]
    asked: Asked
    node_count: int
